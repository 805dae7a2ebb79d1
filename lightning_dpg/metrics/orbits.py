"""Orbit counts: how often a node has each role in connected subgraphs of 2, 3 and 4 nodes.

The subgraphs are counted as patterns that may lack edges of the graph, for which sums over nodes,
edges and triangles suffice; a triangular system then gives the counts of induced subgraphs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.functional import degrees, oriented_adjacency

NUM_ORBITS = 15

# Edges with their triangles or cliques, and paths of two edges, in memory at a time
_BLOCK_EDGES = 16_384
_BLOCK_PATHS = 2_000_000

# How often orbit j occurs at a node of an induced subgraph where the node plays orbit k > j.
_CONTAINED: dict[int, dict[int, int]] = {
    13: {14: 3},
    12: {14: 3},
    11: {13: 2, 14: 3},
    10: {12: 2, 13: 2, 14: 6},
    9: {12: 2, 14: 3},
    8: {12: 1, 13: 1, 14: 3},
    7: {11: 1, 13: 1, 14: 1},
    6: {9: 1, 10: 1, 12: 2, 13: 1, 14: 3},
    5: {8: 2, 10: 1, 11: 2, 12: 2, 13: 4, 14: 6},
    4: {8: 2, 9: 2, 10: 1, 12: 4, 13: 2, 14: 6},
    2: {3: 1},
    1: {3: 2},
}


class _Triangles(NamedTuple):
    """All T triangles; edges are numbered in the order of the oriented adjacency matrix."""

    nodes: NDArray[np.int64]
    """First, middle and last node along the directions of the edges, shape ``(3, T)``."""
    opposite: NDArray[np.int64]
    """Edge between the two others of these nodes, shape ``(3, T)``."""


def orbit_counts(graph: Data) -> NDArray[np.int64]:
    """Count induced connected subgraphs of 2 to 4 nodes per node and role, shape ``(N, 15)``.

    Time grows with the number of cliques of 4 nodes and with the sum over the edges of the smaller
    degree of their ends, memory with the number of triangles.

    The roles are numbered as in Pržulj, "Biological network comparison using graphlet degree
    distribution", 2007: 0 edge; path of 3 nodes: 1 end, 2 middle; 3 triangle; path of 4 nodes:
    4 end, 5 inner; claw: 6 leaf, 7 center; 8 cycle of 4; triangle with a tail: 9 tail, 10 away from
    it, 11 where it is fixed; 4 nodes with 5 edges: 12 with two of them, 13 with three; 14 clique.
    """
    num_nodes = graph.num_nodes
    matrix = adjacency(graph).astype(np.int64)
    oriented = oriented_adjacency(graph)
    corners = _triangles(oriented)
    links = oriented.tocoo()
    ends = np.stack([links.row, links.col])
    per_edge = np.bincount(corners.opposite.ravel(), minlength=oriented.nnz)

    degree = degrees(graph)
    triangles = np.bincount(corners.nodes.ravel(), minlength=num_nodes)
    more = degree - 1
    further = matrix @ more

    counts = np.zeros((num_nodes, NUM_ORBITS), dtype=np.int64)
    counts[:, 0] = degree
    counts[:, 1] = further
    counts[:, 2] = degree * more // 2
    counts[:, 3] = triangles
    # Going on from the second node must not lead back, nor to the first one around a triangle.
    counts[:, 4] = matrix @ further - degree * more - 2 * triangles
    counts[:, 5] = more * further - 2 * triangles
    counts[:, 6] = matrix @ (more * (degree - 2) // 2)
    counts[:, 7] = degree * more * (degree - 2) // 6
    counts[:, 8] = _squares(matrix, oriented)
    counts[:, 9] = matrix @ triangles - 2 * triangles
    counts[:, 10] = _sum_at(ends, per_edge * (degree[ends[::-1]] - 2), num_nodes)
    counts[:, 11] = triangles * (degree - 2)
    counts[:, 12] = _sum_at(corners.nodes, per_edge[corners.opposite] - 1, num_nodes)
    counts[:, 13] = _sum_at(ends, per_edge * (per_edge - 1) // 2, num_nodes)
    counts[:, 14] = _four_cliques(oriented, corners)
    for orbit, contained in _CONTAINED.items():
        for other, times in contained.items():
            counts[:, orbit] -= times * counts[:, other]
    return counts


def _triangles(oriented: csr_array) -> _Triangles:
    links = oriented.tocoo()
    first, second = links.row.astype(np.int64), links.col.astype(np.int64)
    edges, thirds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(first), _BLOCK_EDGES):
        block = slice(start, start + _BLOCK_EDGES)
        # Nodes that both ends of an edge point to
        closed = oriented[first[block]].multiply(oriented[second[block]]).tocoo()
        edges.append(closed.row.astype(np.int64) + start)
        thirds.append(closed.col.astype(np.int64))
    edge, third = np.concatenate(edges), np.concatenate(thirds)
    # Edges are numbered row by row: their keys ascend.
    keys = first * oriented.shape[0] + second
    others = [
        np.searchsorted(keys, nodes[edge] * oriented.shape[0] + third) for nodes in (second, first)
    ]
    return _Triangles(np.stack([first[edge], second[edge], third]), np.stack([*others, edge]))


def _squares(matrix: csr_array, oriented: csr_array) -> NDArray[np.int64]:
    """Count cycles of 4 nodes per node, chords allowed.

    A cycle has a top, the node that its edges point to, and consists of two paths from the top to
    the node across. Hubs are tops, and so the middle of few paths: see Chiba and Nishizeki,
    "Arboricity and subgraph listing algorithms", 1985.
    """
    num_nodes = matrix.shape[0]
    rank = np.empty(num_nodes, dtype=np.int64)
    rank[np.lexsort((np.arange(num_nodes), np.diff(matrix.indptr)))] = np.arange(num_nodes)
    arcs = oriented.T.tocsr().tocoo()
    tops, middles = arcs.row.astype(np.int64), arcs.col.astype(np.int64)
    degree = np.diff(matrix.indptr).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(degree[middles])])
    counts = np.zeros(num_nodes, dtype=np.int64)
    start = 0
    while start < len(tops):
        # As many arcs as fit, but all arcs of a top, whose paths must be in one block
        stop = np.searchsorted(before, before[start] + _BLOCK_PATHS, side="right") - 1
        stop = np.searchsorted(tops, tops[max(stop, start + 1) - 1], side="right")
        arc = np.repeat(np.arange(start, stop), degree[middles[start:stop]])
        steps = np.arange(len(arc)) - (before[arc] - before[start])
        across = matrix.indices[matrix.indptr[middles[arc]] + steps]
        lower = rank[across] < rank[tops[arc]]
        arc, across = arc[lower], across[lower]
        _, group, size = np.unique(
            tops[arc] * num_nodes + across, return_inverse=True, return_counts=True
        )
        # A path closes a cycle with each other path of its group. The cycle counts for both paths,
        # and so twice at its top and across, but once at either middle.
        partners = size[group.ravel()] - 1
        counts += np.bincount(middles[arc], partners, num_nodes).astype(np.int64)
        for nodes in (tops[arc], across):
            counts += np.bincount(nodes, partners, num_nodes).astype(np.int64) // 2
        start = int(stop)
    return counts


def _four_cliques(oriented: csr_array, triangles: _Triangles) -> NDArray[np.int64]:
    """Count cliques of 4 nodes per node: an edge and two linked nodes of triangles on it."""
    num_nodes = oriented.shape[0]
    (_, middle, last), (_, around, edge) = triangles
    ones = np.ones(len(edge), dtype=np.int64)
    # Row e holds the last nodes of the triangles that begin with edge e, or the middle nodes of
    # those around which it leads.
    beyond, between = (
        csr_array((ones, (rows, nodes)), shape=(oriented.nnz, num_nodes))
        for rows, nodes in ((edge, last), (around, middle))
    )
    links = oriented.tocoo()
    counts = np.zeros(num_nodes, dtype=np.int64)
    for start in range(0, oriented.nnz, _BLOCK_EDGES):
        block = slice(start, start + _BLOCK_EDGES)
        # Cliques at the fourth node and both ends of the edge between the first two, then those at
        # the third node
        fourth = (beyond[block] @ oriented).multiply(beyond[block]).tocsr()
        third = (between[block] @ oriented).multiply(between[block]).tocsr()
        on_edge = fourth.sum(axis=1)
        counts += fourth.sum(axis=0) + third.sum(axis=0)
        for nodes in (links.row[block], links.col[block]):
            counts += np.bincount(nodes, on_edge, num_nodes).astype(np.int64)
    return counts


def _sum_at(
    nodes: NDArray[np.int64], values: NDArray[np.int64], num_nodes: int
) -> NDArray[np.int64]:
    """Sum the values at each node, shape ``(N,)``."""
    values = np.broadcast_to(values, nodes.shape)
    return np.bincount(nodes.ravel(), values.ravel(), num_nodes).astype(np.int64)
