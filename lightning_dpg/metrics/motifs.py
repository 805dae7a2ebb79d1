"""Counts of motifs: the 29 connected graphs of 3, 4 and 5 nodes as induced subgraphs.

Motifs of 3 and 4 nodes are counted by formulas up to a stated cost: for patterns that may lack edges of
the graph, sums over nodes, edges and triangles suffice. A triangular system then gives the counts of
induced subgraphs. Motifs of 5 nodes are enumerated in small graphs. Others are estimated, see
:func:`motif_counts`.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import comb
from torch_geometric.data import Data

from lightning_dpg.graph.graph import adjacency, are_edges, undirected_edges
from lightning_dpg.metrics.functional import degrees, oriented_adjacency, triangle_blocks

# Edges with their triangles or cliques, and paths of two edges, in memory at a time
_BLOCK_EDGES = 16_384
_BLOCK_PATHS = 2_000_000

# Number of each motif of 3 and 4 nodes within one with more edges on the same nodes
_CONTAINED: dict[int, dict[int, int]] = {
    6: {7: 6},
    5: {6: 1, 7: 3},
    4: {6: 4, 7: 12},
    3: {4: 2, 5: 4, 6: 6, 7: 12},
    2: {4: 1, 6: 2, 7: 4},
    0: {1: 3},
}


def small_motif_counts(graph: Data) -> NDArray[np.int64]:
    """Count the motifs of 3 and 4 nodes, shape ``(8,)``, in the order of :class:`MotifCounts`.

    Time grows with the number of cliques of 4 nodes and with the sum over the edges of the smaller
    degree of their ends, memory with the number of triangles.
    """
    oriented = oriented_adjacency(graph)
    sides, last = _triangles(oriented)
    degree = degrees(graph)
    first, second = (degree[ends] - 1 for ends in oriented.nonzero())
    per_edge = np.bincount(sides.ravel(), minlength=oriented.nnz)
    counts = np.array(
        [
            (degree * (degree - 1) // 2).sum(),
            len(last),
            (degree * (degree - 1) * (degree - 2) // 6).sum(),
            # Going on from both ends of an edge must not close a triangle.
            first @ second - 3 * len(last),
            per_edge @ (first + second - 2) // 2,
            _squares(adjacency(graph), oriented),
            (per_edge * (per_edge - 1) // 2).sum(),
            _four_cliques(oriented, sides[2], last),
        ]
    )
    for motif, contained in _CONTAINED.items():
        counts[motif] -= sum(times * counts[other] for other, times in contained.items())
    return counts


def _triangles(oriented: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of all T triangles, ``(3, T)``, and the last node of each, ``(T,)``.

    Edges are numbered in the order of the oriented adjacency matrix. Those of a triangle are
    opposite to its first, middle and last node along the directions of the edges.
    """
    first, second = (ends.astype(np.int64) for ends in oriented.nonzero())
    blocks = [*triangle_blocks(oriented)]
    edge = np.concatenate([edges for edges, _ in blocks] or [np.empty(0, np.int64)])
    third = np.concatenate([last for _, last in blocks] or [np.empty(0, np.int32)])
    # Edges are numbered row by row: their keys ascend.
    keys = first * oriented.shape[0] + second
    others = [
        np.searchsorted(keys, nodes[edge] * oriented.shape[0] + third) for nodes in (second, first)
    ]
    return np.stack([*others, edge]), third


