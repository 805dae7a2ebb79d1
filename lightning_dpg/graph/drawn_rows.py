"""Rows of a synthetic graph: one value per node of each column, drawn and not those of the nodes."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import NodeAttributes, attach


class DrawnRows(NamedTuple):
    """Drawn rows of N nodes (released).

    Attributes:
        domains: Names of all values of each column, by its name (public).
        values: Place of each node's value in the domain of each column, shape ``(N, J)``.
    """

    domains: dict[str, list[str]]
    values: NDArray[np.int64]

    def texts(self) -> list[list[str]]:
        """Return the value of each node as text, a list per column."""
        return [
            [names[place] for place in places]
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
        held[torch.arange(len(places)), torch.from_numpy(places)] = 1.0
        parts.append(held)
        names += [f"{column}={value}" for value in values]
    classes = None if public is None else public.y
    attach(graph, NodeAttributes(torch.cat(parts, dim=1), names, classes))
    graph.drawn_rows = rows
