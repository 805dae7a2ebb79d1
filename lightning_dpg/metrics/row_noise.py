"""Associations that noise alone shows in a release, by draws with a public seed.

A figure of a release is compared with that of releases in which nothing is associated: the counts that
independence makes likely, with the noise of the release. What follows from released values costs no
privacy.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.metrics.rows import assortativity_of_shares

QUANTILE = 0.95
"""Share of the releases without an association that show less than the noise."""
_DRAWS = 1000
_SEED = 0


def assortativity_noise(shares: NDArray[np.float64], total: float, scale: float) -> float:
    """Return the size of the assortativity that noise alone shows in released mixing.

    Args:
        shares: Share of the ends of edges of each of K categories, shape ``(K,)``.
        total: Released weight of all edges.
        scale: Scale of the Laplace noise of each pair of categories; 0 without noise.

    Returns:
        The 0.95 quantile of the absolute value; nan for one category.
    """
    size = len(shares)
    noise = _noise(scale, (size, size))
    lower = np.tril(noise)
    ends = 2 * total * np.outer(shares, shares) + lower + lower.swapaxes(1, 2)
    return _quantile(assortativity_of_shares(_as_shares(ends)))


def association_noise(
    first: NDArray[np.float64], second: NDArray[np.float64], scale: float
) -> float:
    """Return Cramer's V that noise alone shows in a released table of two columns.

    Args:
        first: Number of nodes of each category of one column, shape ``(K,)``.
        second: Number of nodes of each category of the other column, shape ``(K',)``.
        scale: Scale of the Laplace noise of each cell; 0 without noise.

    Returns:
        The 0.95 quantile; nan if a column has one category.
    """
    least = min(len(first), len(second)) - 1
    if least < 1:
        return math.nan
    table = np.outer(first, second) / first.sum() + _noise(scale, (len(first), len(second)))
    shares = _as_shares(table)
    chance = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    ratios = np.divide(shares**2, chance, out=np.zeros_like(shares), where=chance > 0)
    return _quantile(np.sqrt(np.maximum(ratios.sum(axis=(1, 2)) - 1, 0) / least))


def _noise(scale: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Draw noise of shape ``(R, K, K')``."""
    return np.random.default_rng(_SEED).laplace(scale=scale, size=(_DRAWS, *shape))


def _as_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale noisy counts to a sum of 1; negative ones are 0, as in a fit."""
    counts = np.maximum(counts, 0)
    sums = counts.sum(axis=(1, 2), keepdims=True)
    return np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)


def _quantile(values: NDArray[np.float64]) -> float:
    known = np.abs(values[np.isfinite(values)])
    return float(np.quantile(known, QUANTILE)) if len(known) else math.nan