def _squares(matrix: csr_array, oriented: csr_array) -> int:
    """Count cycles of 4 nodes, chords allowed.

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
    count = start = 0
    while start < len(tops):
        # As many arcs as fit, but all arcs of a top, whose paths must be in one block
        stop = np.searchsorted(before, before[start] + _BLOCK_PATHS, side="right") - 1
        stop = np.searchsorted(tops, tops[max(stop, start + 1) - 1], side="right")
        arc = np.repeat(np.arange(start, stop), degree[middles[start:stop]])
        steps = np.arange(len(arc)) - (before[arc] - before[start])
        across = matrix.indices[matrix.indptr[middles[arc]] + steps]
        lower = rank[across] < rank[tops[arc]]
        _, size = np.unique(tops[arc[lower]] * num_nodes + across[lower], return_counts=True)
        count += int((size * (size - 1) // 2).sum())
        start = int(stop)
    return count


def _four_cliques(oriented: csr_array, edge: NDArray[np.int64], last: NDArray[np.int64]) -> int:
    """Count cliques of 4 nodes: an edge and two linked last nodes of triangles on it."""
    shape = oriented.nnz, oriented.shape[0]
    beyond = csr_array((np.ones(len(edge), dtype=np.int64), (edge, last)), shape=shape)
    count = 0
    for start in range(0, oriented.nnz, _BLOCK_EDGES):
        block = beyond[start : start + _BLOCK_EDGES]
        count += int((block @ oriented).multiply(block).sum())
    return count


# Numbers of trees of a kind at each node, and the draw of trees there
_Kind = tuple[
    NDArray[np.float64], Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.int64]]
]

NUM_MOTIFS = 29
EXACT_UP_TO = 1_000_000
EXACT_SMALL_UP_TO = 100_000_000
"""Sum over the edges of the smaller degree, up to which motifs of 4 nodes are counted: that many
paths are searched for cycles of 4, about 20 seconds of one core."""
NUM_SAMPLES = 200_000
_EDGES_AT_ONCE = 2**20
SAMPLING_SEED = 0

# Motifs of each size
_SIZES = {3: slice(0, 2), 4: slice(2, 8), 5: slice(8, NUM_MOTIFS)}


class MotifCounts(NamedTuple):
    """Induced motifs of a graph, counted or estimated."""

    counts: NDArray[np.float64]
    """Number of each motif, shape ``(29,)``: 2 of 3 nodes, 6 of 4 nodes, 21 of 5 nodes.

    Motifs of equal size are in the order of their number of edges, then in descending order of
    their largest degree, of the next degrees, and of their triangles.
    """
    covariance: NDArray[np.float64]
    """Covariance of the counts, shape ``(29, 29)``; 0 where they are exact."""
    sampled_sizes: tuple[int, ...] = ()
    """Numbers of nodes of the motifs that were estimated."""


class MotifClasses(NamedTuple):
    """The connected graphs of some number of nodes."""

    pairs: NDArray[np.int64]
    """All P pairs of nodes, shape ``(P, 2)``."""
    of_code: NDArray[np.int64]
    """Class of a graph by the bits of its linked node pairs, shape ``(2 ** P,)``.

    It is -1 where the graph is not connected.
    """
    spanning_trees: NDArray[np.float64]
    """Spanning trees of a graph of each class, shape ``(C,)``."""


def motif_counts(
    graph: Data,
    num_samples: int = NUM_SAMPLES,
    seed: int = SAMPLING_SEED,
    *,
    exact_up_to: int = EXACT_UP_TO,
    exact_small_up_to: int = EXACT_SMALL_UP_TO,
) -> MotifCounts:
    """Count the connected induced subgraphs of 3, 4 and 5 nodes.

    The estimate draws trees of equal size, all with the same probability. A set of nodes is hit in
    proportion to the spanning trees of its subgraph, and so counts the inverse of their number,
    which makes the estimate unbiased.

    Args:
        graph: Graph of N nodes.
        num_samples: Number of trees to draw of each size.
        seed: Seed of the draws (public).
        exact_up_to: Largest number of trees of 5 nodes in a graph whose sets are enumerated.
        exact_small_up_to: Largest sum over the edges of the smaller degree of their ends in a graph
            whose motifs of 3 and 4 nodes are counted.
    """
    counts = np.zeros(NUM_MOTIFS)
    covariance = np.zeros((NUM_MOTIFS, NUM_MOTIFS))
    trees = _Trees(graph)
    sampled = []
    if smaller_degrees(graph) <= exact_small_up_to:
        counts[:8] = small_motif_counts(graph)
    else:
        sampled = [3, 4]
    if trees.weights(5).sum() <= exact_up_to:
        counts[8:] = _tally(graph, _connected_sets(graph))
    else:
        sampled += [5]
    for size in sampled:
        place, total = _SIZES[size], trees.weights(size).sum()
        if not total:
            continue
        sets = trees.sample(size, num_samples, np.random.default_rng(seed))
        shares = _tally(graph, sets) / num_samples
        scale = total / motif_classes(size).spanning_trees
        spread = np.diag(shares) - np.outer(shares, shares)
        counts[place] = scale * shares
        covariance[place, place] = np.outer(scale, scale) * spread / num_samples
    return MotifCounts(counts, covariance, tuple(sampled))


def smaller_degrees(graph: Data) -> int:
    """Sum the smaller degree of both ends over the edges, the cost of counting cycles of 4 nodes."""
    degree, total = degrees(graph).astype(np.int32), 0  # memory
    rows, columns = graph.edge_index.cpu().numpy()
    for start in range(0, len(rows), _EDGES_AT_ONCE):
        first, second = (degree[each[start : start + _EDGES_AT_ONCE]] for each in (rows, columns))
        total += int(np.minimum(first, second).sum(dtype=np.int64))
    return total // 2


def motif_cosine(first: MotifCounts, second: MotifCounts) -> tuple[float, float]:
    """Return the cosine of the angle between two graphs' counts, and its standard error.

    Both are nan if either graph has no motif. As in Yang et al., "Secure Deep Graph Generation with
    Link Differential Privacy", 2021, raw counts are compared: the most frequent motifs, which have
    5 nodes, decide.
    """
    norms = [float(np.linalg.norm(motifs.counts)) for motifs in (first, second)]
    if 0 in norms:
        return math.nan, math.nan
    ours, theirs = first.counts / norms[0], second.counts / norms[1]
    cosine = min(float(ours @ theirs), 1.0)
    # To first order in the errors of the counts, which are independent
    slopes = (theirs - cosine * ours) / norms[0], (ours - cosine * theirs) / norms[1]
    variances = (
        float(slope @ motifs.covariance @ slope)
        for slope, motifs in zip(slopes, (first, second), strict=True)
    )
    return cosine, math.sqrt(sum(max(variance, 0.0) for variance in variances))


class _Trees:
    """Trees of 3 to 5 nodes in a graph: stars, paths, and forks (stars of 3 leaves, one extended)."""

    def __init__(self, graph: Data) -> None:
        self.neighbors = graph.edge_index[1].cpu().numpy()  # the edges are sorted
        self.degrees = degrees(graph)
        stops = np.cumsum(self.degrees)
        self.starts = stops - self.degrees
        # Ways on from the far ends of all edges before each one
        self.ways_before = np.zeros(len(self.neighbors) + 1, dtype=np.int64)
        np.take(self.degrees - 1, self.neighbors, out=self.ways_before[1:], mode="clip")
        np.cumsum(self.ways_before[1:], out=self.ways_before[1:])
        ways = (self.ways_before[stops] - self.ways_before[self.starts]).astype(np.float64)
        self.stars = {size: comb(self.degrees, size - 1) for size in (3, 4, 5)}
        # Each path of 3 edges is there from both ends of its inner edge.
        self.short_paths = (self.degrees - 1) * ways / 2
        self.paths = ways**2 / 2
        self.forks = comb(self.degrees - 1, 2) * ways

    def weights(self, size: int) -> NDArray[np.float64]:
        """Count each kind, together with walks of the same form that meet a node twice."""
        return np.array([weights.sum() for weights, _ in self._kinds(size)])

    def sample(self, size: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw nodes of trees, ``(T, size)``; T is ``count`` less the walks that are no trees."""
        weights = self.weights(size)
        counts = rng.multinomial(count, weights / weights.sum())
        kinds = zip(self._kinds(size), counts, strict=True)
        nodes = [
            draw(rng.choice(len(ways), number, p=ways / ways.sum()), rng)
            for (ways, draw), number in kinds
            if number
        ]
        rows = np.sort(np.concatenate(nodes), axis=1)
        return rows[(np.diff(rows, axis=1) > 0).all(axis=1)]

    def _kinds(self, size: int) -> list[_Kind]:
        """Kinds of trees: how many begin at each node, and the draw of the others."""
        stars = self.stars[size], partial(self._sample_stars, size - 1)
        if size == 3:
            return [stars]
        if size == 4:
            return [stars, (self.short_paths, self._sample_short_paths)]
        return [stars, (self.paths, self._sample_paths), (self.forks, self._sample_forks)]

    def _sample_stars(
        self, leaves_of_each: int, centers: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        numbers = _distinct(self.degrees[centers], leaves_of_each, rng)
        leaves = self.neighbors[self.starts[centers, None] + numbers]
        return np.column_stack([centers, leaves])

    def _sample_short_paths(
        self, centers: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        inner = centers, self._sample_neighbors(centers, rng)
        outer = [
            self._others(node, other, rng.integers(self.degrees[node] - 1))
            for node, other in (inner, inner[::-1])
        ]
        return np.column_stack([*inner, *outer])

    def _sample_paths(
        self, middle: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        columns = [middle]
        for _ in range(2):
            inner = self._sample_neighbors(middle, rng)
            columns += [inner, self._others(inner, middle, rng.integers(self.degrees[inner] - 1))]
        return np.column_stack(columns)

    def _sample_forks(
        self, center: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        inner = self._sample_neighbors(center, rng)
        leaves = [
            self._others(center, inner, number)
            for number in _distinct(self.degrees[center] - 1, 2, rng).T
        ]
        end = self._others(inner, center, rng.integers(self.degrees[inner] - 1))
        return np.column_stack([center, inner, *leaves, end])

    def _sample_neighbors(
        self, nodes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw a neighbor of each node in proportion to the ways on from it."""
        first = self.starts[nodes]
        ways = self.ways_before[first], self.ways_before[first + self.degrees[nodes]]
        edges = np.searchsorted(self.ways_before, rng.integers(*ways), side="right") - 1
        return self.neighbors[edges]

    def _others(
        self, nodes: NDArray[np.int64], left_out: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return a neighbor of each node by number; the last one replaces ``left_out``."""
        neighbors = self.neighbors[self.starts[nodes] + numbers]
        last = self.neighbors[self.starts[nodes] + self.degrees[nodes] - 1]
        return np.where(neighbors == left_out, last, neighbors)


def _distinct(sizes: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw different numbers below each size, ascending, shape ``(len(sizes), count)``."""
    numbers = np.empty((len(sizes), count), dtype=np.int64)
    for i in range(count):
        # A rank among the remaining numbers, moved past smaller numbers that are taken
        number = rng.integers(sizes - i)
        for smaller in numbers[:, :i].T:
            number += number >= smaller
        numbers[:, i] = number
        numbers[:, : i + 1].sort(axis=1)
    return numbers


def _connected_sets(graph: Data) -> NDArray[np.int64]:
    """List all sets of 5 nodes with a connected subgraph, sorted rows, shape ``(S, 5)``."""
    matrix = adjacency(graph)
    sets: NDArray[np.int64] = undirected_edges(graph).cpu().numpy()
    for size in (2, 3, 4):
        # All neighbors of all members of all sets, each beside its set
        members = sets.ravel()
        degree = np.diff(matrix.indptr)[members]
        first = np.repeat(matrix.indptr[members] - np.cumsum(degree) + degree, degree)
        added = matrix.indices[first + np.arange(len(first))]
        grown = np.repeat(sets, degree.reshape(-1, size).sum(axis=1), axis=0)
        fresh = (grown != added[:, None]).all(axis=1)
        grown = np.sort(np.column_stack([grown[fresh], added[fresh]]), axis=1)
        grown = grown[np.lexsort(grown.T)]
        differs = (grown[1:] != grown[:-1]).any(axis=1)
        sets = np.concatenate([grown[:1], grown[1:][differs]])
    return sets


def _tally(graph: Data, sets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count connected sets of 3 to 5 nodes, ``(S, size)``, by the class of their subgraph, ``(C,)``."""
    classes = motif_classes(sets.shape[1])
    # All pairs at once: the edges are looked at once.
    first, second = sets.T[classes.pairs.T]
    is_edge = are_edges(graph, first.ravel(), second.ravel()).reshape(first.shape)
    codes = (1 << np.arange(len(classes.pairs))) @ is_edge.astype(np.int64)
    counts = np.bincount(classes.of_code[codes], minlength=len(classes.spanning_trees))
    return counts.astype(np.float64)


@cache
def motif_classes(size: int) -> MotifClasses:
    """Classify the connected graphs of 3 to 5 nodes by their degrees and triangles."""
    pairs = np.array([(i, j) for j in range(size) for i in range(j)])
    bits = (np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs))) & 1
    matrix = np.zeros((len(bits), size, size))
    matrix[:, pairs[:, 0], pairs[:, 1]] = bits
    matrix += matrix.transpose(0, 2, 1)
    degree = matrix.sum(axis=2)
    # Kirchhoff: any principal minor of the Laplacian is the number of spanning trees.
    laplacian = degree[:, :, None] * np.eye(size) - matrix
    trees = np.linalg.det(laplacian[:, 1:, 1:]).round()
    triangles = np.trace(matrix @ matrix @ matrix, axis1=1, axis2=2) / 6
    traits = np.column_stack([bits.sum(axis=1), np.sort(-degree, axis=1), -triangles])
    connected = np.flatnonzero(trees)
    _, examples, numbers = np.unique(
        traits[connected], axis=0, return_index=True, return_inverse=True
    )
    of_code = np.full(len(bits), -1)
    of_code[connected] = numbers.ravel()
    return MotifClasses(pairs, of_code, trees[connected][examples])
