"""Drawn amounts, from noisy counts by classes and bins. All inputs are public or released."""

import math

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.curve_smoothing import smoothed_change
from lightning_dpg.graph.transfer_counts import (
    Strengths,
    amount_borders,
    count_strengths,
    largest_amount,
    strength_borders,
    strengths_of,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Sums of amounts below so many units of their noise are not aimed at.
_LEAST_SIGNAL = 2.0
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 2.0
_ROUNDS = 8
_STRENGTH_ROUNDS = 10
_MOST_STEP = 4.0
# Bins beside those of drawn strengths in which released ones may lie.
_NEAR = 2


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

    All amounts of a cell get the same factor, of 1/10 to 2, and none exceeds the largest one. A cell whose
    sum may be the released one, of which no more than noise is known, is left alone.

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
    values = _fitted(amounts.astype(np.float64), cells, sums, scale, largest)
    # Cells without a drawn transfer lack their sums, which the others share.
    lacking = float(sums.sum() - values.sum())
    if abs(lacking) > _LEAST_SIGNAL * scale * math.sqrt(2 * len(sums)):
        values = _fitted(values, 0 * cells, sums.sum(keepdims=True), scale, largest)
    return np.floor(values + rng.random(len(values))).astype(np.int64).clip(0, largest)


def _fitted(amounts: Floats, cells: Integers, sums: Floats, scale: float, largest: int) -> Floats:
    """Multiply amounts by a factor of their cell, see :func:`fitted_to_sums`."""
    factors, values = np.ones(len(sums)), amounts
    noise, drawn = _LEAST_SIGNAL * scale, np.bincount(cells, amounts, minlength=len(sums))
    is_known = (drawn > 0) & ((sums > noise) | (drawn > sums + noise))
    for _ in range(_ROUNDS):  # the bound takes a part of an increase
        found = np.bincount(cells, values, minlength=len(sums))
        step = np.where(is_known, np.maximum(sums, 0) / np.maximum(found, 1), 1.0)
        factors = np.clip(factors * step, _LEAST_FACTOR, _MOST_FACTOR)
        values = np.minimum(amounts * factors[cells], largest)
    return values


def wanted_strengths(
    strengths: Strengths,
    nodes: slice,
    noisy: Floats,
    scale: float,
    weight_max: float,
    rng: np.random.Generator,
) -> Floats:
    r"""Return the strengths that nodes should have, in the order that they have now.

    The difference between the released counts of each class of degrees and those of the drawn graph is
    smoothed as its noise asks for, in the bins of drawn strengths and next to these. Then the nodes of a
    class take the released quantiles of their ranks. A class within the noise stays as it is.

    Args:
        strengths: Strengths of a drawn graph.
        nodes: Nodes that are counted (public).
        noisy: Noisy counts of :func:`count_strengths`.
        scale: Scale of the noise in them.
        weight_max: Largest amount (public).
        rng: Source of random numbers.

    Returns:
        Strengths in units, shape ``(N,)``.
    """
    borders = strength_borders(weight_max)
    drawn = count_strengths(strengths, nodes, weight_max).astype(np.float64)
    wanted = strengths.sums.astype(np.float64)
    counted = np.arange(len(wanted))[nodes]
    for degree in np.flatnonzero(drawn.sum(axis=1)):
        held = np.flatnonzero(drawn[degree])
        near = slice(max(held[0] - _NEAR, 0), held[-1] + _NEAR + 1)
        released = noisy[degree, near]
        expected = max(float(released.sum()), 0.0) * shares(drawn[degree, near])
        change = smoothed_change(released - expected, scale)
        # A node without a relation has no amount.
        if not degree or not change.any() or not expected.any():
            continue
        cumulative = np.zeros(len(borders))
        cumulative[near] = shares(expected + change)
        cumulative = np.cumsum(cumulative)
        own = counted[strengths.degrees[counted] == degree]
        own = own[np.argsort(strengths.sums[own] + rng.random(len(own)), kind="stable")]
        ranks = (np.arange(len(own)) + 0.5) / len(own)
        bins = np.minimum(np.searchsorted(cumulative, ranks), len(borders) - 1)
        before = np.concatenate([[0.0], cumulative])[bins]
        part = (ranks - before) / np.maximum(cumulative[bins] - before, np.finfo(float).tiny)
        low, high = borders[bins], np.append(borders, 2 * borders[-1])[bins + 1]
        least = np.maximum(low, 1)
        wanted[own] = np.where(low > 0, least * (high / least) ** part.clip(0, 1), 0)
    return wanted


def fitted_to_strengths(
    pairs: Integers,
    is_first: NDArray[np.bool_],
    amounts: Integers,
    nodes: slice,
    noisy: Floats,
    scale: float,
    weight_max: float,
    num_nodes: int,
    rng: np.random.Generator,
) -> Integers:
    """Multiply drawn amounts, so that the strengths of nodes have the released distribution.

    The factor of a transfer is that of its end with fewer relations, to which it matters more.

    Args:
        pairs: Payer and payee of each transfer, shape ``(T, 2)``.
        is_first: Whether a transfer is the first one of its pair, shape ``(T,)``.
        amounts: Drawn amounts in units, shape ``(T,)``.
        nodes: Nodes that are counted (public).
        noisy: Noisy counts of :func:`count_strengths`.
        scale: Scale of the noise in them.
        weight_max: Largest amount (public).
        num_nodes: Number of nodes N (public).
        rng: Source of random numbers.

    Returns:
        Amounts in units, from 0 to the largest one, shape ``(T,)``.
    """
    largest = largest_amount(weight_max)
    now = strengths_of(pairs, is_first, amounts, num_nodes)
    wanted = wanted_strengths(now, nodes, noisy, scale, weight_max, rng)
    degrees = np.bincount(pairs[is_first].ravel(), minlength=num_nodes)
    first_is_smaller = degrees[pairs[:, 0]] <= degrees[pairs[:, 1]]
    owner = np.where(first_is_smaller, pairs[:, 0], pairs[:, 1])
    values = amounts.astype(np.float64)
    for _ in range(_STRENGTH_ROUNDS):
        owned = np.bincount(owner, values, minlength=num_nodes)
        total = sum(np.bincount(ends, values, minlength=num_nodes) for ends in pairs.T)
        goal = np.maximum(wanted - (total - owned), 0)
        factors = np.where(owned > 0, goal / np.maximum(owned, 1), 1.0)
        values = np.minimum(values * factors.clip(1 / _MOST_STEP, _MOST_STEP)[owner], largest)
    return np.floor(values + rng.random(len(values))).astype(np.int64).clip(0, largest)
