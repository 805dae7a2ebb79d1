"""PrivCom: private eigenvectors of the adjacency matrix, with noise for single edges."""

from functools import partial

from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.papers.zhang2020.power_method import (
    DEGREE_SHARES,
    NoisyPowerMethod,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.matrix_products import (
    edge_product_sensitivity,
    edge_rayleigh_sensitivity,
)


class PrivCom(NoisyPowerMethod):
    r"""Graphs with private communities, from noisy eigenvectors of the adjacency matrix (PrivCom).

    The number of edges and the degrees are released first (:func:`release_degrees`). The
    eigenvectors come from a noisy power method. Each of T steps shortens the rows of the released
    basis, and releases its product with the adjacency matrix, with Gaussian noise at its exact
    sensitivity (:func:`edge_product_sensitivity`). Oja's rule then turns the basis towards it.
    A last release holds the eigenvalues. Edges are drawn by degrees and communities.

    When to use:
        For the communities of a graph at a small budget, and of graphs beyond 6,000 nodes. Compare
        it with :class:`PrivGraph`, which needs no delta. Up to 6,000 nodes
        :class:`RandomizedResponsePrivCom` needs no delta either, and finds the eigenvectors better
        at a large epsilon. For the shape of a graph take :class:`BTER`.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition and assumes no bound on degrees. The set of nodes is public.

    Cost:
        T sparse products: time is O(T K (N + M) + T K^2 N) and memory O(N K + M), with no limit on
        N.

    Differences from the paper:
        The paper protects nodes, with noise that hides every graph (:class:`PrivComAsPublished`);
        here single edges are protected. The matrix is the adjacency matrix and no Katz matrix,
        because a bound on degrees costs more than its longer walks gain. The number of steps is a
        public setting, as the published one rounds to 0 and depends on the graph. Eigenvalues keep
        their signs.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.
    * Hardt, Roth, "Beyond worst-case analysis in private singular vector computation", 2013.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of eigenvectors K.
        iterations: Steps T.
        momentum: Weight of the earlier steps, which averages noise.
        clip: Length to which rows of V are shortened, over that of the rows of a flat basis,
            :math:`\sqrt{K/N}`.
        degree_share: Share of epsilon for the number of edges and the degrees.
        value_share: Share of the rest (of its zCDP parameter) for the eigenvalues.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        rank: int = 4,
        iterations: int = 24,
        momentum: float = 0.85,
        clip: float = 0.5,
        degree_share: float = 0.2,
        value_share: float = 0.02,
    ) -> None:
        super().__init__(num_nodes, rank, iterations)
        self.save_hyperparameters()

    def planned_counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees."""
        part = budget.split(degrees=self.hparams["degree_share"])["degrees"]
        return degree_entries(part, **DEGREE_SHARES)

    def release_counts(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges and the degrees."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the change of the product by an edge."""
        return partial(edge_product_sensitivity, block)

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the change of the two-sided product by an edge."""
        return partial(edge_rayleigh_sensitivity, basis)
