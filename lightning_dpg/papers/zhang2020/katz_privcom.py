"""PrivCom on a Katz matrix, for graphs of bounded degrees."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.papers.zhang2020.matrix import KatzMatrix
from lightning_dpg.papers.zhang2020.power_method import (
    DEGREE_SHARES,
    NoisyPowerMethod,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.matrix_products import katz_sensitivity


class KatzPrivCom(NoisyPowerMethod):
    r"""Graphs with communities, from a noisy Katz matrix of walks.

    The matrix is :math:`\sum_{l \le 2h+1} \beta^l A^l` at :math:`\beta = 1 / 2D`, with the public
    bound D on degrees: a provable version of the paper's idea, which also counts walks of 2h + 1
    edges. The number of edges and the degrees are released first; the rest is as in
    :class:`PrivCom`.

    When to use:
        To study the Katz matrix of the paper. :class:`PrivCom` is the better choice: the bound D
        costs far more than the hops gain.

    Privacy:
        (epsilon, delta)-DP at the level of edges (one undirected edge is added or removed), **if**
        no node has more than ``max_degree`` edges, in the graph and in its neighbors ("restricted"
        DP). A larger degree is refused, and this refusal is not protected. The set of nodes and the
        bound are public.

    Cost:
        T K (2h + 1) sparse products with vectors: time is O(T K (2h + 1) (N + M) + T K^2 N) and
        memory O(N K + M), with no limit on N.

    Differences from the paper:
        The relation is that of edges. The paper's decay makes the sensitivity 1 for any two graphs
        at once; here the decay and the sensitivity follow from the bound on degrees
        (:func:`katz_sensitivity`). The Katz matrix has an odd number of terms; eigenvalues of A
        can be computed from it.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        hops: Hops h of the Katz matrix.
        rank: Number of eigenvectors K.
        iterations: Steps T.
        momentum: Weight of the earlier steps, which averages noise.
        clip: Length to which rows of V are shortened, over that of the rows of a flat basis,
            :math:`\sqrt{K/N}`.
        degree_share: Share of epsilon for the number of edges and the degrees.
        value_share: Share of the rest (of its zCDP parameter) for the eigenvalues.
    """

    constraints: ClassVar[Constraints] = {
        "max_degree": MAX_DEGREE,
        "hops": replace(at_least(1), remedy="PrivCom has none"),
    }

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        hops: int = 1,
        rank: int = 4,
        iterations: int = 24,
        momentum: float = 0.85,
        clip: float = 0.5,
        degree_share: float = 0.2,
        value_share: float = 0.02,
    ) -> None:
        super().__init__(num_nodes, rank, iterations)
        self.save_hyperparameters()
        self.matrix = KatzMatrix(0.5 / max_degree, hops)

    def condition(self) -> str:
        """Condition of the guarantee: the bound on the degrees."""
        return degree_condition(self.hparams["max_degree"])

    def check_records(self, edges: Tensor) -> None:
        """Refuse degrees beyond the bound, and state the bound."""
        self.assumptions.append(degree_assumption(edges, self.hparams["max_degree"]))

    def planned_counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees."""
        part = budget.split(degrees=self.hparams["degree_share"])["degrees"]
        return degree_entries(part, **DEGREE_SHARES)

    def release_counts(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges and the degrees."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the change of the product by an edge, for any block."""
        decay, terms, most = self.matrix.decay, self.matrix.terms, self.hparams["max_degree"]
        return partial(katz_sensitivity, decay, terms, most)

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the change of the two-sided product by an edge."""
        return self.product_bound(basis)
