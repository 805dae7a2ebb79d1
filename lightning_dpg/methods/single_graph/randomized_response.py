"""Randomized response on all pairs of nodes, with post-processing of the reports."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.advice import MAX_REPORT_NODES, Facts, cases, excess_of_reports, hint
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.edge_sampling import (
    above_diagonal,
    draw_posterior,
    probabilities,
    sum_of,
)
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks
from lightning_dpg.graph.spectral import Spectrum, diffused, leading, shrunken, spectrum
from lightning_dpg.interfaces import ALL_KINDS
from lightning_dpg.methods.base import needed_num_nodes
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import (
    OneShotSynthesizer,
    noisy_num_edges,
    num_edges_entry,
)
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.nn import InnerProductDecoder
from lightning_dpg.nn.low_rank import inner_products, rows_at_once
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import randomized_response, response_rates
from lightning_dpg.privacy.sensitivity.degrees import pair_bit_sensitivity

STRUCTURE = 0.6
"""Part of structure, beside degrees, in the prior of a report. Found on synthetic block models."""

_FIRST_WALK = 8  # steps of the walks that weight reports at first; tuned on the same models
# Candidate settings, tuned on synthetic graphs of mean degree 4 to 60.
_FIRST_RANK = 4
_STEPS = (1, 2)
_UNREPORTED = 50_000
# More hidden reports take minutes to rank, and no longer make the AUC more precise.
_MOST_HIDDEN = 1_000_000
_PARTS = 4  # of a block of scores that are only added up, and stay in a cache


class Structure(NamedTuple):
    """Eigenpairs of reports, and of reports weighted by their likelihood under the former."""

    plain: Spectrum
    refined: Spectrum


class Setting(NamedTuple):
    """Setting of the scores of pairs.

    Attributes:
        refined: Whether to weight reports by their likelihood, or all equally.
        rank: Number of leading eigenvectors.
        steps: Length of the walks, see :func:`diffused`.
    """

    refined: bool
    rank: int
    steps: int

    def rows(self, structure: Structure) -> Tensor:
        """Rows of shape ``(N, K)`` whose inner products rank pairs."""
        chosen = structure.refined if self.refined else structure.plain
        return diffused(leading(chosen, self.rank), self.steps)


def find_structure(
    reported: Tensor, degrees: Tensor, rank: int, epsilon: float, share: float, num_edges: int
) -> Structure:
    """Find structure in reports, then in the reports that this structure makes likely.

    Args:
        reported: Reported edges of shape ``(K, 2)``, rows ``i < j``.
        degrees: Released or estimated degrees, shape ``(N,)``.
        rank: Most eigenvectors.
        epsilon: Privacy parameter of the reports; may be infinite.
        share: Probability that a report is among these, if the others are hidden.
        num_edges: Released number of edges.
    """
    size = len(degrees)
    plain = spectrum(reported, size, rank, *response_rates(epsilon, share))
    rows = as_shares(diffused(plain, _FIRST_WALK).float())
    likely = STRUCTURE * inner_products(rows, reported).clamp(min=0)
    likely += (1 - STRUCTURE) * chance(degrees, reported)
    weights = torch.sigmoid(torch.logit(num_edges * likely.double(), eps=1e-9) + min(epsilon, 60.0))
    certain = int((plain.values > plain.bulk).sum())
    return Structure(plain, spectrum(reported, size, min(rank, 3 * certain + 2), weights=weights))


def best_setting(structure: Structure, hidden: Tensor, others: Tensor) -> Setting:
    """Select the setting whose scores rank hidden reports highest, by AUC.

    The selection reads reports only and costs nothing. At a small budget most hidden reports are
    false, which moves every AUC towards one half.

    Args:
        structure: Structure in the visible reports.
        hidden: Hidden reports of shape ``(H, 2)``.
        others: Pairs without a report, shape ``(P, 2)``.
    """
    best, best_auc = Setting(refined=True, rank=_FIRST_RANK, steps=_STEPS[0]), 0.0
    for refined, eigenpairs in ((True, structure.refined), (False, structure.plain)):
        for steps in _STEPS:
            rows, start = diffused(eigenpairs, steps).float(), 0
            scores = [torch.zeros(len(pairs)) for pairs in (hidden, others)]
            while start < rows.size(1):
                stop = max(_FIRST_RANK, 2 * start)
                for score, pairs in zip(scores, (hidden, others), strict=True):
                    score += inner_products(rows[:, start:stop], pairs)
                auc, _ = link_prediction(*scores)
                if auc > best_auc:  # never without pairs to compare
                    best, best_auc = Setting(refined, stop, steps), auc
                start = stop
    return best


def sampled(hidden: Tensor, generator: torch.Generator) -> Tensor:
    """Return hidden reports ``(H, 2)``, or a random million of more, drawn with replacement."""
    if len(hidden) <= _MOST_HIDDEN:
        return hidden
    return hidden[torch.randint(len(hidden), (_MOST_HIDDEN,), generator=generator)]


def unreported_pairs(reported: Tensor, num_nodes: int, generator: torch.Generator) -> Tensor:
    """Draw random pairs that are not in ``reported``, of shape ``(K, 2)``, all rows ``i < j``."""
    count = min(_UNREPORTED, num_pairs(num_nodes))
    numbers = torch.randint(max(1, num_pairs(num_nodes)), (count,), generator=generator)
    numbers = numbers[~torch.isin(numbers, pair_ranks(reported, num_nodes))]
    return pairs_of_ranks(numbers, num_nodes)


def chance(degrees: Tensor, pairs: Tensor) -> Tensor:
    """Probabilities of pairs ``(P, 2)`` to be a given edge, by degrees alone."""
    return 2 * (degrees / degrees.sum().clamp(min=1))[pairs].prod(dim=1)


def as_shares(rows: Tensor) -> Tensor:
    """Scale rows of shape ``(N, K)`` until their positive inner products over pairs add up to 1."""
    total, start, single = 0.0, 0, rows.float()
    for block in torch.split(single, rows_at_once(len(rows)) // _PARTS + 1):
        products = (block @ single[start:].T).clamp_(min=0)
        products[:, : len(block)].triu_(1)  # each pair once
        total += float(products.sum(dtype=torch.double))
        start += len(block)
    return rows / max(total, 1e-30) ** 0.5


# Minimal part of the prior of a pair that uses degrees only. A model then excludes no pair.
_DEGREE_PRIOR = 0.1


def prior_probabilities(
    model: InnerProductDecoder, ends: Tensor, num_edges: int
) -> Iterator[Tensor]:
    """Yield the probability of each pair to be an edge, in blocks in the order of pair numbers.

    Args:
        model: Model of the reports.
        ends: Degrees over their sum, shape ``(N,)``.
        num_edges: Expected number of edges.
    """
    total = sum_of(lambda: above_diagonal(model.likelihood_rows()))
    # The model estimates edges, and finds few where noise hides most structure.
    structure = min(1 - _DEGREE_PRIOR, total / max(num_edges, 1))
    by_model = structure / max(total, 1e-30)
    of_degrees = (1 - float(ends.double().square().sum())) / 2
    by_degrees = (1 - structure) / max(of_degrees, 1e-30)

    def blend() -> Iterator[Tensor]:
        start = 0
        for block in model.likelihood_rows():
            first = ends[start : start + len(block), None]
            yield block.mul(by_model).add_(by_degrees * first * ends[start:])
            start += len(block)

    shares = structure + (1 - structure if of_degrees > 0 else 0.0)
    return probabilities(lambda: above_diagonal(blend()), shares, num_edges)


_LEAST_DEGREE = 0.5
_MOSTLY_TRUE = 4.0  # epsilon from which the reports on single pairs are mostly true
# Part of the reports that validates the fit to the others, selected by public coins.
_HIDDEN_SHARE = 0.3
_COINS_SEED = 0


class RandomizedResponse(OneShotSynthesizer):
    r"""Reports on all pairs of nodes, some of them made false by chance: private links.

    Each of the N (N - 1) / 2 pairs reports whether it is an edge, with a false answer at
    probability :math:`1 / (1 + e^\epsilon)`. The number of edges M is released as well. In a
    directed graph all ordered pairs report, in a bipartite one all pairs of a left and a right node;
    these reports are published without a model.

    ``denoise: none`` publishes reports, each kept with the probability for which about M remain.

    ``denoise: spectral`` keeps all reports and fits a model to them, at no further cost; graphs are
    drawn from the probabilities of pairs given model and reports. It has leading eigenvectors of
    the unbiased estimate of the adjacency matrix, and again of the reports weighted by their
    likelihood under the first ones. A public coin hides 30 % of the reports; the eigenvectors,
    their number and the walks are chosen by the ranking of the hidden reports after a fit to the
    others.

    ``degree_share`` moves a part of the budget to noisy degrees, with which ``spectral`` weights
    the reports; otherwise it uses degrees estimated from the reports. The degrees enter the scores,
    too.

    When to use:
        With ``denoise: spectral`` for the links of a graph of N nodes, from an epsilon of 5 on up to
        6,000 nodes and of 5 + ln(N / 6,000) beyond. Below that from a mean degree of 2.5 times the
        noise on, which is :math:`\sqrt{N} / (2 \sinh(\epsilon / 2))`. Otherwise take
        :class:`PrivGraph` from a mean degree of 30 / epsilon on, and else :class:`ChungLu`. For links
        beyond degrees it is better than :class:`PrivGraph` from twice the noise on, or if the noise is
        below 30 / epsilon. For the shape of a graph take :class:`BTER`. At an epsilon of 10 nearly all
        true edges are published, which protects little.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed, which
        changes one report; of a directed graph one ordered pair, of a bipartite one an edge between
        the sides. The guarantee has no condition and needs no delta; models of the reports cost
        nothing. The set of nodes, and the side of each, are public.

    Cost:
        Without denoising time and memory are O(N + M) up to logarithms, with no limit on N: reports
        that are not kept are never drawn. ``spectral`` holds all reports and visits the pairs in
        blocks: memory is O(N K + M + reports), and a draw takes time O(N^2 K). More than 100,000
        nodes, or 50,000,000 expected false reports, are refused before anything is spent.

    Differences from the paper:
        The "top M-filter" of Nguyen et al. approximates the law of the kept reports, and here it is
        exact.

    * Warner, "Randomized response: a survey technique for eliminating evasive answer bias", 1965.
    * Nguyen, Imine, Rusinowitch, "Differentially private publication of social graphs at linear
      cost", 2015.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        denoise: ``none`` or ``spectral``.
        count_share: Share of the budget for the number of edges.
        degree_share: Share of the budget for noisy degrees; with ``spectral`` only.
        rank: Most eigenvectors of ``spectral``.
    """

    capabilities = replace(OneShotSynthesizer.capabilities, kinds=ALL_KINDS)

    def __init__(
        self,
        num_nodes: int | None = None,
        denoise: Literal["none", "spectral"] = "none",
        count_share: float = 0.05,
        degree_share: float = 0.0,
        rank: int = 128,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if not (count_share > 0 and degree_share >= 0 and count_share + degree_share < 1):
            raise Refusal(
                "count_share must be positive, degree_share not negative, and their sum below 1, "
                f"got {count_share} and {degree_share}"
            )
        if degree_share and denoise != "spectral":
            raise MisconfigurationException(
                f"degree_share {degree_share} is of use to denoise: spectral only; set it to 0"
            )
        size = needed_num_nodes(num_nodes)
        if denoise == "spectral" and size > MAX_REPORT_NODES:
            raise MisconfigurationException(
                f"denoise: {denoise} models all pairs of nodes, which are too many for {size} "
                f"nodes (at most {MAX_REPORT_NODES})\n"
                "set it to none, or take ChungLu, BTER, PrivGraph, or PrivCom"
            )
        self.reported: Tensor = nn.Buffer(torch.empty(0, 2, dtype=torch.int))
        self.degrees: Tensor = nn.Buffer(torch.zeros(size))
        self.report_epsilon: Tensor = nn.Buffer(torch.tensor(0.0, dtype=torch.float64))
        self.model = InnerProductDecoder(size, rank) if denoise == "spectral" else None

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind; the models of the reports are of undirected graphs."""
        super().accept_data(data)
        if self.model is not None and self.kind != "undirected":
            raise MisconfigurationException(
                f"denoise: {self.hparams['denoise']} models undirected graphs, and this one is "
                f"{self.kind}\nset denoise to none, or take PrivGraph"
            )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges or the degrees, and the reports; the steps have no effect."""
        h = self.hparams
        share = h["count_share"] + h["degree_share"]
        parts = budget.split(counts=share, reports=1 - share)
        counts = [num_edges_entry(parts["counts"].epsilon, self.edge_record)]
        if h["degree_share"]:
            own = {
                "count_share": h["count_share"] / share,
                "sequence_share": h["degree_share"] / share / 4,
            }
            counts = degree_entries(parts["counts"], self.edge_record, **own)
        reports = self.read("edge_reports", "edges", parts["reports"], pair_bit_sensitivity)
        return [*counts, reports]

    def _check_budget(self, budget: Budget) -> None:
        """Refuse a budget whose false reports are too many for a model, by public facts alone."""
        super()._check_budget(budget)
        share = 1 - self.hparams["count_share"] - self.hparams["degree_share"]
        excess = excess_of_reports(self.hparams["num_nodes"], budget.epsilon, share)
        if self.model is not None and excess is not None:
            raise MisconfigurationException(f"{excess}, or take ChungLu or PrivGraph")

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, optional degrees, and the reports; fit a model to them."""
        space, read = self.space, reads["edge_reports"]
        if self.hparams["degree_share"]:
            self.num_edges, degrees = release_degrees(self, source, reads)
            self.degrees = degrees.float().clamp(min=_LEAST_DEGREE)
        else:
            self.num_edges = noisy_num_edges(self, source, reads)
        self.report_epsilon.fill_(read.event.pure_epsilon)
        law = randomized_response(read, space.num_pairs, self.thinning)
        numbers = self.pay(read, space.numbers(source.edges), law)
        self.reported = space.pairs(numbers).int()  # half the size in memory and in a release
        if not self.hparams["degree_share"]:
            self._count_degrees()
        if self.model is not None:
            self._fit_spectral(self.model)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Return the reports themselves, or a draw given reports and model."""
        if self.model is None:
            return self.reported.long()
        ends = self.degrees / self.degrees.sum()  # no degree is below _LEAST_DEGREE
        prior = prior_probabilities(self.model, ends, int(self.num_edges))
        return draw_posterior(
            prior,
            self.reported,
            float(self.report_epsilon),
            len(ends),
            int(self.num_edges),
            generator,
        )

    def score(self, pairs: Tensor) -> Tensor:
        """Affinity in the model of pairs of shape ``(P, 2)``, else the product of their degrees."""
        if self.model is None:
            return chance(self.degrees, self.space.ends(pairs))
        scores: Tensor = self.model.score(pairs)
        if not self.hparams["degree_share"]:
            return scores
        return STRUCTURE * scores.clamp(min=0) + (1 - STRUCTURE) * chance(self.degrees, pairs)

    def advice(self, facts: Facts) -> str | None:
        """Explain a large epsilon, or name a better method for links, in one line."""
        epsilon = facts.epsilon
        if epsilon == float("inf"):
            return None
        is_named = any(case.method == type(self).__name__ for case in cases(facts))
        if self.hparams["denoise"] == "spectral" and (epsilon < _MOSTLY_TRUE or not is_named):
            return hint(facts)
        if epsilon < _MOSTLY_TRUE:
            return None
        share = 1 - self.hparams["count_share"] - self.hparams["degree_share"]
        lies = round(1 + math.exp(min(share * epsilon, 40.0)))
        return (
            f"at epsilon {epsilon:g} a pair of nodes lies once in {lies:,} times: whoever asks about "
            "one edge mostly gets the truth, see `attack`"
        )

    @property
    def thinning(self) -> float:
        """Probability of keeping a report: about ``num_edges`` remain, or all for a model."""
        if self.model is not None:
            return 1.0
        true_rate, false_rate = response_rates(float(self.report_epsilon))
        others = self.space.num_pairs - int(self.num_edges)
        expected = true_rate * int(self.num_edges) + false_rate * others
        # Neither is above 0 if there is no pair.
        return min(1.0, int(self.num_edges) / expected) if expected else 1.0

    def _count_degrees(self) -> None:
        """Estimate degrees from the reports."""
        if self.model is None:
            self.degrees = self.space.degrees(self.reported).float()
            return
        rates = response_rates(float(self.report_epsilon))
        self.degrees = self._estimated_degrees(self.reported, rates)

    def _estimated_degrees(self, reported: Tensor, rates: tuple[float, float]) -> Tensor:
        """Estimate degrees from reports of shape ``(K, 2)`` at the report rates of a 1 and a 0.

        The estimates are shrunk to their mean by the share of noise in their variance. Otherwise,
        under strong noise, half of the nodes would be isolated, each a community of its own.
        """
        n, (true_rate, false_rate) = self.hparams["num_nodes"], rates
        sums = torch.bincount(reported.flatten(), minlength=n).double()
        estimates = (sums - false_rate * (n - 1)) / (true_rate - false_rate)
        noise = n * false_rate * (1 - false_rate) / (true_rate - false_rate) ** 2
        mean, variance = float(estimates.mean()), float(estimates.var(correction=0))
        signal = max(0.0, 1 - noise / max(variance, noise, 1e-12))
        return (mean + signal * (estimates - mean)).float().clamp(min=_LEAST_DEGREE)

    def _fit_spectral(self, model: InnerProductDecoder) -> None:
        """Fit to a part of the reports, and then to all of them with the best validated setting."""
        coins = torch.Generator().manual_seed(_COINS_SEED)
        is_hidden = torch.rand(len(self.reported), generator=coins) < _HIDDEN_SHARE
        others = unreported_pairs(self.reported, self.hparams["num_nodes"], coins)
        hidden = sampled(self.reported[is_hidden], coins)
        partial = self._structure(self.reported[~is_hidden], 1 - _HIDDEN_SHARE)
        setting = best_setting(partial, hidden, others)
        structure = self._structure(self.reported, 1.0)
        model.fit(as_shares(setting.rows(structure)), shrunken(structure.plain))

    def _structure(self, reported: Tensor, share: float) -> Structure:
        """Find structure in reports ``(K, 2)`` that are a random ``share`` of all reports."""
        epsilon = float(self.report_epsilon)
        degrees = self.degrees
        if not self.hparams["degree_share"]:
            degrees = self._estimated_degrees(reported, response_rates(epsilon, share))
        rank, num_edges = self.hparams["rank"], int(self.num_edges)
        return find_structure(reported, degrees, rank, epsilon, share, num_edges)
