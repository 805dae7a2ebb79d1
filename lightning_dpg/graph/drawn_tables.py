"""Tables of a synthetic graph: rows that are drawn for its nodes, and transfers on its edges."""

from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, TemporalData

from lightning_dpg.graph.attributes import NodeAttributes, attach
from lightning_dpg.graph.kind import CENTS
from lightning_dpg.graph.pair_space import space_of


class DrawnRows(NamedTuple):
    """Drawn rows of N nodes (released).

    Attributes:
        domains: Names of all values of each column, by its name (public).
        values: Place of each node's value in the domain of each column, shape ``(N, J)``; -1 where a
            node does not have the column, since right nodes have it, or left ones.
    """

    domains: dict[str, list[str]]
    values: NDArray[np.int64]

    def texts(self) -> list[list[str]]:
        """Return the value of each node as text, a list per column."""
        return [
            ["" if place < 0 else names[place] for place in places]
            for names, places in zip(self.domains.values(), self.values.T.tolist(), strict=True)
        ]


def rows_of(graph: Data) -> DrawnRows | None:
    """Return the drawn rows of a synthetic graph; None without any."""
    rows: DrawnRows | None = getattr(graph, "drawn_rows", None)
    return rows


def attach_rows(graph: Data, rows: DrawnRows, public: NodeAttributes | None) -> None:
    """Set drawn rows as attributes of a graph: a column of 0 and 1 for each value, beside public ones.

    Args:
        graph: A synthetic graph.
        rows: Its rows.
        public: Public attributes of the nodes, if there are any.
    """
    parts = [] if public is None else [public.x.float().cpu()]
    names = [] if public is None else list(public.names)
    for (column, values), places in zip(rows.domains.items(), rows.values.T, strict=True):
        held = torch.zeros(len(places), len(values))
        (nodes,) = np.nonzero(places >= 0)
        held[nodes, places[nodes]] = 1.0
        parts.append(held)
        names += [f"{column}={value}" for value in values]
    classes = None if public is None else public.y
    attach(graph, NodeAttributes(torch.cat(parts, dim=1), names, classes))
    graph.drawn_rows = rows


class DrawnTransfers(NamedTuple):
    """Drawn transfers (released), each on an edge of its graph.

    Attributes:
        pairs: Payer and payee of each transfer, shape ``(T, 2)``.
        amounts: Amounts in units of 1 / :data:`CENTS`, shape ``(T,)``; None without amounts.
        times: Seconds since the beginning of the first day, shape ``(T,)``; None without times.
        first_day: First day of the window of times, at midnight (public); None without times.
    """

    pairs: Tensor
    amounts: Tensor | None
    times: Tensor | None
    first_day: datetime | None

    def stamps(self) -> list[datetime]:
        """Return the time of each transfer; none without times."""
        if self.times is None or self.first_day is None:
            return []
        return [self.first_day + timedelta(seconds=time) for time in self.times.tolist()]

    def columns(self) -> dict[str, list[float] | list[datetime]]:
        """Return the amounts in whole units and the times, as far as there are any."""
        found: dict[str, list[float] | list[datetime]] = {}
        if self.amounts is not None:
            found["amount"] = [cents / CENTS for cents in self.amounts.tolist()]
        if self.times is not None:
            found["time"] = self.stamps()
        return found


def transfers_of(graph: Data) -> DrawnTransfers | None:
    """Return the drawn transfers of a synthetic graph; None without any."""
    transfers: DrawnTransfers | None = getattr(graph, "drawn_transfers", None)
    return transfers


