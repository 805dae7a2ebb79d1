"""PrivCom with the published formulas, where they differ from the corrected ones."""

import math
from functools import partial
from typing import ClassVar

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.planning import Reads
from lightning_dpg.papers.zhang2020.power_method import KatzMatrix, NoisyPowerMethod, Oja
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.matrix_products import paper_sensitivity

_ALPHA = 5e-6  # as printed
_BLOCK = 2**22  # pair products in memory at a time


class PrivComAsPublished(NoisyPowerMethod):
    """PrivCom as published: its noise hides the graph completely.

    It uses the decay of Lemma 3, the classical Gaussian mechanism at sensitivity 1 with basic
    composition, eigenvalues as roots, and a Laplacian as for effective resistances. The statement
    reports the epsilon of the paper, which is the budget, beside the smaller epsilon that the noise
    spends.

    When to use:
        To check the published formulas. Apart from the number of edges its output shows nothing of
        the graph, and a run prints the ratio of signal to noise. For communities take
        :class:`PrivCom` or :class:`PrivGraph`.

    Privacy:
        (epsilon, delta)-DP at the level of nodes (all edges of one node are removed; the node
        stays). The exact number of edges is assumed public, as in the paper, and the set of nodes
        is public.

    Cost:
        Time is O(T K (2h + 1) (N + M) + T K^2 N) and memory O(N K + M) for a run. To draw a graph
        takes time O(N^2 K), since all pairs are compared.

    Differences from the paper:
        Only the number of steps T differs: the published one is below 1 and depends on the graph.
        Claims of the paper that do not hold: the sensitivity covers any two graphs at once. The
        release then has no signal of the graph, and the communities of its figure cannot come
        from this mechanism. The number under the root of an eigenvalue may be negative, and the
        Laplacian is right for effective resistances but not for a Katz matrix.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        hops: Hops h of the Katz matrix.
        rank: Number of eigenvectors K.
        iterations: Steps T.
    """

    relation = Relation.NODE
    constraints: ClassVar[Constraints] = {"hops": at_least(0)}

    def __init__(
        self, num_nodes: int | None = None, hops: int = 0, rank: int = 4, iterations: int = 24
    ) -> None:
        super().__init__(num_nodes, rank, iterations)
        self.save_hyperparameters()
        self.matrix = KatzMatrix(printed_decay(len(self.rows), rank), hops)

    def configure_optimizers(self) -> Oja:
        """Build Oja's rule without momentum."""
        return Oja([self.vectors])

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper: its noise spends the budget by basic composition."""
        return self.budget.epsilon

    def check_records(self, edges: Tensor) -> None:
        """State the paper's assumptions about public facts."""
        self.assumptions.append("the exact number of edges, as the paper takes it")

    def announce(self) -> None:
        """Report the largest possible signal relative to the noise, if there is noise."""
        std = self.product_std()
        if not std:
            return
        size, rank = self.rows.shape
        ratio = self.matrix.signal_to_noise(size - 1, size, rank, std)
        rank_zero_warn(
            f"signal-to-noise ratio of a step: at most {ratio:.2g}, whatever the graph\n"
            "far below 1 noise alone decides: this graph and one without edges give the same "
            "releases, and what communities they show are those of noise"
        )

    def planned_counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan no counts: the number of edges is assumed public."""
        return []

    def release_counts(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Read the exact number of edges."""
        self.num_edges.fill_(source.num_edges())

    def calibrated(self, budget: Budget) -> list[float]:
        """Noise multipliers of a step and of each eigenvalue, by equal parts of the budget."""
        return [printed_sigma(budget, self.hparams["iterations"] + self.num_values)] * 2

    @property
    def num_values(self) -> int:
        """Each eigenvalue is a release of its own."""
        return int(self.hparams["rank"])

    @property
    def longest_row(self) -> float:
        """Rows are not shortened."""
        return 1.0

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the difference between any two graphs."""
        return partial(paper_sensitivity)

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the difference between the squares of any two graphs."""
        return partial(paper_sensitivity)

    def direction(self) -> Tensor:
        """Direction of the next step: the noisy product, added to the basis at the printed rate."""
        steps, sigma = int(self.steps_planned), float(self.noise_multipliers[0])
        return printed_direction(self.vectors.detach(), super().direction(), steps, sigma)

    @torch.no_grad()
    def release_values(self) -> None:
        """Release squared eigenvalues; the radicand of the paper's root may be negative."""
        basis = self.vectors.detach()
        squares = self.times(basis).square().sum(dim=0)
        read = self.value_entry(basis, float(self.noise_multipliers[1]))
        noisy = [self.pay(read, square) for square in squares]
        self.keep_estimate(torch.stack(noisy).clamp(min=0).sqrt())

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Return the heaviest edges, without randomness."""
        return printed_edges(self.rows.cpu(), int(self.num_edges))

    def score(self, pairs: Tensor) -> Tensor:
        """The Katz index of pairs of shape ``(P, 2)``."""
        first, second = pairs.to(self.rows.device).T
        return (self.rows[first] * self.rows[second]).sum(dim=1)


def printed_decay(num_nodes: int, rank: int) -> float:
    r"""Decay :math:`\beta = 1 / ((n - 1)(n^{3/2} k^{1/2} + 1))` of Lemma 3."""
    return 1 / (max(num_nodes - 1, 1) * (num_nodes**1.5 * rank**0.5 + 1))


def printed_sigma(budget: Budget, releases: int) -> float:
    r"""Noise :math:`\sqrt{2 \ln(1.25 / \delta_i)} / \epsilon_i` of each release, by equal parts."""
    if math.isinf(budget.epsilon):
        return 0.0
    return math.sqrt(2 * math.log(1.25 * releases / budget.delta)) * releases / budget.epsilon


def printed_direction(basis: Tensor, noisy: Tensor, steps: int, sigma: float) -> Tensor:
    r"""The sum :math:`V + \eta (HV + \mathrm{noise})` over its rate :math:`\eta`, whose QR is equal.

    The rate is :math:`\eta = 1 / (\gamma \sigma \sqrt n)` with the number of steps :math:`\gamma`.

    Args:
        basis: V of shape ``(N, K)``.
        noisy: Noisy product, shape ``(N, K)``.
        steps: Number of steps.
        sigma: Standard deviation of the noise.
    """
    return steps * sigma * len(basis) ** 0.5 * basis + noisy


def printed_edges(rows: Tensor, num_edges: int) -> Tensor:
    """Heaviest edges of the Laplacian derived from a Katz matrix, shape ``(M, 2)``.

    Negative weights are removed, and there may be fewer than ``num_edges``.
    """
    laplacian = laplacian_rows(rows, _ALPHA)
    return heaviest_pairs(
        laplacian, -torch.ones(laplacian.shape[1], dtype=laplacian.dtype), num_edges
    )


def laplacian_rows(rows: Tensor, alpha: float) -> Tensor:
    r"""Factor the graph whose Laplacian PrivCom derives from a Katz matrix :math:`H = XX^T`.

    The paper takes :math:`L = -2 [(I - J/n) H (I - J/n) + \alpha I]^+`. With the centered rows W
    that matrix is positive definite, and its inverse :math:`\frac{1}{\alpha} (I - W (\alpha I + W^T
    W)^{-1} W^T)` takes the Cholesky factor C of a K x K matrix: an edge {i, j} has the weight
    :math:`-L_{ij} = -\frac{2}{\alpha} y_i^T y_j` with the rows y of :math:`W C^{-T}`.

    The formula is that of effective resistances, which are distances. A Katz index is large for
    near nodes; the edges therefore come out between nodes that are far apart.

    Args:
        rows: Factor X of shape ``(N, K)``.
        alpha: Regularization, positive.

    Returns:
        Rows z of shape ``(N, K)``; the weight of an edge is minus the product of its ends' rows.

    References:
        Courrieu, "Fast computation of Moore-Penrose inverse matrices", 2005, for a full matrix.
    """
    centered = rows.double() - rows.double().mean(dim=0)
    inner = centered.T @ centered + alpha * torch.eye(rows.shape[1], dtype=torch.double)
    factor = torch.linalg.cholesky(inner)
    solved = torch.linalg.solve_triangular(factor, centered.T, upper=False).T
    return solved * (2 / alpha) ** 0.5


def heaviest_pairs(rows: Tensor, signs: Tensor, count: int) -> Tensor:
    r"""Find the pairs of largest positive :math:`\sum_k s_k x_{ik} x_{jk}`, in blocks of pairs.

    Args:
        rows: Rows x of shape ``(N, K)``.
        signs: Signs s of shape ``(K,)``.
        count: Number of pairs wanted; there are fewer if fewer are positive.

    Returns:
        Rows ``i < j`` of shape ``(count, 2)`` in lexicographic order.
    """
    num_nodes, step = len(rows), max(1, _BLOCK // max(len(rows), 1))
    weights, pairs = rows.new_empty(0), torch.empty(0, 2, dtype=torch.long)
    for start in range(0, num_nodes, step):
        products = (rows[start : start + step] * signs) @ rows.T
        first, second = (products.triu(start + 1) > 0).nonzero().T
        weights = torch.cat([weights, products[first, second]])
        pairs = torch.cat([pairs, torch.stack([first + start, second], dim=1)])
        heaviest = weights.topk(min(count, len(weights))).indices.sort().values
        weights, pairs = weights[heaviest], pairs[heaviest]
    return pairs
