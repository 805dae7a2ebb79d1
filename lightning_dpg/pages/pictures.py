"""Pictures and distributions of graphs for the pages of an evaluation and of a benchmark."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.metrics.alignment import align
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import (
    INK,
    adjacency_pixels,
    community_order,
)
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.queries import Profile
from lightning_dpg.pages.charts import (
    IMAGE_SIZE,
    Axis,
)
from lightning_dpg.pages.page import plural

TILES = 9
"""Graphs of a set that a picture shows."""
MAX_POINTS = 60
DEGREES = (Axis("degree", True, low=1), Axis("nodes of at least this degree", True, low=1))


def distance_curve(measured: Profile) -> list[tuple[float, float]]:
    """Return distances from 1 on, with their share of the connected pairs of nodes."""
    counts = measured.distances.counts[1:]
    total = counts.sum()
    return [(distance, count / total) for distance, count in enumerate(counts.tolist(), 1)]


def clustering_curve(measured: Profile) -> list[tuple[float, float]]:
    """Return the mean local clustering of nodes in logarithmic bins of degrees from 2 on.

    Where local clustering was sampled, it is the mean over the drawn nodes.
    """
    nodes, shares = measured.clustering.nodes, measured.clustering.shares
    if not len(nodes):
        return []
    degree = degrees(measured.graph)[nodes]
    ends = np.unique(np.geomspace(2, degree.max() + 1, 16).round().astype(int))
    place = np.digitize(degree, ends)
    sizes = np.bincount(place)
    sums = np.bincount(place, shares)
    totals = np.bincount(place, degree)
    return [
        (total / size, clustering / size)
        for total, clustering, size in zip(totals, sums, sizes, strict=True)
        if size
    ]


def community_curve(measured: Profile) -> list[tuple[float, float]]:
    """Return ranks of the communities, largest first, with their sizes; thinned for a plot."""
    if not measured.communities.size:
        return []
    sizes = np.sort(np.bincount(measured.communities))[::-1]
    ranks = np.unique(np.geomspace(1, len(sizes), MAX_POINTS).round().astype(int))
    return [(float(rank), float(sizes[rank - 1])) for rank in ranks]


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
