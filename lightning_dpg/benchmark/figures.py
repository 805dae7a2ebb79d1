"""Figures of the report: adjacency matrices and degree curves."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import community_order
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.queries import align

FIGURE_SIZE = 320
"""Width in pixels of a rendered adjacency matrix; a smaller graph has one pixel per node."""

TILES = 9
"""Graphs of a set that a figure shows."""

INK = (52, 120, 190)
"""Seen on white and on black."""

MAX_DEGREES_SHOWN = 60


def renderer(real: Data) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders graphs or sets as RGBA pixels in the node order of ``real``.

    Args:
        real: Real graph, or union of a set with its ``sizes``.

    Returns:
        Function from a graph to red, green, blue and opacity, shape ``(S, S, 4)``.
    """
    sizes = real.get("sizes")
    return one_matrix(real) if sizes is None else some_matrices(sizes)


def one_matrix(real: Data) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders graphs in the order of the communities of ``real``."""
    order = community_order(real, LOUVAIN_SEED)
    return lambda graph: adjacency_pixels(graph, order)


def some_matrices(sizes: Tensor) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders sets of graphs of given sizes: :data:`TILES` framed tiles.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    shown = np.linspace(0, len(sizes) - 1, min(TILES, len(sizes))).round().astype(int)
    side = int(np.ceil(np.sqrt(len(shown))))
    width = FIGURE_SIZE // side - 4  # of a tile within its frame

    def render(union: Data) -> NDArray[np.uint8]:
        graphs = split_graphs(union, sizes.tolist())
        figure = np.zeros((FIGURE_SIZE, FIGURE_SIZE, 4), dtype=np.uint8)
        for place, number in enumerate(shown):
            graph = graphs[number]
            tile = adjacency_pixels(graph, community_order(graph, LOUVAIN_SEED), width)
            stretched = np.arange(width) * len(tile) // width
            top, left = (FIGURE_SIZE * k // side + 1 for k in divmod(place, side))
            frame = figure[top : top + width + 2, left : left + width + 2]
            frame[...] = (*INK, 60)
            frame[1:-1, 1:-1] = tile[stretched][:, stretched]
        return figure

    return render


def adjacency_pixels(
    graph: Data, order: NDArray[np.int64], largest: int = FIGURE_SIZE
) -> NDArray[np.uint8]:
    """Render the adjacency matrix as transparent pixels, darker with more edges per pixel.

    Args:
        graph: Graph of N nodes.
        order: Nodes to show, from left to right and from top to bottom.
        largest: Maximal width in pixels.

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
    # A single edge must be visible, and the fullest pixels must not make the others fade.
    full = max(np.quantile(counts[counts > 0], 0.95) if shown.any() else 1.0, 1.0)
    pixels = np.empty((size, size, 4), dtype=np.uint8)
    pixels[..., :3] = INK
    pixels[..., 3] = np.where(counts > 0, 105 + 150 * np.minimum(counts / full, 1), 0)
    return pixels


def degree_curve(graph: Data) -> list[list[int]]:
    """Degrees above 0 with the number of nodes of at least this degree, thinned for a plot."""
    degree = degrees(graph)
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    at_least = counts[::-1].cumsum()[::-1]
    if len(values) > MAX_DEGREES_SHOWN:
        places = np.geomspace(1, len(values), MAX_DEGREES_SHOWN).round().astype(int) - 1
        kept = np.unique(places)
        values, at_least = values[kept], at_least[kept]
    return np.stack([values, at_least], axis=1).tolist() if len(values) else []


def aligned(graph: Data, real: Data) -> Data:
    """Put a graph on the node numbers of the real graph if both have the same nodes."""
    alignment = align(graph, real)
    return graph if alignment is None else alignment.graph
