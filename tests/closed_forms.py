"""Noise of the Gaussian mechanism by formulas that the package does not use."""

import math

from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr


def gaussian_sigma(epsilon, delta):
    """Noise of one Gaussian release, by Balle and Wang's closed form."""
    mu = brentq(
        lambda m: (
            ndtr(m / 2 - epsilon / m) - math.exp(epsilon) * ndtr(-m / 2 - epsilon / m) - delta
        ),
        1e-6,
        50,
        xtol=1e-14,
    )
    return 1 / mu


def epsilon_of_two_worlds(inside, outside, delta, confidence):
    """Epsilon that guesses refute: numbers of guesses "in", and of runs, with a record and without it.

    By Clopper-Pearson intervals, see Jagielski, Ullman, Oprea, "Auditing differentially private
    machine learning", 2020.
    """
    (hits, runs_in), (errors, runs_out) = inside, outside
    level = (1 + confidence) / 2
    low = stats.beta.ppf(1 - level, hits, runs_in - hits + 1) if hits else 0.0
    high = stats.beta.ppf(level, errors + 1, runs_out - errors) if errors < runs_out else 1.0
    return max(math.log((low - delta) / high), 0.0) if low > delta else 0.0
