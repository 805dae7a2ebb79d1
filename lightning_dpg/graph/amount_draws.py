"""Drawn amounts, from noisy counts by classes and bins. All inputs are public or released."""

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.transfer_counts import amount_borders, largest_amount

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Sums of amounts below so many units of their noise are not aimed at.
_LEAST_SIGNAL = 2.0
_MOST_FACTOR = 2.0
_ROUNDS = 8


def onto_total(values: Floats, total: float) -> Floats:
    """Return the nearest numbers of a total that are not negative: the same is taken from all.

    Args:
        values: Numbers of shape ``(B,)``.
        total: Their sum afterwards, positive.
    """
    descending = -np.sort(-values)
    surplus = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(descending > surplus)[-1]
    found: Floats = np.maximum(values - surplus[last], 0)
    return found


def shares(noisy: Floats) -> Floats:
    """Return the shares of noisy counts ``(B,)``; equal ones if their sum is not positive."""
    total = float(noisy.sum())
    return np.full(len(noisy), 1 / len(noisy)) if total <= 0 else onto_total(noisy, total) / total


def shrunk_shares(noisy: Floats, scale: float) -> Floats:
    r"""Return the shares of bins in each cell, shrunk towards those of all cells together.

    The shrinkage follows James and Stein: what a cell of total n differs from n times the common shares
    keeps the factor :math:`(1 - 2 B b^2 / |d|^2)_+`, where :math:`2 B b^2` is the expected square of
    noise of scale b in B bins, and :math:`|d|^2` that of the difference.

    Args:
        noisy: Noisy counts of shape ``(cells, B)``.
        scale: Scale b of the noise.

    Returns:
        Shares of shape ``(cells, B)``, each row of sum 1.
    """
    common = shares(noisy.sum(axis=0))
    expected = np.maximum(noisy.sum(axis=1, keepdims=True), 0) * common
    difference = noisy - expected
    energy = (difference**2).sum(axis=1, keepdims=True)
    noise = 2 * noisy.shape[1] * scale**2
    factor = np.maximum(1 - noise / np.maximum(energy, np.finfo(float).tiny), 0)
    fitted = expected + factor * difference
    return np.array([shares(row) if row.sum() > 0 else common for row in fitted])


def draw_places(probabilities: Floats, cells: Integers, rng: np.random.Generator) -> Integers:
    """Draw a place in the row of each cell: shapes ``(cells, B)`` and ``(T,)`` to ``(T,)``."""
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative = cumulative / cumulative[:, -1:] + np.arange(len(probabilities))[:, None]
    found = np.searchsorted(cumulative.ravel(), rng.random(len(cells)) + cells, side="right")
    places: Integers = np.minimum(
        found - cells * probabilities.shape[1], probabilities.shape[1] - 1
    )
    return places


def draw_amounts(
    probabilities: Floats, cells: Integers, weight_max: float, rng: np.random.Generator
) -> Integers:
    """Draw an amount for each transfer, given its cell.

    An amount is uniform in the first bin, and has a uniform logarithm in the others. The last bin is
    the largest amount.

    Args:
        probabilities: Shares of the bins of :func:`amount_borders`, shape ``(cells, B)``.
        cells: Cell of each transfer, shape ``(T,)``.
        weight_max: Largest amount (public).
        rng: Source of random numbers.

    Returns:
        Amounts in units, shape ``(T,)``.
    """
    borders = amount_borders(weight_max)
    bins = draw_places(probabilities, cells, rng)
    low, high = borders[bins], np.append(borders, borders[-1] + 1)[bins + 1]
    part = rng.random(len(bins))
    uniform = low + part * (high - low)
    logarithmic = np.maximum(low, 1) * (high / np.maximum(low, 1)) ** part
    return np.minimum(np.where(low > 0, logarithmic, uniform).astype(np.int64), high - 1)


def fitted_to_sums(
    amounts: Integers,
    cells: Integers,
    sums: Floats,
    scale: float,
    weight_max: float,
    rng: np.random.Generator,
) -> Integers:
    """Multiply drawn amounts, so that their sums by cells are the released ones.

    All amounts of a cell but the largest one C get the same factor, of 1/2 to 2. A released sum within
    its noise is left alone.

    Args:
        amounts: Drawn amounts in units, shape ``(T,)``.
        cells: Cell of each transfer, shape ``(T,)``.
        sums: Released sums of the cells in units, shape ``(cells,)``.
        scale: Scale of the noise in them.
        weight_max: Largest amount (public).
        rng: Source of random numbers.

    Returns:
        Amounts in units, from 0 to the largest one, shape ``(T,)``.
    """
    largest = largest_amount(weight_max)
    is_free = amounts < largest
    fixed = np.bincount(cells[~is_free], amounts[~is_free], minlength=len(sums))
    drawn = np.bincount(cells[is_free], amounts[is_free], minlength=len(sums))
    is_known = (sums > _LEAST_SIGNAL * scale) & (drawn > 0)
    factors, values = np.ones(len(sums)), amounts.astype(np.float64)
    for _ in range(_ROUNDS):  # the clip takes a part of the increase
        found = np.bincount(cells[is_free], values[is_free], minlength=len(sums))
        step = np.where(is_known, np.maximum(sums - fixed, 0) / np.maximum(found, 1), 1.0)
        factors = np.clip(factors * step, 1 / _MOST_FACTOR, _MOST_FACTOR)
        values = np.where(is_free, np.minimum(amounts * factors[cells], largest), amounts)
    return np.floor(values + rng.random(len(values))).astype(np.int64).clip(0, largest)
