"""Structure in the reports of randomized response, and its validation."""

from typing import NamedTuple

import torch
from torch import Tensor

from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks
from lightning_dpg.graph.spectral import Spectrum, diffused, leading, spectrum
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.nn.low_rank import inner_products, rows_at_once
from lightning_dpg.privacy.mechanisms import response_rates

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
