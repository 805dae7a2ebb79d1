"""Differences of two rows of a table, paired by seeds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

_LEVEL = 0.95


class Difference(NamedTuple):
    """Mean difference of paired values, with a confidence interval of 95 %."""

    mean: float
    half_width: float
    """Half of the interval; nan for a single pair."""

    @property
    def is_noise(self) -> bool:
        """Whether the interval holds 0, or there is none."""
        return not abs(self.mean) > self.half_width

    def text(self, factor: float = 1.0) -> str:
        """Format the difference with its interval, if there is one.

        Args:
            factor: Factor of both, such as 100 for shares in percent.
        """
        half = "" if math.isnan(self.half_width) else f" ± {factor * self.half_width:.1f}"
        return f"{factor * self.mean:+.1f}{half}"


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Mean of the differences of pairs, and half of its t interval of 95 %.

    Args:
        values: Values by seed.
        others: Values of the other row at the same seeds.
    """
    differences = np.subtract(values, others)
    count = len(differences)
    if count < 2:
        return Difference(float(differences.mean()), math.nan)
    quantile = float(t.ppf((1 + _LEVEL) / 2, count - 1))
    error = float(differences.std(ddof=1)) / count**0.5
    return Difference(float(differences.mean()), quantile * error)
