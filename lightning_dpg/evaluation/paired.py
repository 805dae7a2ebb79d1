"""Differences of two rows of a table, paired by seeds."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import t

_LEVEL = 0.95


class Difference(NamedTuple):
    """Mean difference of paired values, with a confidence interval of 95 %."""

    mean: float
    half_width: float
    """Half of the interval; nan for a single pair."""


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Mean of the differences of pairs, and half of its t interval of 95 %.

    Args:
        values: Values by seed.
        others: Values of the other row at the same seeds.
    """
    differences = [value - other for value, other in zip(values, others, strict=True)]
    mean, count = statistics.fmean(differences), len(differences)
    if count < 2:
        return Difference(mean, math.nan)
    quantile = float(t.ppf((1 + _LEVEL) / 2, count - 1))
    return Difference(mean, quantile * statistics.stdev(differences) / count**0.5)
