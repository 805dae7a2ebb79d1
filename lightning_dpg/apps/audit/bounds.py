"""Empirical lower bounds on epsilon from the number of an attacker's correct guesses.

An attacker that separates present records from absent ones better than epsilon allows refutes the
claim. The bounds hold for any attack; a weak attack only makes them small.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import bisect
from scipy.stats import beta, binom
from torch import Tensor

from lightning_dpg.errors import Refusal

_LARGEST_EPSILON = 100.0
_MOST_THRESHOLDS = 100
# Largest part of the capital that a bet can lose.
_MOST_OF_CAPITAL = 0.9
_LEAST_SHARE = 1e-6


class Guesses(NamedTuple):
    """Number of guesses, and number of correct guesses."""

    total: int
    correct: int


def guess_half(scores: Tensor, inserted: Tensor) -> Guesses:
    """Guess that the highest-scored quarter of the canaries is in, and the lowest one out.

    The number of guesses depends on the number of canaries only. Half is a compromise: fewer
    guesses cannot prove a large epsilon, and the last guesses are mostly mistakes. Ties are ordered
    by the numbers of the canaries, which are independent of the coins.

    Args:
        scores: Score of each canary, higher for an edge, shape ``(P,)``.
        inserted: Bool, whether each canary is in the data, shape ``(P,)``.
    """
    quarter = len(scores) // 4
    order = scores.argsort(stable=True)
    out, into = order[:quarter], order[len(order) - quarter :]
    return Guesses(2 * quarter, int((~inserted[out]).sum()) + int(inserted[into].sum()))


def guess_surest(scores: Tensor, inserted: Tensor) -> Guesses:
    """Guess the eighth of the canaries with the scores farthest from 0 by sign; 0 means out.

    Suitable for log-likelihood ratios of releases that reveal much about a few canaries, perhaps
    only about present ones.

    Args:
        scores: Log-likelihood ratios of shape ``(P,)``.
        inserted: Bool, whether each canary is in the data, shape ``(P,)``.
    """
    surest = scores.abs().argsort(descending=True, stable=True)[: len(scores) // 8]
    return Guesses(len(surest), int(((scores > 0) == inserted)[surest].sum()))


def guess_all(scores: Tensor, inserted: Tensor) -> Guesses:
    """Guess each canary by the sign of its score; 0 means out.

    Args:
        scores: Log-likelihood ratios of shape ``(P,)``.
        inserted: Bool, whether each canary is in the data, shape ``(P,)``.
    """
    return Guesses(len(scores), int(((scores > 0) == inserted).sum()))


def epsilon_lower_bound(
    canaries: int, guesses: int, correct: int, delta: float, confidence: float = 0.95
) -> float:
    r"""Bound from below the epsilon of one run on many canaries.

    A fair coin of its own puts each canary into the data. Under (epsilon, delta)-DP the number of
    right guesses exceeds v with a probability of at most :math:`\beta + 2 m \delta \alpha`, where B is
    binomial with r trials of probability :math:`1 / (1 + e^{-\epsilon})`,
    :math:`\beta = P(B \ge v)`, and :math:`\alpha = \max_i P(v > B \ge v - i) / i`.

    Args:
        canaries: Number m of canaries.
        guesses: Number r of guesses, fixed before the run.
        correct: Number v of right ones.
        delta: Delta of the claim.
        confidence: Probability that the bound holds.

    Returns:
        The largest refuted epsilon; 0 if none is.

    References:
        Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", 2023, Theorem 5.2.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise Refusal(
            f"expected correct <= guesses <= canaries, got {correct}, {guesses}, {canaries}"
        )
    _check_levels(delta, confidence)

    def excess(epsilon: float) -> float:
        right = 1 / (1 + math.exp(-epsilon))
        tail = float(binom.sf(correct - 1, guesses, right))
        below = binom.cdf(correct - np.arange(1, correct + 1) - 1, guesses, right)
        shares = (binom.cdf(correct - 1, guesses, right) - below) / np.arange(1, correct + 1)
        alpha = float(shares.max(initial=0.0))
        return tail + 2 * canaries * delta * alpha - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    # The probability that all guesses are right grows to 1 with epsilon.
    return float(bisect(excess, 0.0, _LARGEST_EPSILON, xtol=1e-9))


def many_runs_lower_bound(
    true_positives: int,
    runs_in: int,
    false_positives: int,
    runs_out: int,
    delta: float,
    confidence: float = 0.95,
) -> float:
    r"""Bound epsilon from below by many runs with and many runs without one record.

    (epsilon, delta)-DP implies :math:`TPR \le e^\epsilon FPR + \delta`, and the same inequality for
    the true and false negative rates. Clopper-Pearson intervals hold for both rates together.

    Args:
        true_positives: Runs with the record in which it was guessed to be in.
        runs_in: Runs with the record.
        false_positives: Runs without the record in which it was guessed to be in.
        runs_out: Runs without the record.
        delta: Delta of the claim.
        confidence: Probability that the bound holds.

    Returns:
        The largest refuted epsilon; 0 if none is.

    References:
        Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", 2020.
    """
    if not (0 <= true_positives <= runs_in and 0 <= false_positives <= runs_out):
        raise Refusal(
            f"got {true_positives} of {runs_in} and {false_positives} of {runs_out} positives"
        )
    _check_levels(delta, confidence)
    error = (1 - confidence) / 2
    low = _lowest_rate(true_positives, runs_in, error)
    high = 1 - _lowest_rate(runs_out - false_positives, runs_out, error)
    return max(_refuted(low, high, delta), _refuted(1 - high, 1 - low, delta))


