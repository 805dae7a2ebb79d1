"""A noisy power method: private leading eigenvectors by Oja's rule, and graphs drawn from them."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.interfaces import BatchRequest, GraphRecords
from lightning_dpg.methods.base import needed_num_nodes
from lightning_dpg.methods.constraints import POSITIVE, SHARE, Constraints, at_least
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.single_graph.base import statistics_of
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.zhang2020.katz import inverse_katz, katz, katz_product
from lightning_dpg.papers.zhang2020.low_rank_edges import affinity_scores, low_rank_edges
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.sensitivity.matrix_products import rounded_up


class KatzMatrix(NamedTuple):
    r"""The matrix :math:`\sum_{l \le 2h+1} \beta^l A^l` of an adjacency matrix A, by public facts.

    Attributes:
        decay: Decay :math:`\beta`.
        hops: Hops h.
    """

    decay: float
    hops: int

    @property
    def terms(self) -> int:
        """Number of terms; as it is odd, eigenvalues determine those of the adjacency matrix."""
        return 2 * self.hops + 1

    def times(self, adjacency: csr_array, block: Tensor) -> Tensor:
        """Product with a block of vectors of shape ``(N, K)`` (private)."""
        product = katz_product(adjacency, block.cpu().numpy(), self.decay, self.terms)
        return torch.from_numpy(product).to(block.device)

    def signal_to_noise(self, max_degree: int, num_nodes: int, rank: int, std: float) -> float:
        """Largest possible ratio over all graphs (public).

        The signal is the largest eigenvalue, the noise a spectral norm.

        Args:
            max_degree: Largest degree that a node can have.
            num_nodes: Number of nodes N.
            rank: Number K of vectors.
            std: Standard deviation of the noise in a product, positive.
        """
        signal = float(katz(np.array([float(max_degree)]), self.decay, self.terms)[0])
        return signal / (std * (math.sqrt(num_nodes) + math.sqrt(rank)))


ADJACENCY = KatzMatrix(decay=1.0, hops=0)
"""The adjacency matrix itself."""


class Oja(torch.optim.Optimizer):
    r"""Optimizer that turns an orthonormal basis toward the leading eigenvectors of a matrix.

    With the product of the matrix and the basis V, possibly noisy, in ``.grad``, a step is

    .. math:: M \leftarrow \mu M + \mathrm{grad}, \qquad V \leftarrow \mathrm{QR}(M)

    Without momentum this is orthogonal iteration. With momentum M is a mean over steps: noise
    averages out, and eigenvectors of negative eigenvalues cancel, because their sign alternates.
    The QR decomposition has a positive diagonal: equal columns keep their signs.

    * Oja, "A simplified neuron model as a principal component analyzer", 1982.
    * Hardt, Price, "The noisy power method: a meta algorithm with applications", 2014.

    Args:
        params: Bases of shape ``(N, K)`` with K columns, at most N.
        momentum: Weight :math:`\mu` of the past, from 0 to below 1.
    """

    def __init__(self, params: Iterable[nn.Parameter], momentum: float = 0.0) -> None:
        """Check the arguments."""
        if not 0 <= momentum < 1:
            raise Refusal(f"momentum must be in [0, 1), got {momentum}")
        super().__init__(params, {"momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with each basis whose product is in ``.grad``."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for basis in group["params"]:
                if basis.grad is not None:
                    basis.copy_(orthonormal(self._mean(basis, basis.grad, group["momentum"])))
        return loss

    def _mean(self, basis: Tensor, product: Tensor, momentum: float) -> Tensor:
        """Return the product with momentum over earlier steps, shape ``(N, K)``."""
        if not momentum:
            return product
        state = self.state[basis]
        if "products" not in state:
            state["products"] = torch.zeros_like(basis)
        products: Tensor = state["products"].mul_(momentum).add_(product)
        return products


def orthonormal(matrix: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns ``(N, K)``, by QR with a positive diagonal."""
    basis, triangle = torch.linalg.qr(matrix)
    signs = torch.where(triangle.diagonal() < 0, -1.0, 1.0).to(basis)
    return basis * signs


# Public: the signs from which the eigenvectors start.
_START_SEED = 0


