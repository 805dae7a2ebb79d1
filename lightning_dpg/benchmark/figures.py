"""Pictures of the report: adjacency matrices of graphs and of sets."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.benchmark.charts import IMAGE_SIZE
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import INK, adjacency_pixels, community_order
from lightning_dpg.metrics.queries import align

TILES = 9
"""Graphs of a set that a figure shows."""


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
    return lambda graph: adjacency_pixels(graph, order, IMAGE_SIZE)


def some_matrices(sizes: Tensor) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders sets of graphs of given sizes: :data:`TILES` framed tiles.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    shown = np.linspace(0, len(sizes) - 1, min(TILES, len(sizes))).round().astype(int)
    side = int(np.ceil(np.sqrt(len(shown))))
    width = IMAGE_SIZE // side - 4  # of a tile within its frame

    def render(union: Data) -> NDArray[np.uint8]:
        graphs = split_graphs(union, sizes.tolist())
        figure = np.zeros((IMAGE_SIZE, IMAGE_SIZE, 4), dtype=np.uint8)
        for place, number in enumerate(shown):
            graph = graphs[number]
            tile = adjacency_pixels(graph, community_order(graph, LOUVAIN_SEED), width)
            stretched = np.arange(width) * len(tile) // width
            top, left = (IMAGE_SIZE * k // side + 1 for k in divmod(place, side))
            frame = figure[top : top + width + 2, left : left + width + 2]
            frame[...] = (*bytes.fromhex(INK.removeprefix("#")), 60)
            frame[1:-1, 1:-1] = tile[stretched][:, stretched]
        return figure

    return render


def aligned(graph: Data, real: Data) -> Data:
    """Put a graph on the node numbers of the real graph if both have the same nodes."""
    alignment = align(graph, real)
    return graph if alignment is None else alignment.graph