def attach_transfers(graph: Data, transfers: DrawnTransfers) -> None:
    """Set drawn transfers as attributes of the edges of a graph.

    ``edge_attr`` of shape ``(E, 1)`` has the sum of the amounts of each edge, and ``edge_time`` of
    shape ``(E,)`` the seconds of its first transfer, -1 for an edge without one. Both directions of an
    edge of an undirected graph have those of the pair.

    Args:
        graph: A synthetic graph with E columns of ``edge_index``.
        transfers: Its transfers.

    Raises:
        ValueError: If a transfer is on no edge.
    """
    sums, first = _by_column(graph, transfers)
    if sums is not None:
        graph.edge_attr = (sums.double() / CENTS).float()[:, None]
    if first is not None:
        graph.edge_time = first
    graph.drawn_transfers = transfers


def _by_column(graph: Data, transfers: DrawnTransfers) -> tuple[Tensor | None, Tensor | None]:
    """Return the sum of the amounts and the first time of each column of ``edge_index``.

    Sums are in units of 1 / :data:`CENTS`; the time of an edge without a transfer is -1.
    """
    is_directed, num_nodes = space_of(graph).kind == "directed", int(graph.num_nodes)
    pairs = [transfers.pairs, graph.edge_index.T.cpu()]
    ends = pairs if is_directed else [each.sort(1).values for each in pairs]
    of_transfers, of_edges = (each[:, 0] * num_nodes + each[:, 1] for each in ends)
    known, place_of_edge = of_edges.unique(return_inverse=True)
    if not bool(torch.isin(of_transfers, known).all()):
        raise ValueError("pairs must be edges of the graph")
    place, sums, first = torch.searchsorted(known, of_transfers), None, None
    if transfers.amounts is not None:
        totals = torch.zeros(len(known), dtype=torch.long).index_add(0, place, transfers.amounts)
        sums = totals[place_of_edge]
    if transfers.times is not None:
        last = torch.iinfo(torch.long).max
        found = torch.full((len(known),), last).scatter_reduce(0, place, transfers.times, "amin")
        first = torch.where(found == last, -1, found)[place_of_edge]
    return sums, first


def edge_values(graph: Data) -> dict[str, list[float] | list[str]]:
    """Return the total amount and the first time of each edge, in the order of the edges.

    Args:
        graph: A graph, with drawn transfers or without.

    Returns:
        ``amount`` and ``first_time``, as far as there are any; the time of an edge without a transfer
        is an empty text.
    """
    transfers = transfers_of(graph)
    if transfers is None:
        return {}
    sums, first = _by_column(graph, transfers)
    index, edges, num_nodes = graph.edge_index, space_of(graph).edges(graph), graph.num_nodes
    place = torch.searchsorted(
        index[0] * num_nodes + index[1], edges[:, 0] * num_nodes + edges[:, 1]
    )
    found: dict[str, list[float] | list[str]] = {}
    if sums is not None:
        found["amount"] = [cents / CENTS for cents in sums[place].tolist()]
    if first is not None and transfers.first_day is not None:
        day, seconds = transfers.first_day, first[place].tolist()
        found["first_time"] = [
            "" if time < 0 else (day + timedelta(seconds=time)).isoformat() for time in seconds
        ]
    return found


def to_temporal(graph: Data) -> TemporalData:
    """Return the drawn transfers of a graph as a sequence of events of PyTorch Geometric.

    Args:
        graph: A synthetic graph whose transfers have times.

    Returns:
        ``src``, ``dst``, ``t`` in seconds since the beginning of the first day, ascending, and ``msg``
        of shape ``(T, 1)`` with the amounts, or ``(T, 0)`` without amounts.

    Raises:
        ValueError: If the graph has no drawn times.
    """
    transfers = transfers_of(graph)
    if transfers is None or transfers.times is None:
        raise ValueError("the graph has no drawn times, and events have one each")
    order = transfers.times.argsort(stable=True)
    source, target = transfers.pairs[order].T
    message = torch.empty(len(order), 0)
    if transfers.amounts is not None:
        message = (transfers.amounts[order].double() / CENTS).float()[:, None]
    return TemporalData(src=source, dst=target, t=transfers.times[order], msg=message)