class NoisyPowerMethod(Synthesizer):
    r"""Private eigenvectors of a matrix of the graph, and graphs with its communities.

    The method starts from public random signs. Each of T steps shortens the rows of the basis V to
    a public length, and releases the product of the matrix with this flat block of vectors, with
    Gaussian noise at its sensitivity. :class:`Oja` then rotates V towards the product. Finally
    the two-sided product of the matrix with V is released, whose eigenvalues separate eigenvectors
    from noise. Counts of edges are released before the steps.

    The rest is post-processing: edges are drawn by degrees and by the angles between the rows of the
    low-rank estimate of the adjacency matrix, see :func:`low_rank_edges`.

    A subclass defines the guarantee: the relation, the matrix, the sensitivities of its products
    with their proofs, and the counts. All its buffers and parameters are released tensors.

    Args:
        num_nodes: Number of nodes N (public).
        rank: Number of eigenvectors K.
        iterations: Steps T.
    """

    capabilities = replace(Synthesizer.capabilities, is_trained=False)
    constraints: ClassVar[Constraints] = {
        "iterations": at_least(1),
        "clip": POSITIVE,
        "degree_share": SHARE,
        "value_share": SHARE,
    }
    records: GraphRecords

    def __init__(self, num_nodes: int | None, rank: int, iterations: int) -> None:
        super().__init__()
        size = checked_num_nodes(num_nodes, rank)
        self.matrix: KatzMatrix = ADJACENCY
        signs = torch.randn(size, rank, generator=torch.Generator().manual_seed(_START_SEED))
        self.vectors = nn.Parameter(orthonormal(torch.where(signs < 0, -1.0, 1.0).double()))
        self.rows: Tensor = nn.Buffer(torch.zeros(size, rank, dtype=torch.double))
        self.signs: Tensor = nn.Buffer(torch.ones(rank, dtype=torch.double))
        self.degrees: Tensor = nn.Buffer(torch.zeros(size, dtype=torch.long))
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))
        self.is_released: Tensor = nn.Buffer(torch.tensor(False))
        self.steps_made: Tensor = nn.Buffer(torch.tensor(0))
        self.steps_planned: Tensor = nn.Buffer(torch.tensor(0))
        # Noise of a step, and of the eigenvalues.
        self.noise_multipliers: Tensor = nn.Buffer(torch.zeros(2, dtype=torch.double))
        self._adjacency: csr_array | None = None

    def planned_counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan all reads before the steps, from the whole budget: the number of edges, and degrees."""
        part = budget.split(degrees=self.hparams["degree_share"])["degrees"]
        return degree_entries(part)

    def release_counts(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Pay for the reads of :meth:`planned_counts`."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)

    @abstractmethod
    def product_bound(self, block: Tensor) -> "partial[float]":
        """Sensitivity of the product of the matrix with a public block ``(N, K)``, not yet called."""

    @abstractmethod
    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Sensitivity of the two-sided product with a public basis ``(N, K)``, not yet called."""

    def check_records(self, edges: Tensor) -> None:
        """Refuse invalid records, and state assumptions about them, before any release."""

    def batch_request(self) -> BatchRequest:
        """All records at each of the T steps."""
        return BatchRequest("all", steps_per_epoch=self.hparams["iterations"])

    def configure_optimizers(self) -> Oja:
        """Build Oja's rule."""
        return Oja([self.vectors], self.hparams["momentum"])

    def on_fit_start(self) -> None:
        """Release the counts, and fix the noise of the steps."""
        super().on_fit_start()
        self.check_records(self.records.edges)
        if not self.steps_planned:  # a resumed run has released them
            multipliers = self.calibrated(self.budget)
            reads = by_key(self.planned_counts(self.budget))
            self.steps_planned.fill_(self.hparams["iterations"])
            self.release_counts(statistics_of(self.records, self.space), reads)
            self.noise_multipliers = torch.tensor(multipliers, dtype=torch.double)
        self.announce()
        if not self.is_released and not self.ledger.affords(*self.step_entries()):
            self._finish()  # a killed run may have spent more than its checkpoint records

    def calibrated(self, budget: Budget) -> list[float]:
        """Noise multipliers of a step and of the eigenvalues, which spend the rest of the budget.

        Raises:
            BudgetTooSmall: If no amount of noise keeps the budget.
        """
        steps, share = self.hparams["iterations"], self.hparams["value_share"]
        sigma = calibrate_noise_multiplier(budget, other=self.planned_counts(budget))
        return [sigma * math.sqrt(steps / (1 - share)), sigma / math.sqrt(share)]

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the counts, T products and the eigenvalues.

        Sensitivities depend on earlier releases; the plan uses the largest possible ones.

        Args:
            budget: What the run may spend.
            steps: Not read: the steps are a setting.

        Raises:
            BudgetTooSmall: If no amount of noise keeps the budget.
        """
        for_product, for_values = self.calibrated(budget)
        longest, whole = (torch.full_like(self.rows, x) for x in (self.longest_row, 1.0))
        scale = self.rows.shape[1] ** -0.5
        products = self.product_entry(longest * scale, for_product)
        return [
            *self.planned_counts(budget),
            replace(products, steps=self.hparams["iterations"]),
            replace(self.value_entry(whole * scale, for_values), steps=self.num_values),
        ]

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next step and of the eigenvalues, which must remain affordable."""
        if self.is_released:
            return []
        for_product, for_values = self.noise_multipliers.tolist()
        values = self.value_entry(self.vectors.detach(), for_values)
        return [
            self.product_entry(self.shown_block(), for_product),
            replace(values, steps=self.num_values),
        ]

    @property
    def longest_row(self) -> float:
        """Length to which long rows of a block are shortened."""
        size, rank = self.rows.shape
        return float(self.hparams["clip"] * math.sqrt(rank / size))

    @property
    def num_values(self) -> int:
        """Number of releases for the eigenvalues."""
        return 1

    def product_entry(self, block: Tensor, noise_multiplier: float) -> LedgerEntry:
        """Cost of the product with a public block of shape ``(N, K)``."""
        return self._entry("products", self.product_bound(block), noise_multiplier)

    def value_entry(self, basis: Tensor, noise_multiplier: float) -> LedgerEntry:
        """Cost of the two-sided product with a public basis."""
        return self._entry("eigenvalues", self.value_bound(basis), noise_multiplier)

    def _entry(self, key: str, bound: "partial[float]", noise_multiplier: float) -> LedgerEntry:
        return LedgerEntry(
            key=key,
            name=key,
            relation=self.relation,
            event=Gaussian(noise_multiplier),
            sensitivity=rounded_up(bound()),
            proof=bound.func.__name__,
        )

    def announce(self) -> None:
        """Report the noise before the first step, from public numbers only."""

    def product_std(self) -> float:
        """Standard deviation of the noise in the next product (public)."""
        return self.product_entry(self.shown_block(), float(self.noise_multipliers[0])).scale

    def shown_block(self) -> Tensor:
        """The basis with its rows shortened (public), shape ``(N, K)``."""
        basis = self.vectors.detach()
        return basis * (self.longest_row / basis.norm(dim=1, keepdim=True)).clamp(max=1)

    def times(self, block: Tensor) -> Tensor:
        """Product of the matrix and a block of vectors of shape ``(N, K)`` (private)."""
        if self._adjacency is None:
            self._adjacency = adjacency(self.records.graph)
        return self.matrix.times(self._adjacency, block)

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Take one step of Oja's rule on all records; the last step releases the eigenvalues."""
        if self.is_released:
            self.trainer.should_stop = True
            return
        self.vectors.grad = self.direction()
        self.optimizers().step()  # type: ignore[union-attr]
        self.steps_made += 1
        if self.steps_made >= self.steps_planned or not self.ledger.affords(*self.step_entries()):
            self._finish()

    def direction(self) -> Tensor:
        """Direction of the next step, ``(N, K)``: the product with :meth:`shown_block` (noisy)."""
        shown = self.shown_block()
        read = self.product_entry(shown, float(self.noise_multipliers[0]))
        return self.pay(read, self.times(shown))

    def _finish(self) -> None:
        """Release the eigenvalues and drop the graph."""
        self.release_values()
        self._adjacency = None
        self.is_released.fill_(True)
        self.trainer.should_stop = True

    @torch.no_grad()
    def release_values(self) -> None:
        """Release the two-sided product; rotate V and the rows to its eigenvectors."""
        basis = self.vectors.detach()
        product = basis.T @ self.times(basis)
        noisy = self.pay(self.value_entry(basis, float(self.noise_multipliers[1])), product)
        values, turn = torch.linalg.eigh((noisy + noisy.T) / 2)
        values, turn = values.flip(0), turn.flip(1)
        self.vectors.copy_(basis @ turn)
        back = inverse_katz(values.cpu().numpy(), self.matrix.decay, self.matrix.terms)
        self.keep_estimate(torch.from_numpy(back))

    @torch.no_grad()
    def keep_estimate(self, values: Tensor) -> None:
        """Keep the low-rank estimate with the eigenvalues of shape ``(K,)``."""
        values = values.to(self.vectors)
        self.rows = self.vectors.detach() * values.abs().sqrt()
        self.signs = torch.where(values < 0, -1.0, 1.0).to(values)

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw ``num_edges`` edges by degrees and angles."""
        rows, signs = self.rows.cpu(), self.signs.cpu()
        return low_rank_edges(rows, signs, self.degrees.cpu(), int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Degrees times affinity of pairs of shape ``(P, 2)``."""
        return affinity_scores(self.rows, self.signs, self.degrees, pairs)


def checked_num_nodes(num_nodes: int | None, rank: int) -> int:
    """Return the number of nodes if it is known and not below the number of vectors.

    Raises:
        MisconfigurationException: If it is unknown.
        Refusal: If the rank is out of range.
    """
    size = needed_num_nodes(num_nodes)
    if not 1 <= rank <= size:
        raise Refusal(f"rank must be from 1 to the {size} nodes, got {rank}")
    return size
