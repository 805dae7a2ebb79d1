"""PrivCom: private eigenvectors of the adjacency matrix, with noise for single edges."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.advice import MAX_REPORT_NODES, excess_of_reports
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks
from lightning_dpg.graph.spectral import noise_scale, shrunken, spectrum
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.papers.zhang2020.low_rank_edges import affinity_scores, low_rank_edges
from lightning_dpg.papers.zhang2020.power_method import (
    KatzMatrix,
    NoisyPowerMethod,
    checked_num_nodes,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import randomized_response, response_rates
from lightning_dpg.privacy.sensitivity.degrees import pair_bit_sensitivity
from lightning_dpg.privacy.sensitivity.matrix_products import (
    edge_product_sensitivity,
    edge_rayleigh_sensitivity,
    katz_sensitivity,
)


class RandomizedResponsePrivCom(OneShotSynthesizer):
    """Graphs with private communities, from eigenvectors of randomized responses.

    The number of edges and the degrees are released first (:func:`release_degrees`), then all pairs
    of nodes by randomized response. The leading eigenvectors of the unbiased estimate, with rows
    weighted by the excess of their degrees over the noise, give the communities. Edges are drawn as
    by :class:`PrivCom`.

    When to use:
        For communities of a graph of up to 100,000 nodes without a delta. At a small epsilon compare
        it with :class:`PrivCom` and :class:`PrivGraph`. For links take :class:`RandomizedResponse`
        with ``denoise: spectral``.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition and needs no delta. The set of nodes is public.

    Cost:
        Time is O(N + K reports) up to logarithms, and memory O(N K + reports). More than 100,000
        nodes, or 50,000,000 expected false reports, are refused before anything is spent.

    Differences from the paper:
        Randomized response takes the place of the noisy steps, the relation is that of edges, and
        the matrix is the adjacency matrix in place of a Katz matrix.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of eigenvectors K.
        degree_share: Share of epsilon for the number of edges and the degrees.
    """

    constraints: ClassVar[Constraints] = {"degree_share": SHARE}

    def __init__(
        self, num_nodes: int | None = None, rank: int = 4, degree_share: float = 0.2
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        size = checked_num_nodes(num_nodes, rank)
        if size > MAX_REPORT_NODES:
            raise MisconfigurationException(
                "RandomizedResponsePrivCom reports on all pairs of nodes, which are too many for "
                f"{size} nodes (at most {MAX_REPORT_NODES})\ntake PrivCom or, without a delta, PrivGraph"
            )
        self.vectors: Tensor = nn.Buffer(torch.zeros(size, rank, dtype=torch.double))
        self.rows: Tensor = nn.Buffer(torch.zeros(size, rank, dtype=torch.double))
        self.signs: Tensor = nn.Buffer(torch.ones(rank, dtype=torch.double))
        self.degrees: Tensor = nn.Buffer(torch.zeros(size, dtype=torch.long))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, the degrees and the reports."""
        share = self.hparams["degree_share"]
        parts = budget.split(counts=share, reports=1 - share)
        return [
            *degree_entries(parts["counts"]),
            self.read("edge_reports", "edges", parts["reports"], pair_bit_sensitivity),
        ]

    def _check_budget(self, budget: Budget) -> None:
        """Refuse a budget whose false reports are too many, by public facts alone."""
        super()._check_budget(budget)
        excess = excess_of_reports(len(self.rows), budget.epsilon, 1 - self.hparams["degree_share"])
        if excess is not None:
            raise MisconfigurationException(f"{excess}, or take PrivCom or PrivGraph")

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, the degrees and the reports; keep their eigenvectors."""
        read, (size, rank) = reads["edge_reports"], self.rows.shape
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        law = randomized_response(read, num_pairs(size))
        numbers = self.pay(read, pair_ranks(source.edges, size), law)
        rates = response_rates(read.event.pure_epsilon)
        scale = noise_scale(self.degrees, *rates)
        eigenpairs = spectrum(pairs_of_ranks(numbers, size), size, rank, *rates, scale=scale)
        padding = (0, rank - len(eigenpairs.values))
        self.rows = nn.functional.pad(shrunken(eigenpairs), padding)
        self.vectors = nn.functional.pad(eigenpairs.vectors, padding)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw ``num_edges`` edges by degrees and angles."""
        rows, signs = self.rows.cpu(), self.signs.cpu()
        return low_rank_edges(rows, signs, self.degrees.cpu(), int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Degrees times affinity of pairs of shape ``(P, 2)``."""
        return affinity_scores(self.rows, self.signs, self.degrees, pairs)


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

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the change of the product by an edge, for any block."""
        decay, terms, most = self.matrix.decay, self.matrix.terms, self.hparams["max_degree"]
        return partial(katz_sensitivity, decay, terms, most)

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the change of the two-sided product by an edge."""
        return self.product_bound(basis)


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

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the change of the product by an edge."""
        return partial(edge_product_sensitivity, block)

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the change of the two-sided product by an edge."""
        return partial(edge_rayleigh_sensitivity, basis)
