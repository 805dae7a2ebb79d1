"""Triangles and clustering of large graphs, estimated from random wedges.

A wedge is a pair of edges that meet in a node, its center. It is closed if an edge links its ends.
See Seshadhri, Pinar, Kolda, "Wedge sampling for computing clustering coefficients and triangle
counts on large graphs", 2014.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.graph.graph import are_edges

NUM_WEDGES = 2_000_000
"""Wedges of an estimate: shares of closed wedges above .5 % are known to 1 % of their value."""
WEDGE_SEED = 0


class Estimate(NamedTuple):
    """A number with its standard error, which is 0 if the number is exact."""

    value: float
    standard_error: float


class LocalClustering(NamedTuple):
    """Local clustering, measured at all nodes of two neighbors or more or estimated at some."""

    average: Estimate
    """Mean over all nodes of the graph; a node with fewer than two neighbors counts as 0."""
    nodes: NDArray[np.int64]
    """Nodes of two neighbors or more, shape ``(K,)``; drawn ones may repeat."""
    shares: NDArray[np.float64]
    """Share of linked pairs among the neighbors of each of the nodes, shape ``(K,)``.

    At drawn nodes it is that of a single random pair: 0 or 1.
    """


def estimate_triangles(
    graph: Data, oriented: csr_array, num_wedges: int = NUM_WEDGES, seed: int = WEDGE_SEED
) -> Estimate:
    """Estimate the number of triangles from uniform wedges, without bias.

    Wedges of oriented edges are drawn, both of which begin at the center. Each triangle closes one
    of them, and as hubs are the center of few, a larger share is closed than of all wedges.

    Args:
        graph: Graph of N nodes.
        oriented: Adjacency matrix with one orientation of each edge and no cycle, ``(N, N)``.
        num_wedges: Number of wedges to draw.
        seed: Seed of the draws (public).
    """
    rng = np.random.default_rng(seed)
    degree = np.diff(oriented.indptr).astype(np.int64)
    until = np.cumsum(degree * (degree - 1) // 2)
    if not len(until) or not until[-1]:
        return Estimate(0.0, 0.0)  # two oriented edges of each triangle begin at one of its nodes
    centers = np.searchsorted(until, rng.integers(until[-1], size=num_wedges), side="right")
    closed = _closed(graph, oriented.indptr, oriented.indices, centers, rng)
    return _scaled(closed, float(until[-1]))


def estimate_local_clustering(
    graph: Data, num_wedges: int = NUM_WEDGES, seed: int = WEDGE_SEED
) -> LocalClustering:
    """Estimate local clustering from one random wedge at each of some random nodes.

    Args:
        graph: Graph with a node of two neighbors.
        num_wedges: Number of nodes to draw among those of two neighbors or more, with replacement.
        seed: Seed of the draws (public).
    """
    rng = np.random.default_rng(seed)
    rows, neighbors = graph.edge_index.cpu().numpy()
    degree = np.bincount(rows, minlength=graph.num_nodes)
    central = np.flatnonzero(degree >= 2)
    nodes = central[rng.integers(len(central), size=num_wedges)]
    starts = np.concatenate([[0], np.cumsum(degree)])  # the edges are sorted
    closed = _closed(graph, starts, neighbors, nodes, rng)
    average = _scaled(closed, len(central) / graph.num_nodes)
    return LocalClustering(average, nodes, closed.astype(np.float64))


def _closed(
    graph: Data,
    starts: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    centers: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw two neighbors of each center; return whether an edge links them.

    Args:
        graph: Graph of N nodes.
        starts: Where the neighbors of each node start, and the end, shape ``(N + 1,)``.
        neighbors: Neighbors of the first node, of the next one and so on.
        centers: Nodes of two of these neighbors or more.
        rng: Source of the draw.
    """
    start = starts[centers].astype(np.int64)
    degree = starts[centers + 1] - start
    first, second = rng.integers(degree), rng.integers(degree - 1)
    second += second >= first
    ends = neighbors[np.stack([start + first, start + second])].astype(np.int64)
    return are_edges(graph, ends[0], ends[1])


def _scaled(closed: NDArray[np.bool_], scale: float) -> Estimate:
    """Return the share of closed wedges times ``scale``, with its standard error."""
    count = len(closed)
    # With one more closed and one more open wedge, no estimate has an error of 0.
    share = (closed.sum() + 1) / (count + 2)
    error = math.sqrt(share * (1 - share) / count)
    return Estimate(float(closed.mean()) * scale, error * scale)