def best_threshold(scores_in: Tensor, scores_out: Tensor, delta: float) -> float:
    """Choose the threshold for the guess "in" that proves most on the given runs.

    Test the threshold on other runs, see :func:`many_runs_lower_bound`.

    Args:
        scores_in: Scores of runs with the record, shape ``(R,)``.
        scores_out: Scores of runs without it, shape ``(S,)``.
        delta: Delta of the claim.
    """
    candidates = sorted({*scores_in.tolist(), *scores_out.tolist()})

    def proved(threshold: float) -> tuple[float, float]:
        hits = int((scores_in >= threshold).sum())
        errors = int((scores_out >= threshold).sum())
        runs = len(scores_in), len(scores_out)
        bound = many_runs_lower_bound(hits, runs[0], errors, runs[1], delta)
        return bound, hits / runs[0] - errors / runs[1]  # few runs prove nothing anywhere

    return max(candidates[:: len(candidates) // _MOST_THRESHOLDS + 1], key=proved)


def share_lower_bound(shares: Tensor, canaries: int, confidence: float = 0.95) -> float:
    r"""Bound from below the expected share of right guesses, from the shares of independent fits.

    Of a fair coin, a mechanism lets nobody guess more than :math:`(1 + \delta(0)) / 2` in the mean,
    where :math:`\delta(0)` is its delta at an epsilon of 0. So a larger bound refutes its whole
    privacy curve, and few right guesses more than that suffice: epsilon of Gaussian noise is lost with
    a chance of about delta only, and :func:`epsilon_lower_bound` cannot see it.

    A gambler whose capital is multiplied by :math:`1 + \lambda_r (X_r - m)` for each share X has no
    gain if the mean is m or less. By Ville's inequality a capital of :math:`1 / \alpha` refutes m.

    Args:
        shares: Share of right guesses of each fit, shape ``(R,)``.
        canaries: Number of canaries of each fit, by which the gambler expects how the shares scatter.
        confidence: Probability that the bound holds.

    Returns:
        The largest refuted mean; 0 if none is.

    References:
        Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", 2024,
        section 4.3.
    """
    _check_levels(0.0, confidence)
    values, aim = shares.double().numpy(), -math.log(1 - confidence)
    # All that precedes a share decides on its bet.
    before, count = np.r_[0.5, values[:-1]], np.arange(1, len(values) + 1)
    means = np.cumsum(before) / count
    variances = (1 / (4 * canaries) + np.cumsum(np.r_[0, (before - means)[1:] ** 2])) / count
    bets = np.sqrt(2 * aim / (len(values) * variances))

    def excess(mean: float) -> float:
        bounded = np.minimum(bets, _MOST_OF_CAPITAL / mean)
        return float(np.cumsum(np.log1p(bounded * (values - mean))).max() - aim)

    if excess(_LEAST_SHARE) <= 0:
        return 0.0
    return float(bisect(excess, _LEAST_SHARE, 1.0, xtol=1e-9))


def inclusion_estimate(noisy: Tensor, directions: Tensor, noise_std: float, rate: float) -> Tensor:
    r"""Estimate the coins of the directions in a noisy sum by the best linear estimator.

    The sum is :math:`\sum_i b_i g_i` plus normal noise, with coins :math:`b_i` of probability q.
    Correlated directions share their explained part; under strong noise the estimate is
    proportional to the correlations with the sum.

    Args:
        noisy: Sum of shape ``(K,)`` without its expectation.
        directions: Directions of shape ``(P, K)``.
        noise_std: Standard deviation of the noise.
        rate: Probability q.

    Returns:
        Estimates of :math:`b_i - q` of shape ``(P,)``, over the variance of the coins.
    """
    gram = directions @ directions.T
    # Without noise a matrix of repeated directions would have no inverse.
    ridge = max(noise_std**2 / (rate * (1 - rate)), 1e-6 * float(gram.diagonal().mean()), 1e-30)
    gram.diagonal().add_(ridge)
    return torch.linalg.solve(gram, directions @ noisy) / (rate * (1 - rate))


def _check_levels(delta: float, confidence: float) -> None:
    if not (0 <= delta < 1 and 0 < confidence < 1):
        raise Refusal(
            f"delta and confidence must lie between 0 and 1, got {delta} and {confidence}"
        )


def _lowest_rate(hits: int, runs: int, error: float) -> float:
    """Return the Clopper-Pearson lower bound of a rate, wrong with probability ``error``."""
    return float(beta.ppf(error, hits, runs - hits + 1)) if hits else 0.0


def _refuted(low: float, high: float, delta: float) -> float:
    """Return the largest epsilon with ``low > e^epsilon * high + delta``."""
    return max(math.log((low - delta) / high), 0.0) if low > delta and high > 0 else 0.0
