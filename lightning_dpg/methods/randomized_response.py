"""Randomized response on all pairs of nodes, and what can be made of it for free."""

import math
from typing import Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.pairs import num_pairs, numbered_pairs, pair_numbers
from lightning_dpg.graph.posterior import MAX_NODES, draw_posterior, probabilities
from lightning_dpg.graph.spectral import diffused, shrunken, spectrum
from lightning_dpg.methods.evidence import degree_evidence, weight
from lightning_dpg.methods.one_shot import OneShotSynthesizer
from lightning_dpg.methods.private_degrees import release_degrees
from lightning_dpg.nn import InnerProducts, LowRankLogits
from lightning_dpg.nn.low_rank import WEIGHT_DECAY
from lightning_dpg.privacy.mechanisms import randomized_response, response_rates

# Part of the prior of a pair that knows degrees only, so that a model rules nothing out.
_DEGREE_PRIOR = 0.1
_LEAST_DEGREE = 0.5
# Found on synthetic block models: structure in the prior of a report, and steps of the walks by
# which pairs are scored, the more the less noise there is.
_STRUCTURE = 0.6
_STEPS_PER_EPSILON = 1.5
_NO_WALK = 3.0
_SHORTEST_WALK = 2
_LONGEST_WALK = 8


class RandomizedResponse(OneShotSynthesizer):
    r"""Exact randomized response on all pairs: pure edge-level DP, denoised for free if asked.

    Each of the N (N - 1) / 2 pairs reports whether it is an edge, and lies with probability
    :math:`1 / (1 + e^\epsilon)`. The number of edges M is released beside it.

    ``denoise: none`` publishes reports, each kept with the probability for which about M remain;
    reports that are not kept are never drawn, so that memory is linear in M. This is what "top
    M-filter" (Nguyen, Imine, Rusinowitch, "Differentially private publication of social graphs at
    linear cost", 2015) approximates.

    The others keep all reports and fit a model to them, which costs nothing more; graphs are drawn
    from the probabilities of pairs given model and reports. ``spectral``: leading eigenvectors of
    the unbiased estimate of the adjacency matrix, and again of the reports weighed by how likely
    the first ones make them. ``cell``: CELL (Rendsburg et al., 2020) in a
    fixed number of steps; stopping it early by private edges would have to be paid.

    ``degree_share`` moves a part of the budget to noisy degrees, by which ``spectral`` weighs the
    reports; else their own sums have to do. They enter the scores, too.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        denoise: ``none``, ``spectral`` or ``cell``.
        count_share: Share of the budget for the number of edges.
        degree_share: Share of the budget for noisy degrees; with ``spectral`` only.
        rank: Most eigenvectors of ``spectral``, or rank H of the logits of ``cell``.
        steps: Optimization steps of ``cell``.
        learning_rate: Learning rate of ``cell``.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        denoise: Literal["none", "spectral", "cell"] = "none",
        count_share: float = 0.05,
        degree_share: float = 0.0,
        rank: int = 128,
        steps: int = 40,
        learning_rate: float = 0.1,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if denoise not in ("none", "spectral", "cell"):
            raise ValueError(f"denoise must be none, spectral or cell, got {denoise!r}")
        if not (count_share > 0 and degree_share >= 0 and count_share + degree_share < 1):
            raise ValueError(
                "count_share must be positive, degree_share not negative, and their sum below 1, "
                f"got {count_share} and {degree_share}"
            )
        if degree_share and denoise != "spectral":
            raise MisconfigurationException(
                f"degree_share {degree_share} is of use to denoise: spectral only; set it to 0"
            )
        if num_nodes is None:
            raise MisconfigurationException(
                "num_nodes is needed: the number of (public) nodes of the graph"
            )
        if denoise != "none" and num_nodes > MAX_NODES:
            raise MisconfigurationException(
                f"denoise: {denoise} models all pairs of nodes, which are too many for {num_nodes} "
                f"nodes (at most {MAX_NODES})\nset it to none, or take ChungLu, BTER or PrivGraph"
            )
        self.reported: Tensor
        self.degrees: Tensor
        self.report_epsilon: Tensor
        self.register_buffer("reported", torch.empty(0, 2, dtype=torch.long))
        self.register_buffer("degrees", torch.zeros(num_nodes))
        self.register_buffer("report_epsilon", torch.tensor(0.0, dtype=torch.float64))
        self.model = _model(denoise, num_nodes, rank)

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges, perhaps degrees, and the reports; fit a model to them."""
        h, n = self.hparams, self.hparams["num_nodes"]
        if h["degree_share"]:
            self._release_degrees(edges, epsilon)
        else:
            self.release_num_edges(edges, h["count_share"] * epsilon)
        self.report_epsilon.fill_((1 - h["count_share"] - h["degree_share"]) * epsilon)
        numbers = randomized_response(
            pair_numbers(edges, n),
            num_pairs(n),
            self.ledger,
            self.noise,
            name="edges",
            epsilon=float(self.report_epsilon),
            thinning=self._thinning() if self.model is None else 1.0,
            proof="pair_bit_sensitivity",
        )
        self.reported = numbered_pairs(numbers, n)
        if not h["degree_share"]:
            self._count_degrees()
        if isinstance(self.model, InnerProducts):
            self._fit_spectral(self.model)
        elif isinstance(self.model, LowRankLogits):
            self._fit_logits(self.model)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """The reports themselves, or a draw given reports and model."""
        if self.model is None:
            return self.reported
        likelihood = self.model.likelihood()
        if total := float(likelihood.sum()):  # 0 where all structure drowned in noise
            likelihood *= (1 - _DEGREE_PRIOR) / total
        ends = self.degrees / self.degrees.sum()  # none is below _LEAST_DEGREE
        likelihood += _DEGREE_PRIOR * ends[:, None] * ends
        num_edges = int(self.num_edges)
        return draw_posterior(
            probabilities(likelihood, num_edges),
            self.reported,
            float(self.report_epsilon),
            len(ends),
            num_edges,
            generator,
        )

    def score(self, pairs: Tensor) -> Tensor:
        """Affinity in the model of pairs of shape ``(P, 2)``, else the product of their degrees."""
        if self.model is None:
            return self._chance(pairs)
        scores: Tensor = self.model.score(pairs)
        if not self.hparams["degree_share"]:
            return scores
        return _STRUCTURE * scores.clamp(min=0) + (1 - _STRUCTURE) * self._chance(pairs)

    def audit_score(self, pairs: Tensor, known: Data) -> Tensor:
        """Whether each pair reported to be an edge, and what noisy degrees add to that."""
        reports = self._report_evidence(
            pair_numbers(self.reported, self.hparams["num_nodes"]), pairs
        )
        if not self.hparams["degree_share"]:
            return reports
        degrees = self.cost("degree of each node") * degree_evidence(self.degrees, pairs, known)
        return reports + degrees

    def transcript_score(self, name: str, noisy: Tensor, pairs: Tensor, known: Data) -> Tensor:
        """Evidence of the reports, too."""
        if name == "edges":
            return self._report_evidence(noisy, pairs)
        return super().transcript_score(name, noisy, pairs, known)

    def _report_evidence(self, numbers: Tensor, pairs: Tensor) -> Tensor:
        """Logarithms of likelihood ratios of reports, for pairs of shape ``(P, 2)``.

        Without thinning they are plus or minus epsilon. With it, an absent report says less.
        """
        reported = torch.isin(pair_numbers(pairs, self.hparams["num_nodes"]), numbers)
        present = weight(float(self.report_epsilon))
        absent, thinning = -present, 1.0 if self.model is not None else self._thinning()
        if thinning < 1:
            true_rate, false_rate = response_rates(present, thinning)
            absent = math.log1p(-true_rate) - math.log1p(-false_rate)
        return torch.where(reported, present, absent)

    def _chance(self, pairs: Tensor) -> Tensor:
        """Probabilities of pairs of shape ``(P, 2)`` to be a given edge, by degrees alone."""
        return 2 * (self.degrees / self.degrees.sum().clamp(min=1))[pairs].prod(dim=1)

    def advice(self, epsilon: float) -> str | None:
        """What a large ``epsilon`` means here, in one line."""
        if not 4 <= epsilon < float("inf"):
            return None
        share = 1 - self.hparams["count_share"] - self.hparams["degree_share"]
        lies = round(1 + math.exp(min(share * epsilon, 40.0)))
        return (
            f"at epsilon {epsilon:g} a pair of nodes lies once in {lies:,} times: whoever asks about "
            "one edge mostly gets the truth, see `attack`"
        )

    def _thinning(self) -> float:
        """Probability of keeping a report for which about ``num_edges`` remain."""
        true_rate, false_rate = response_rates(float(self.report_epsilon))
        others = num_pairs(self.hparams["num_nodes"]) - int(self.num_edges)
        expected = true_rate * int(self.num_edges) + false_rate * others
        return min(1.0, int(self.num_edges) / expected)

    def _release_degrees(self, edges: Tensor, epsilon: float) -> None:
        h = self.hparams
        share = h["count_share"] + h["degree_share"]
        degrees = release_degrees(
            self,
            edges,
            share * epsilon,
            count_share=h["count_share"] / share,
            sequence_share=h["degree_share"] / share / 4,
        )
        self.degrees = degrees.float().clamp(min=_LEAST_DEGREE)

    def _count_degrees(self) -> None:
        """Degrees as the reports estimate them."""
        n = self.hparams["num_nodes"]
        reports = torch.bincount(self.reported.flatten(), minlength=n)
        if self.model is None:
            self.degrees = reports.float()
            return
        true_rate, false_rate = response_rates(float(self.report_epsilon))
        estimates = (reports - false_rate * (n - 1)) / (true_rate - false_rate)
        self.degrees = estimates.float().clamp(min=_LEAST_DEGREE)

    def _fit_spectral(self, model: InnerProducts) -> None:
        """Find structure in all reports, then in those that this structure makes likely."""
        n, rank = self.hparams["num_nodes"], self.hparams["rank"]
        epsilon = float(self.report_epsilon)
        found = spectrum(self.reported, n, rank, *response_rates(epsilon))
        model.fit(_shares(diffused(found, _LONGEST_WALK)), shrunken(found))
        weights = self._probability_of_truth(model)
        certain = int((found.values > found.bulk).sum())
        refined = spectrum(self.reported, n, min(rank, 3 * certain + 2), weights=weights)
        steps = round(_STEPS_PER_EPSILON * (epsilon - _NO_WALK)) if epsilon < 99 else _LONGEST_WALK
        walk = min(max(steps, _SHORTEST_WALK), _LONGEST_WALK)
        model.fit(_shares(diffused(refined, walk)), shrunken(found))

    def _probability_of_truth(self, model: InnerProducts) -> Tensor:
        """Probability of each report to be an edge, given structure and degrees; shape ``(K,)``."""
        structure = model.score(self.reported).clamp(min=0)
        shares = _STRUCTURE * structure + (1 - _STRUCTURE) * self._chance(self.reported)
        prior = torch.logit(int(self.num_edges) * shares.double(), eps=1e-9)
        return torch.sigmoid(prior + self.report_epsilon.clamp(max=60))

    def _fit_logits(self, model: LowRankLogits) -> None:
        parameters = list(model.requires_grad_(True).parameters())
        optimizer = torch.optim.Adam(
            parameters, self.hparams["learning_rate"], weight_decay=WEIGHT_DECAY
        )
        # Lightning may call this where gradients are off.
        with torch.enable_grad():
            for _ in range(self.hparams["steps"]):
                optimizer.zero_grad()
                model.loss(self.reported).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        model.requires_grad_(False)


def _shares(rows: Tensor) -> Tensor:
    """Scale rows of shape ``(N, K)`` until their positive inner products over pairs add up to 1."""
    products = (rows @ rows.T).clamp_(min=0).fill_diagonal_(0)
    return rows / max(float(products.sum()) / 2, 1e-30) ** 0.5


def _model(denoise: str, num_nodes: int, rank: int) -> InnerProducts | LowRankLogits | None:
    match denoise:
        case "spectral":
            return InnerProducts(num_nodes, rank)
        case "cell":
            start = torch.Generator().manual_seed(0)
            logits: LowRankLogits = LowRankLogits(num_nodes, rank, start).requires_grad_(False)
            return logits
        case _:
            return None
