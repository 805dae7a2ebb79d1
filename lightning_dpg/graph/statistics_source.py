"""Counts and sums that methods ask of a graph, wherever its edges are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import Protocol, runtime_checkable


class CountsWedges(Protocol):
    """Chosen wedges of one graph."""

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Wedges and closed wedges by class, shape ``(2, K)``; each edge is in few of them.

        Args:
            slots: Number of slots of each node (public), shape ``(N,)``.
            classes: Class of each node (public), shape ``(N,)``.
            closures_per_edge: Number of wedges that a link may close (public).
            seed: Seed of the choice of wedges (public).
        """


class GraphStatisticsSource(CountsWedges, Protocol):
    """Exact counts of the edges of one graph, and sums over them (private), wherever the edges are.

    Sensitivities are those of the counts and sums; a source adds no noise and books nothing. It rounds
    nothing but public rows, see :func:`lightning_dpg.graph.neighbor_sums.on_grid`.
    """

    @property
    def edges(self) -> Tensor:
        """All edges, shape ``(M, 2)`` in ascending order; those of a table are read into memory."""

    def num_edges(self) -> int:
        """Number of edges M."""

    def degrees(self) -> Tensor:
        """Number of edges at each entry of the degree vector of the pairs."""

    def mixing(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Edges by the classes of their ends, shape ``(K, K)``, given public classes ``(N,)``."""

    def column_mixing(
        self, rows: NDArray[np.int64], sizes: Sequence[int], max_weight: int
    ) -> NDArray[np.int64]:
        """Weights of edges by the values of their ends, see :func:`exact_mixing`, undirected graphs.

        Args:
            rows: Value of each node in each private column, shape ``(N, J)`` (private).
            sizes: Number of values of each column (public).
            max_weight: Largest weight of all edges of a node together (public).
        """

    def joint_degrees(self, largest_two: int) -> NDArray[np.int64]:
        """Edges by the degrees of their ends, whose sum is at most ``largest_two`` (public)."""

    def neighbor_sums(self, rows: Tensor) -> Tensor:
        """Sum of the rows of each node's neighbors, shape ``(N, k)``, in an undirected graph.

        Args:
            rows: Rows of all nodes, shape ``(N, k)``: public, or functions of earlier releases.
        """


@runtime_checkable
class HoldsStatistics(Protocol):
    """Records of one graph in a table, whose edges are counted and not handed over.

    Attributes:
        statistics: The counts (private).
    """

    statistics: GraphStatisticsSource
