"""Transfers of a graph: from the rows that were read to the records of a method (private)."""

from datetime import datetime

import torch
from torch import Tensor

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.interfaces import TransferBounds, Transfers

_EPOCH = datetime(1970, 1, 1)


def transfers_of(reading: GraphReading, columns: Columns) -> Transfers | None:
    """Return the transfers of a reading in the numbers of its nodes; None if none are read.

    Args:
        reading: The graph and the values of its rows.
        columns: The columns of these values, with their bounds.
    """
    values = reading.values
    if values is None:
        return None
    amounts, times = values.amounts, values.times
    is_loop = reading.links[:, 0] == reading.links[:, 1]
    if amounts is not None:
        amounts = amounts.clamp(max=columns.largest)[~is_loop]
    if times is not None and columns.window is not None:
        times = (times - int((columns.window[0] - _EPOCH).total_seconds()))[~is_loop]
    bounds = TransferBounds(columns.weight_max, columns.window)
    return ordered(Transfers(reading.links[~is_loop], amounts, times, bounds))


def renumbered(transfers: Transfers, numbers: Tensor) -> Transfers:
    """Return the transfers in other numbers of the nodes.

    Args:
        transfers: The transfers.
        numbers: New number of each node, -1 for a node that is left out with its transfers.
    """
    pairs = numbers[transfers.pairs]
    return ordered(_chosen(transfers._replace(pairs=pairs), (pairs >= 0).all(1)))


def of_edges(
    transfers: Transfers, edges: Tensor, num_nodes: int, *, is_directed: bool
) -> Transfers:
    """Return the transfers of some of the edges: whether one is there depends on its edge alone.

    Args:
        transfers: The transfers.
        edges: The edges, shape ``(M, 2)``.
        num_nodes: Number of nodes N.
        is_directed: Whether an edge is an ordered pair.
    """
    ends = [pairs if is_directed else pairs.sort(1).values for pairs in (transfers.pairs, edges)]
    of_transfers, of_edges = (first * num_nodes + second for first, second in (e.T for e in ends))
    return _chosen(transfers, torch.isin(of_transfers, of_edges))


def joined(transfers: Transfers, others: Transfers) -> Transfers:
    """Return all transfers of two tables with the same columns and bounds."""
    parts = zip(transfers[:3], others[:3], strict=True)
    pairs, amounts, times = (
        None if one is None or other is None else torch.cat([one, other]) for one, other in parts
    )
    assert pairs is not None  # every table has them
    return ordered(Transfers(pairs, amounts, times, transfers.bounds))


def _chosen(transfers: Transfers, is_kept: Tensor) -> Transfers:
    """Return some of the transfers, in their order."""
    amounts, times = transfers.amounts, transfers.times
    return transfers._replace(
        pairs=transfers.pairs[is_kept],
        amounts=None if amounts is None else amounts[is_kept],
        times=None if times is None else times[is_kept],
    )


def ordered(transfers: Transfers) -> Transfers:
    """Sort by the pair, the time, the payer and the amount."""
    ends = transfers.pairs.sort(1).values
    keys = [transfers.amounts, transfers.pairs[:, 0], transfers.times, ends[:, 1], ends[:, 0]]
    order = torch.arange(len(ends))
    for key in keys:  # the last one counts most
        if key is not None:
            order = order[key[order].argsort(stable=True)]
    return _chosen(transfers, order)
