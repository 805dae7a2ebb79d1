"""Common neighbors of pairs of nodes, which are the triangles on an edge."""

import numpy as np
from numpy.typing import NDArray

_LOOKUPS = 2**22  # neighbors that are looked at at once; a pair may have more


class CommonNeighbors:
    """Neighbors of the nodes of a graph, to count those that pairs have in common.

    Args:
        edges: Different edges of shape ``(M, 2)``, without loops.
        num_nodes: Number of nodes N.
    """

    def __init__(self, edges: NDArray[np.int64], num_nodes: int) -> None:
        self._num_nodes = num_nodes
        first, second = np.concatenate([edges, edges[:, ::-1]]).T
        self._keys = np.sort(first * num_nodes + second)
        self._degrees = np.bincount(first, minlength=num_nodes)
        self._starts = np.cumsum(self._degrees) - self._degrees

    def count(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the common neighbors of pairs ``(P, 2)``, at the cost of the smaller degrees."""
        one, other = pairs.T
        is_smaller = self._degrees[one] <= self._degrees[other]
        center, target = np.where(is_smaller, one, other), np.where(is_smaller, other, one)
        # Neighboring lookups touch neighboring memory.
        order = np.argsort(target, kind="stable")
        ends = np.cumsum(self._degrees[center[order]])
        marks = np.searchsorted(ends, np.arange(_LOOKUPS, ends[-1:].sum(), _LOOKUPS))
        counts = np.zeros(len(pairs), dtype=np.int64)
        for block in np.split(order, marks):
            lengths = self._degrees[center[block]]
            owner = np.repeat(np.arange(len(block)), lengths)
            rank = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            neighbors = self._keys[self._starts[center[block]][owner] + rank] % self._num_nodes
            keys = target[block][owner] * self._num_nodes + neighbors
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            counts[block] = np.bincount(owner[self._keys[places] == keys], minlength=len(block))
        return counts
