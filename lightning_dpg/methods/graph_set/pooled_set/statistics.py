"""Integer statistics of the graphs of a set, summed by class of graphs."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int64]

UNIT = 2**10
"""Units of a statistic of 1: real numbers are released as integers, with exact noise."""


class SetStatistics:
    """Exact statistics of the graphs of a set (private).

    Args:
        edges: Edges of all graphs in the numbers of all nodes, shape ``(M, 2)``.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
    """

    def __init__(self, edges: Ints, sizes: Ints) -> None:
        self.sizes = sizes
        self.graph_of = np.repeat(np.arange(len(sizes)), sizes)
        num_nodes = len(self.graph_of)
        both = np.concatenate([edges, edges[:, ::-1]])
        ones = np.ones(len(both), dtype=np.int64)
        self._adjacency = csr_array((ones, (both[:, 0], both[:, 1])), (num_nodes, num_nodes))

    def ordered_degrees(self) -> Ints:
        """Degrees of each graph in descending order, graph by graph, shape ``(N,)``."""
        degrees = np.diff(self._adjacency.indptr).astype(np.int64)
        return degrees[np.lexsort((-degrees, self.graph_of))]

    def triangles(self) -> Ints:
        """Number of triangles of each graph, shape ``(G,)``."""
        links = self._adjacency
        closed = (links @ links).multiply(links).sum(axis=1)  # each triangle twice at each node
        return _sums(np.asarray(closed), self.graph_of, len(self.sizes)) // 6

    def largest_components(self) -> Ints:
        """Number of nodes of the largest component of each graph, shape ``(G,)``."""
        _, labels = connected_components(self._adjacency, directed=False)
        component_sizes = np.bincount(labels)
        largest = np.zeros(len(self.sizes), dtype=np.int64)
        np.maximum.at(largest, self.graph_of, component_sizes[labels])
        return largest


def pooled_triangles(triangles: Ints, sizes: Ints, classes: Ints, num_classes: int) -> Ints:
    """Sums of the triangles of each graph over its size less 2, by class, in units.

    Args:
        triangles: Number of triangles of each graph (private), shape ``(G,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        classes: Class of each graph, shape ``(G,)``.
        num_classes: Number C of classes.

    Returns:
        Integers of shape ``(C,)`` (private); see :func:`pooled_triangle_sensitivity`.
    """
    return _sums(UNIT * triangles // np.maximum(sizes - 2, 1), classes, num_classes)


def pooled_components(largest: Ints, sizes: Ints) -> int:
    """Sum of the largest components over half the nodes, in units (private).

    See :func:`pooled_component_sensitivity`.

    Args:
        largest: Nodes of the largest component of each graph (private), shape ``(G,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    return int((2 * UNIT * largest // np.maximum(sizes, 1)).sum())


def place_weights(sizes: Ints, classes: Ints, num_classes: int, bins: int) -> Ints:
    r"""Integer weights of the places of ordered degrees in the bins of their class.

    The first bin is of the largest degree alone. The others divide the remaining places evenly, and
    a place across a border is in both. A graph of n nodes has the weight
    :math:`\lfloor u (n_0 - 1) / (n - 1) \rfloor`, where :math:`n_0` is the smallest size above 1 in
    its class: degrees are pooled as shares of the n - 1 possible neighbors.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
        classes: Class of each graph, shape ``(G,)``.
        num_classes: Number of classes.
        bins: Number B of bins, at least 2.

    Returns:
        Weights of shape ``(N, B)``, at most :data:`UNIT` in each row (public, as the classes are).
    """
    smallest = np.full(num_classes, np.iinfo(np.int64).max)
    linked = sizes > 1
    np.minimum.at(smallest, classes[linked], sizes[linked])
    weights = np.zeros(len(sizes), dtype=np.int64)
    weights[linked] = UNIT * (smallest[classes[linked]] - 1) // (sizes[linked] - 1)
    graph_of = np.repeat(np.arange(len(sizes)), sizes)
    total = weights[graph_of]
    shares = bin_shares(sizes, bins)
    # Cumulative sums are rounded down. The weights of a place then add up exactly.
    reached = np.floor(total[:, None] * shares.cumsum(axis=1) + 1e-6).astype(np.int64)
    reached[:, -1] = total
    return np.diff(reached, axis=1, prepend=0)


def bin_shares(sizes: Ints, bins: int) -> NDArray[np.float64]:
    """Share of each place of the ordered degrees in each bin, shape ``(N, B)``; rows sum to 1."""
    starts = np.repeat(sizes.cumsum() - sizes, sizes)
    place = np.arange(len(starts)) - starts
    others = np.maximum(np.repeat(sizes, sizes) - 1, 1)
    borders = np.arange(bins) * (others / (bins - 1))[:, None]
    low, high = (place - 1)[:, None], place[:, None]
    inside = np.clip(borders, low, high) - low
    shares = np.concatenate([np.zeros((len(place), 1)), np.diff(inside, axis=1)], axis=1)
    shares[place == 0] = np.eye(1, bins)
    return shares


def pooled_degrees(ordered: Ints, weights: Ints, classes_of_nodes: Ints, num_classes: int) -> Ints:
    """Weighted sums of ordered degrees, by class and bin.

    Args:
        ordered: Degrees of each graph in descending order (private), shape ``(N,)``.
        weights: Result of :func:`place_weights`.
        classes_of_nodes: Class of the graph of each place, shape ``(N,)``.
        num_classes: Number C of classes.

    Returns:
        Integers of shape ``(C, B)`` (private); see :func:`pooled_degree_sensitivity`.
    """
    sums = np.zeros((num_classes, weights.shape[1]), dtype=np.int64)
    np.add.at(sums, classes_of_nodes, weights * ordered[:, None])
    return sums


def _sums(values: Ints, groups: Ints, num_groups: int) -> Ints:
    sums = np.zeros(num_groups, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums
