"""Degrees of graphs of any size and density, from the pooled shape of their class."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from lightning_dpg.methods.graph_set.pooled_set.statistics import Ints, bin_shares

Floats = NDArray[np.float64]

_LEAST = 1e-7  # share of the possible neighbors, and distance from all of them
_HALVINGS = 60
_SPREADS = 2.0  # scales of the noise within which a node is taken for a neighbor of all others


def shapes(noisy: Floats, totals: Floats, scale: float) -> Floats:
    """Descending shares of possible neighbors, by class and bin.

    Args:
        noisy: Released sums of degrees, shape ``(C, B)``.
        totals: These sums in complete graphs, shape ``(C, B)`` (public).
        scale: Scale of the noise of each sum.

    Returns:
        Shares from 0 to 1, shape ``(C, B)``. The largest degree is 1 where noise may have hidden
        that: a node that is linked to all others makes all paths short.
    """
    filled = np.maximum(totals, 1)
    shares = np.array(
        [
            isotonic_regression(row, weights=weight, increasing=False).x
            for row, weight in zip(noisy / filled, filled, strict=True)
        ]
    )
    shares[:, 0][shares[:, 0] + _SPREADS * scale / filled[:, 0] >= 1] = 1
    return np.clip(shares, 0, 1)


def expected_degrees(size: int, num_edges: int, shape: Floats) -> Floats:
    """Descending degrees of a shape, shifted to a number of edges.

    The log odds of all shares are shifted by one number. Shares stay from 0 to 1 and in order, a
    node that is linked to all others stays so, and a sparse shape is scaled.

    Args:
        size: Number of nodes.
        num_edges: Number of edges, at most all pairs.
        shape: Shares of possible neighbors, by bin, shape ``(B,)``.

    Returns:
        Degrees of shape ``(size,)``, whose sum is twice ``num_edges`` up to rounding.
    """
    shares = bin_shares(np.array([size]), len(shape)) @ shape
    return _shifted(shares, size - 1, 2 * num_edges, 0)


def whole_degrees(expected: Floats, num_edges: int, least: int) -> Ints:
    """Integers near expected degrees, of a given sum.

    Where small degrees are raised to the least one, the others are shifted to keep the sum. A node
    that is linked to all others stays so.

    Args:
        expected: Degrees, shape ``(n,)``.
        num_edges: Half the sum of the result, at most all pairs.
        least: Smallest degree.

    Returns:
        Degrees from ``least`` to n - 1, shape ``(n,)``.
    """
    most = len(expected) - 1
    if least:
        expected = _shifted(expected / max(most, 1), most, 2 * num_edges, least)
    degrees = np.clip(np.rint(expected), least, most).astype(np.int64)
    while (lacking := 2 * num_edges - int(degrees.sum())) != 0:
        step = 1 if lacking > 0 else -1
        free = np.flatnonzero(degrees < most if step > 0 else degrees > least)
        order = free[np.argsort(step * (degrees - expected)[free], kind="stable")]
        degrees[order[: abs(lacking)]] += step
    return degrees


def _shifted(shares: Floats, most: int, total: int, least: int) -> Floats:
    """Shares of ``most`` with shifted log odds, and ``least`` at the least, of a given sum."""
    odds = logit(np.clip(shares, _LEAST, 1 - _LEAST))
    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_short = np.maximum(expit(odds + middle) * most, least).sum() < total
        low, high = (middle, high) if is_short else (low, middle)
    shifted: Floats = np.maximum(expit(odds + high) * most, least)
    return shifted
