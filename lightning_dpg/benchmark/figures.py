"""Graphs as pictures, for the report of ``compare``."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.benchmark.jobs import DRAWN
from lightning_dpg.benchmark.results import Row
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.graph.io import read_graph
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import community_order
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.queries import align

PICTURE_SIZE = 320
"""Width in pixels of a picture of an adjacency matrix; that of a smaller graph has one per node."""

TILES = 9
"""Graphs of a set that a picture shows."""

INK = (52, 120, 190)
"""Seen on white and on black."""

MAX_DEGREES_SHOWN = 60


def first_graph(row: Row, folder: Path) -> Data | None:
    """What run 0 of a row has drawn; None where it failed, drew no edge, or its file is gone."""
    names = [result["name"] for result in row.done if result["run"] == 0]
    paths = [path for name in names for path in (folder / "runs" / name).rglob(DRAWN)]
    return read_graph(paths[0]) if paths else None


def one_matrix(real: Data) -> Callable[[Data], NDArray[np.uint8]]:
    """How to paint graphs on the nodes of ``real``: in the order of its communities."""
    order = community_order(real, LOUVAIN_SEED)
    return lambda graph: adjacency_picture(graph, order)


def some_matrices(sizes: Tensor) -> Callable[[Data], NDArray[np.uint8]]:
    """How to paint sets of graphs of these sizes: :data:`TILES` of them side by side, framed.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    shown = np.linspace(0, len(sizes) - 1, min(TILES, len(sizes))).round().astype(int)
    side = int(np.ceil(np.sqrt(len(shown))))
    width = PICTURE_SIZE // side - 4  # of a tile within its frame

    def paint(union: Data) -> NDArray[np.uint8]:
        graphs = split_graphs(union, sizes.tolist())
        picture = np.zeros((PICTURE_SIZE, PICTURE_SIZE, 4), dtype=np.uint8)
        for place, number in enumerate(shown):
            graph = graphs[number]
            tile = adjacency_picture(graph, community_order(graph, LOUVAIN_SEED), width)
            stretched = np.arange(width) * len(tile) // width
            top, left = (PICTURE_SIZE * k // side + 1 for k in divmod(place, side))
            frame = picture[top : top + width + 2, left : left + width + 2]
            frame[...] = (*INK, 60)
            frame[1:-1, 1:-1] = tile[stretched][:, stretched]
        return picture

    return paint


def adjacency_picture(
    graph: Data, order: NDArray[np.int64], largest: int = PICTURE_SIZE
) -> NDArray[np.uint8]:
    """The adjacency matrix as transparent pixels, darker where more edges share one.

    Args:
        graph: Graph of N nodes.
        order: Nodes to show, from left to right and from top to bottom.
        largest: Width in pixels at most.

    Returns:
        Red, green, blue and opacity, shape ``(S, S, 4)``.
    """
    size = min(largest, len(order))
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
