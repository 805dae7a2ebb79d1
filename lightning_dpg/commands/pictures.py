"""Graphs as pictures, for the report of ``compare``."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.commands.tables import Row
from lightning_dpg.graph.io import read_graph
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.queries import align

PICTURE_SIZE = 320
"""Width in pixels of a picture of an adjacency matrix; that of a smaller graph has one per node."""

INK = (52, 120, 190)
"""Seen on white and on black."""

MAX_DEGREES_SHOWN = 60


def first_graph(row: Row, folder: Path) -> Data | None:
    """The synthetic graph of run 0 of a row; None where that run failed or its file is gone."""
    names = [result["name"] for result in row.done if result["run"] == 0]
    paths = [path for name in names for path in (folder / "runs" / name).rglob("synthetic-0.npz")]
    return read_graph(paths[0]) if paths else None


def adjacency_picture(graph: Data, order: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The adjacency matrix as transparent pixels, darker where more edges share one.

    Args:
        graph: Graph of N nodes.
        order: Nodes to show, from left to right and from top to bottom.

    Returns:
        Red, green, blue and opacity, shape ``(S, S, 4)``.
    """
    size = min(PICTURE_SIZE, len(order))
    place = np.full(graph.num_nodes, -1)
    place[order] = np.arange(len(order)) * size // len(order)
    rows, columns = place[graph.edge_index.cpu().numpy()]
    shown = (rows >= 0) & (columns >= 0)
    counts = np.zeros((size, size))
    np.add.at(counts, (rows[shown], columns[shown]), 1)
    # A single edge must be seen, and the fullest pixels must not make the others fade.
    full = max(np.quantile(counts[counts > 0], 0.95) if shown.any() else 1.0, 1.0)
    picture = np.empty((size, size, 4), dtype=np.uint8)
    picture[..., :3] = INK
    picture[..., 3] = np.where(counts > 0, 105 + 150 * np.minimum(counts / full, 1), 0)
    return picture


def degree_curve(graph: Data) -> list[list[int]]:
    """Degrees above 0, each with the number of nodes of at least this degree; thinned for a plot."""
    degree = degrees(graph)
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    at_least = counts[::-1].cumsum()[::-1]
    if len(values) > MAX_DEGREES_SHOWN:
        places = np.geomspace(1, len(values), MAX_DEGREES_SHOWN).round().astype(int) - 1
        kept = np.unique(places)
        values, at_least = values[kept], at_least[kept]
    return np.stack([values, at_least], axis=1).tolist() if len(values) else []


def aligned(graph: Data, real: Data) -> Data:
    """The graph with the node numbers of the real one, where they have the same nodes."""
    alignment = align(graph, real)
    return graph if alignment is None else alignment.graph
