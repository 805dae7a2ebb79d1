"""PrivCom: leading eigenvectors of the adjacency matrix by Oja's rule, within a budget."""

import math
from typing import Any, ClassVar, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from scipy.sparse import csr_array
from torch import Tensor, nn

from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.katz import inverse_katz
from lightning_dpg.graph.low_rank_edges import Affinity, degrees_by_rows, low_rank_edges
from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs, pair_numbers
from lightning_dpg.graph.spectral import noise_scale, shrunken, spectrum
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import release_degrees
from lightning_dpg.methods.single_graph.privcom.as_published import (
    printed_direction,
    printed_edges,
    printed_sigma,
)
from lightning_dpg.methods.single_graph.privcom.matrix import PrivateMatrix
from lightning_dpg.methods.single_graph.privcom.settings import checked_num_nodes, degree_assumption
from lightning_dpg.nn.oja import Oja, orthonormal
from lightning_dpg.privacy.calibration import remaining_noise_multiplier
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import gaussian, randomized_response, response_rates
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity

# Public: the signs from which the eigenvectors start.
_START_SEED = 0
# Parts of the degrees' share, as in PrivGraph.
_COUNT_PART = 0.2
_SEQUENCE_PART = 0.25


class PrivCom(OneShotSynthesizer):
    r"""Communities by private eigenvectors of the adjacency matrix, and graphs that have them.

    ``release: noisy_oja`` is a noisy power method for graphs of any size. It starts from public
    random signs. In each of T steps the rows of the basis V are shortened to a public length, which
    makes a flat block of vectors of it, the product with the adjacency matrix A is released with
    Gaussian noise at its exact sensitivity, and :class:`Oja` turns V towards it. At last
    :math:`V^T A V` is released, whose eigenvalues tell eigenvectors from noise.

    ``release: rr_spectral`` releases all pairs of nodes by randomized response and takes the leading
    eigenvectors of the unbiased estimate, its rows weighed by how far their degrees exceed the
    noise; pure epsilon-DP, better for small graphs, up to 6,000 nodes.

    Either way the number of edges and the degrees are released beside them (:func:`release_degrees`),
    and the rest is post-processing: edges are drawn by degrees and by the angles between the rows
    of the low-rank estimate of A, see :func:`low_rank_edges`.

    ``relation: node`` protects all edges of a node among graphs of degrees up to ``max_degree``,
    which is assumed: "restricted" node-level DP. Its noise is as large as the signal can be. With
    ``hops`` h the matrix is the Katz matrix :math:`\sum_{l \le 2h+1} \beta^l A^l`, the idea of the
    paper with a proof, at :math:`\beta = 1 / 2D`; the bound D costs far more than the hops bring.

    ``mode: paper`` follows the printed formulas: Katz matrix with the decay of Lemma 3, noise of the
    textbook's Gaussian mechanism at sensitivity 1, basic composition, eigenvalues as roots, and a
    Laplacian as for effective resistances. Only the number of steps is another one: as printed it
    is 0 and private. Nothing of the graph is left, as the ratio that it prints says.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020. Hardt, Roth, "Beyond worst-case analysis in private singular vector computation", 2013.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        release: ``noisy_oja`` or ``rr_spectral``.
        relation: ``edge`` or ``node``.
        mode: ``corrected`` or ``paper``.
        rank: Number of eigenvectors K.
        iterations: Steps T, at most the batches of the run.
        momentum: Weight of the earlier steps, out of which noise averages.
        clip: Length to which rows of V are shortened, over that of the rows of a flat basis,
            :math:`\sqrt{K/N}`.
        degree_share: Share of epsilon for the number of edges and the degrees.
        value_share: Share of what is left (of its zCDP parameter) for the eigenvalues.
        hops: Hops h of the Katz matrix; 0 is the adjacency matrix.
        max_degree: Largest degree D (public, assumed): for ``relation: node`` and for ``hops``.
    """

    is_pure: ClassVar[bool] = False

    def __init__(
        self,
        num_nodes: int | None = None,
        release: Literal["noisy_oja", "rr_spectral"] = "noisy_oja",
        relation: Literal["edge", "node"] = "edge",
        mode: Literal["corrected", "paper"] = "corrected",
        rank: int = 4,
        iterations: int = 24,
        momentum: float = 0.85,
        clip: float = 0.5,
        degree_share: float = 0.2,
        value_share: float = 0.02,
        hops: int = 0,
        max_degree: int | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        size = checked_num_nodes(self.hparams)
        self.relation = Relation(relation)
        self.ledger = PrivacyLedger(self.relation)
        signs = torch.randn(size, rank, generator=torch.Generator().manual_seed(_START_SEED))
        self.vectors = nn.Parameter(orthonormal(torch.where(signs < 0, -1.0, 1.0).double()))
        self.rows: Tensor
        self.signs: Tensor
        self.degrees: Tensor
        self.steps_made: Tensor
        self.steps_planned: Tensor
        self.noise_multipliers: Tensor
        self.register_buffer("rows", torch.zeros(size, rank, dtype=torch.double))
        self.register_buffer("signs", torch.ones(rank, dtype=torch.double))
        self.register_buffer("degrees", torch.zeros(size, dtype=torch.long))
        self.register_buffer("steps_made", torch.tensor(0))
        self.register_buffer("steps_planned", torch.tensor(0))
        # Of a step, and of the eigenvalues.
        self.register_buffer("noise_multipliers", torch.zeros(2, dtype=torch.double))
        bound = None if mode == "paper" else max_degree
        self.matrix = PrivateMatrix(self.relation, size, rank, hops, bound, mode == "paper")
        self._adjacency: csr_array | None = None
        self._shown = self.vectors.detach()

    def configure_optimizers(self) -> Oja:
        """Oja's rule, without momentum where the paper has none."""
        h = self.hparams
        return Oja([self.vectors], h["momentum"] if h["mode"] == "corrected" else 0.0)

    def on_fit_start(self) -> None:
        """Release the number of edges and the degrees, and settle the noise of the steps."""
        super().on_fit_start()
        data, h = self.trainer.datamodule, self.hparams  # type: ignore[attr-defined]
        if h["mode"] == "paper":
            self.assumptions.append("The exact number of edges is public, as the paper takes it.")
        elif h["max_degree"] is not None:
            self.assumptions.append(degree_assumption(data.edges, h["max_degree"]))
        if not self.steps_planned:  # else a resumed run, which has released them
            self.release(data.edges, self.budget.epsilon)
        self._announce()
        if not self.is_released and not self.ledger.affords(*self.step_entries()):
            self._finish()  # a run that was killed has spent more than its checkpoint knows

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release what the steps do not: the number of edges and the degrees.

        Args:
            edges: Training records of shape ``(M, 2)`` (private).
            epsilon: That of the whole budget; noise is settled for what is left.
        """
        h = self.hparams
        batches = self.trainer.estimated_stepping_batches
        is_iterated = h["release"] == "noisy_oja"
        self.steps_planned.fill_(int(min(h["iterations"], batches)) if is_iterated else 1)
        if h["mode"] == "paper":
            self.num_edges.fill_(len(edges))
            releases = int(self.steps_planned) + h["rank"]
            self.noise_multipliers.fill_(printed_sigma(self.budget, releases))
            return
        if self.relation is Relation.EDGE:
            self.degrees = release_degrees(
                self,
                edges,
                h["degree_share"] * epsilon,
                count_share=_COUNT_PART,
                sequence_share=_SEQUENCE_PART,
            )
        else:
            sensitivity = node_edge_count_sensitivity(h["max_degree"])
            terms = sensitivity, "node_edge_count_sensitivity", self.matrix.record
            self.release_num_edges(edges, h["degree_share"] * epsilon, *terms)
        if is_iterated:
            sigma = remaining_noise_multiplier(self.ledger)
            steps = int(self.steps_planned) / (1 - h["value_share"])
            multipliers = [sigma * math.sqrt(steps), sigma / math.sqrt(h["value_share"])]
            self.noise_multipliers = torch.tensor(multipliers, dtype=torch.double)

    def _announce(self) -> None:
        """Say how much of a signal there can be, from public numbers alone."""
        terms = self._product_terms(self._flat())
        line = self.matrix.outlook(terms["noise_multiplier"] * terms["sensitivity"])
        if line is not None:
            rank_zero_warn(line)

    def condition(self) -> str | None:
        """The bound on the degrees, where it is assumed."""
        h = self.hparams
        if h["mode"] == "paper" or h["max_degree"] is None:
            return None
        return f"no node has more than {h['max_degree']} edges, in this graph and its neighbours"

    def claimed_epsilon(self, delta: float) -> float | None:
        """What the paper would print: its noise spends the budget by basic composition."""
        return self.budget.epsilon if self.hparams["mode"] == "paper" else None

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next step and, so that it is never lacking, of the eigenvalues."""
        if self.is_released or self.hparams["release"] == "rr_spectral":
            return []
        count = self.hparams["rank"] if self.hparams["mode"] == "paper" else 1
        terms = [self._product_terms(self._flat()), *[self._value_terms()] * count]
        return [LedgerEntry(relation=self.relation, mechanism="gaussian", **term) for term in terms]

    def _product_terms(self, block: Tensor) -> dict[str, Any]:
        return self.matrix.product_terms(block, float(self.noise_multipliers[0]))

    def _value_terms(self) -> dict[str, Any]:
        return self.matrix.value_terms(self.vectors.detach(), float(self.noise_multipliers[1]))

    def _times(self, block: Tensor) -> Tensor:
        """Product of the matrix and a block of vectors of shape ``(N, K)`` (private)."""
        if self._adjacency is None:
            graph = self.trainer.datamodule.train_graph  # type: ignore[attr-defined]
            self._adjacency = adjacency(graph)
        return self.matrix.times(self._adjacency, block)

    def _flat(self) -> Tensor:
        """The basis with its rows shortened (public), shape ``(N, K)``; as it is in paper mode."""
        basis = self.vectors.detach()
        if self.hparams["mode"] == "paper":
            return basis
        size, rank = basis.shape
        longest = self.hparams["clip"] * math.sqrt(rank / size)
        return basis * (longest / basis.norm(dim=1, keepdim=True)).clamp(max=1)

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """One step of Oja's rule on all records, whatever the batch holds; the last one finishes."""
        if self.is_released:
            self.trainer.should_stop = True
            return
        is_iterated = self.hparams["release"] == "noisy_oja"
        self.vectors.grad = self._noisy_product() if is_iterated else self._responses()
        self.optimizers().step()  # type: ignore[union-attr]
        self.steps_made += 1
        if self.steps_made >= self.steps_planned or not self.ledger.affords(*self.step_entries()):
            self._finish()

    def _noisy_product(self) -> Tensor:
        """Direction of the next step (noisy)."""
        self._shown = self._flat()
        terms = self._product_terms(self._shown)
        noisy = gaussian(self._times(self._shown), self.ledger, self.noise, **terms)
        if self.hparams["mode"] == "corrected":
            return noisy
        steps, sigma = int(self.steps_planned), float(self.noise_multipliers[0])
        return printed_direction(self.vectors.detach(), noisy, steps, sigma)

    def _finish(self) -> None:
        """Release the eigenvalues and forget the graph."""
        if self.hparams["mode"] == "paper":
            self._release_roots()
        elif self.hparams["release"] == "noisy_oja":
            self._release_values()
        if self.relation is Relation.NODE and self.hparams["mode"] == "corrected":
            self.degrees = degrees_by_rows(self.rows, int(self.num_edges))
        self._adjacency = None
        self.is_released.fill_(True)
        self.trainer.should_stop = True

    @torch.no_grad()
    def _release_values(self) -> None:
        """Release V'AV, and turn V and the rows of the estimate to its eigenvectors."""
        basis = self.vectors.detach()
        product = basis.T @ self._times(basis)
        noisy = gaussian(product, self.ledger, self.noise, **self._value_terms())
        values, turn = torch.linalg.eigh((noisy + noisy.T) / 2)
        values, turn = values.flip(0), turn.flip(1)
        self.vectors.copy_(basis @ turn)
        back = inverse_katz(values.cpu().numpy(), self.matrix.decay, self.matrix.terms)
        self._estimate(torch.from_numpy(back))

    def _release_roots(self) -> None:
        """Release the eigenvalues as the paper does; what it takes the root of may be negative."""
        squares = self._times(self.vectors.detach()).square().sum(dim=0)
        terms = self._value_terms()
        noisy = [gaussian(square, self.ledger, self.noise, **terms) for square in squares]
        self._estimate(torch.stack(noisy).clamp(min=0).sqrt())

    @torch.no_grad()
    def _estimate(self, values: Tensor) -> None:
        """Keep the low-rank estimate with the eigenvalues of shape ``(K,)``."""
        values = values.to(self.vectors)
        self.rows = self.vectors.detach() * values.abs().sqrt()
        self.signs = torch.where(values < 0, -1.0, 1.0).to(values)

    def _responses(self) -> Tensor:
        """Release all pairs by randomized response; leading eigenvectors of shape ``(N, K)``."""
        size, rank = self.vectors.shape
        epsilon = (1 - self.hparams["degree_share"]) * self.budget.epsilon
        edges = self.trainer.datamodule.edges  # type: ignore[attr-defined]
        numbers = randomized_response(
            pair_numbers(edges, size),
            num_pairs(size),
            self.ledger,
            self.noise,
            key="edge_reports",
            name="edges",
            epsilon=epsilon,
            proof="pair_bit_sensitivity",
        )
        rates = response_rates(epsilon)
        scale = noise_scale(self.degrees, *rates)
        found = spectrum(numbered_pairs(numbers, size), size, rank, *rates, scale=scale)
        padding = (0, rank - len(found.values))
        self.rows = nn.functional.pad(shrunken(found), padding)
        return nn.functional.pad(found.vectors, padding)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw ``num_edges`` edges by degrees and angles; in paper mode, the heaviest ones."""
        rows, signs = self.rows.cpu(), self.signs.cpu()
        if self.hparams["mode"] == "paper":
            return printed_edges(rows, int(self.num_edges))
        return low_rank_edges(rows, signs, self.degrees.cpu(), int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Degrees times affinity of pairs of shape ``(P, 2)``, or the paper's Katz index."""
        first, second = pairs.to(self.rows.device).T
        if self.hparams["mode"] == "paper":
            return (self.rows[first] * self.rows[second]).sum(dim=1)
        chance = self.degrees[first].double() * self.degrees[second]
        return chance * Affinity(self.rows, self.signs)(first, second)
