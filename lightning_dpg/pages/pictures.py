"""Matrices of graphs and of sets for the page of a benchmark, and sizes of graphs in words."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.metrics.alignment import align
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import INK
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.pictures import MATRIX_SIZE, adjacency_pixels, community_order
from lightning_dpg.pages.page import plural

TILES = 9
"""Graphs of a set that a picture shows."""


def renderer(real: Data) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders graphs or sets as RGBA pixels in the node order of ``real``.

    Args:
        real: Real graph, or union of a set with its ``sizes``.

    Returns:
        Function from a graph to red, green, blue and opacity, shape ``(S, S, 4)``.
    """
    sizes = real.get("sizes")
    if sizes is not None:
        return some_matrices(sizes)
    order = community_order(real, LOUVAIN_SEED)
    return lambda graph: adjacency_pixels(graph, order, MATRIX_SIZE)


def some_matrices(sizes: Tensor) -> Callable[[Data], NDArray[np.uint8]]:
    """Return a function that renders sets of graphs of given sizes: :data:`TILES` framed tiles.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    shown = np.linspace(0, len(sizes) - 1, min(TILES, len(sizes))).round().astype(int)
    side = int(np.ceil(np.sqrt(len(shown))))
    width = MATRIX_SIZE // side - 4  # of a tile within its frame

    def render(union: Data) -> NDArray[np.uint8]:
        graphs = split_graphs(union, sizes.tolist())
        figure = np.zeros((MATRIX_SIZE, MATRIX_SIZE, 4), dtype=np.uint8)
        for place, number in enumerate(shown):
            graph = graphs[number]
            tile = adjacency_pixels(graph, community_order(graph, LOUVAIN_SEED), width)
            stretched = np.arange(width) * len(tile) // width
            top, left = (MATRIX_SIZE * k // side + 1 for k in divmod(place, side))
            frame = figure[top : top + width + 2, left : left + width + 2]
            frame[...] = (*bytes.fromhex(INK.removeprefix("#")), 60)
            frame[1:-1, 1:-1] = tile[stretched][:, stretched]
        return figure

    return render


def aligned(graph: Data, real: Data) -> Data:
    """Put a graph on the node numbers of the real graph, if the nodes can be matched.

    Nodes that the real graph lacks have numbers behind its own.
    """
    alignment = align(graph, real)
    return graph if alignment is None else alignment.graph


def size_of(graph: Data) -> str:
    """Return the numbers of nodes and edges, and of nodes without an edge, as a text."""
    isolated = int((degrees(graph) == 0).sum())
    facts = f"{plural(graph.num_nodes, 'node')}, {plural(graph.num_edges // 2, 'edge')}"
    return f"{facts}, {plural(isolated, 'node')} without any" if isolated else facts
