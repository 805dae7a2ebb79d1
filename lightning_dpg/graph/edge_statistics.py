"""Counts of a graph whose edges are in memory, see ``GraphStatisticsSource``."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.exact_mixing import exact_mixing
from lightning_dpg.graph.joint_degrees import joint_degrees
from lightning_dpg.graph.neighbor_sums import neighbor_sums
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.stubs import count_links, numbered_pairs
from lightning_dpg.graph.wedges import BLOCK, count_wedges, wedges_over_blocks


class EdgeStatistics:
    """Exact counts of edges in memory (private).

    Args:
        edges: Records of shape ``(M, 2)`` (private).
        space: Pairs of nodes that may be linked (public).

    Attributes:
        edges: The records.
    """

    def __init__(self, edges: Tensor, space: PairSpace) -> None:
        self.edges, self._space = edges, space

    def num_edges(self) -> int:
        """Count the edges."""
        return len(self.edges)

    def degrees(self) -> Tensor:
        """Count the edges at each entry of the degree vector, shape ``(num_ends,)``."""
        return self._space.degrees(self.edges)

    def mixing(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count edges by the classes of their ends, see :func:`count_links`: shape ``(K, K)``."""
        return count_links(classes, self.edges.numpy())

    def column_mixing(
        self, rows: NDArray[np.int64], sizes: Sequence[int], max_weight: int
    ) -> NDArray[np.int64]:
        """Sum weights by the values of private columns, see :func:`exact_mixing`."""
        degrees = self.degrees().numpy()
        return exact_mixing(self.edges.numpy(), degrees, rows, sizes, max_weight)

    def joint_degrees(self, largest_two: int) -> NDArray[np.int64]:
        """Count edges by the degrees of their ends, see :func:`joint_degrees`: ``(C,)``."""
        return joint_degrees(self.edges.numpy(), self.degrees().numpy(), largest_two)

    def neighbor_sums(self, rows: Tensor) -> Tensor:
        """Sum the rows of each node's neighbors, see :func:`neighbor_sums`: shape ``(N, k)``."""
        return neighbor_sums(self.edges, rows)

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Count chosen wedges and closed wedges, see :func:`count_wedges`: shape ``(2, K)``."""
        return count_wedges(self.edges.numpy(), slots, classes, closures_per_edge, seed)


class NumberedEdges:
    """Counts of edges that are one number each, see :func:`pair_numbers`: half the memory.

    Args:
        numbers: Numbers of shape ``(M,)``.
        num_nodes: Number of nodes N.
    """

    def __init__(self, numbers: NDArray[np.int64], num_nodes: int) -> None:
        self._numbers, self._num_nodes = numbers, num_nodes

    def num_edges(self) -> int:
        """Count the edges."""
        return len(self._numbers)

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Count chosen wedges and closed wedges, see :func:`count_wedges`: shape ``(2, K)``."""
        return wedges_over_blocks(self._blocks, slots, classes, closures_per_edge, seed)

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(self._numbers), BLOCK):
            yield numbered_pairs(self._numbers[start : start + BLOCK], self._num_nodes)
