"""Divergence of two histograms, and its standard error where distances were sampled."""

import math

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.metrics.paths import Distances

# Smallest probability of the second distribution, without which a divergence may be infinite.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)


def kl_divergence(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    r"""Return the divergence :math:`\sum_k p_k \ln(p_k / \max(q_k, \epsilon))` of two histograms.

    Args:
        first: Counts whose shares are p, shape ``(K,)``.
        second: Counts whose shares are q, shape ``(L,)``. The floor :math:`\epsilon` is
            :data:`PROBABILITY_FLOOR`. A value without probability then costs up to 36 nats.
    """
    size = max(len(first), len(second))
    p, q = (np.pad(counts, (0, size - len(counts))) / counts.sum() for counts in (first, second))
    present = p > 0
    ratio = p[present] / np.maximum(q[present], PROBABILITY_FLOOR)
    # The floor and rounding errors add a little to q, which must not make the sum negative.
    return max(float((p[present] * np.log(ratio)).sum()), 0.0)


def distance_divergence(first: Distances, second: Distances) -> tuple[float, float]:
    """Return :func:`kl_divergence` of the distances of two graphs, and its standard error.

    The standard error is that of the first order in the errors of the counts, and 0 where no
    distances were sampled. It knows nothing of distances that no sampled node has.

    Args:
        first: Distances of the first graph.
        second: Distances of the second graph.
    """
    divergence = kl_divergence(first.counts, second.counts)
    size = max(len(first.counts), len(second.counts))
    p, q = (
        np.pad(measured.counts, (0, size - len(measured.counts))) / measured.counts.sum()
        for measured in (first, second)
    )
    floored = np.maximum(q, PROBABILITY_FLOOR)
    # Derivatives by the counts; a count of 0 has no error.
    by_first = np.where(p > 0, np.log(np.where(p > 0, p, 1) / floored) - divergence, 0)
    by_second = np.where(q > 0, p[q > 0].sum() - p / floored, 0)
    variance = 0.0
    for measured, slope in ((first, by_first), (second, by_second)):
        slope = slope[: len(measured.counts)] / measured.counts.sum()
        variance += float(slope @ measured.covariance @ slope)
    return divergence, math.sqrt(max(variance, 0.0))
