r"""Drawn amounts and times of transfers, from noisy counts. All inputs are public or released.

**Curves**, such as those of days and hours, are smoothed as far as their noise asks for it. Each has
several linear smoothers S, and the one with the smallest estimated error is taken. For
noise of variance :math:`\sigma^2` in n numbers x, :math:`|x - S x|^2 + 2 \sigma^2 \mathrm{tr}(S) - n
\sigma^2` is an unbiased estimate of the squared error of S x (Stein, "Estimation of the mean of a
multivariate normal distribution", 1981; of a linear smoother it needs no more than the variance).

**Times** are renewed pair by pair, and then ranks are matched. A pair has its first transfer on a day of
the curve of new pairs, and further ones at gaps of the curve of gaps. Transfers of a pair less than a
quarter of an hour apart are a session, which moves as a whole. The first session of each pair stays. The
others move to a draw from what the first ones leave of the curves of days and hours: in its order, each
time goes to one of a few random sessions of pairs that have begun, whose own time is nearest. So these
curves and that of new pairs hold. At last, later transfers of two pairs exchange their times, until the
curve of gaps holds.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import Floats, Integers, shares
from lightning_dpg.graph.transfer_counts import (
    DAY,
    HOUR,
    HOURS_OF_WEEK,
    Strengths,
    Window,
    amount_borders,
    count_strengths,
    first_days_of,
    gap_borders,
    largest_amount,
    number_borders,
    strength_borders,
    strengths_of,
)

# Sums of amounts below so many units of their noise are not aimed at.
_LEAST_SUM_SIGNAL = 2.0
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 2.0
_ROUNDS = 8
_STRENGTH_ROUNDS = 10
_MOST_STEP = 4.0
# Released strengths may lie so many bins beside the drawn ones.
_NEAR = 2
_SESSION = 900  # seconds
_LARGEST_POWER = 4.0
_BISECTIONS = 40
_LEAST_LACK, _MOST_TAIL = 0.02, 0.5  # of the released mean, and of all pairs
_EXCHANGES = 50
_SWAP_ROUNDS = 500
_CANDIDATES = 4  # sessions that a time may go to; one loses gaps, twelve lose long ones
_WIDTHS = (3, 5, 9, 17)  # of moving means
_LEAST_GUIDE, _LEAST_NUMBER = 0.5, 1e-9  # counts of a day
_LEAST_GAPS = 0.005  # of all gaps, that may be in the wrong bin
_LEAST_SIGNAL = 3.0  # in units of the scale of the noise


def smoothed_days(
    noisy: Floats, scale: float, window: Window, hours: Floats, guide: Floats | None = None
) -> Floats:
    """Smooth a curve of days by moving means, with or without an effect of the day of the week.

    Counts of weeks and of four weeks are spread over their days by the guide, or without one by lines
    between their middles and by the curve of hours of the week.

    Args:
        noisy: Noisy counts by the bins of :func:`first_days`, shape ``(B,)``.
        scale: Scale of the Laplace noise.
        window: Grid of days (public).
        hours: Counts by hour of the week, shape ``(168,)``.
        guide: Counts of another released curve by day, whose multiples are tried too, shape ``(days,)``.

    Returns:
        Counts by day, equal to the noisy ones of days if they have no noise.
    """
    days = np.arange(window.days)
    weekdays, first = window.weekday(days), first_days_of(window.days, len(noisy))
    bins = np.searchsorted(first, days, side="right") - 1
    sizes = np.bincount(bins).astype(np.float64)
    guides: list[Floats] = [sizes]
    if guide is not None:
        guide = guide.clip(_LEAST_GUIDE)
        guides.append(np.bincount(bins, guide).astype(np.float64))
    smoothers = (
        _of_days(noisy, weekdays[first], each, len(first) == window.days) for each in guides
    )
    smooth = _best(noisy, scale, chain.from_iterable(smoothers))
    if len(first) == window.days:
        return smooth
    by_day, smooth = guide, smooth.clip(0)
    if by_day is None:
        by_day = np.interp(days, first + (sizes - 1) / 2, smooth / sizes)
        by_day *= shares(hours.reshape(7, 24).sum(axis=1))[weekdays]
    by_day = by_day.clip(_LEAST_NUMBER)
    return by_day * (smooth / np.bincount(bins, by_day))[bins]


def smoothed_hours(noisy: Floats, scale: float) -> Floats:
    """Smooth a curve of hours of the week by the hours of an average day.

    Args:
        noisy: Noisy counts by hour from Monday on, shape ``(168,)``.
        scale: Scale of the Laplace noise.

    Returns:
        Counts of shape ``(168,)``, equal to the noisy ones if they have no noise.
    """
    return _best(noisy, scale, _of_hours(noisy, scale))


def smoothed_change(noisy: Floats, scale: float) -> Floats:
    """Smooth a noisy difference of two curves by moving means, or by zeros where it may be noise only.

    Args:
        noisy: Noisy differences, shape ``(B,)``.
        scale: Scale of the Laplace noise.

    Returns:
        Differences of shape ``(B,)``, equal to the noisy ones if they have no noise.
    """
    means = (_moving_mean(noisy, width, np.ones(len(noisy))) for width in _WIDTHS)
    return _best(noisy, scale, chain([(np.zeros(len(noisy)), 0.0)], means))


def _best(noisy: Floats, scale: float, smoothers: Iterator[tuple[Floats, float]]) -> Floats:
    """Return the smooth numbers of the smallest estimated error; each smoother comes with its trace."""
    best, least = noisy, 2 * scale**2 * len(noisy)
    for smooth, trace in smoothers:
        error = ((noisy - smooth) ** 2).sum() + 2 * scale**2 * (2 * trace - len(noisy))
        if error < least:
            best, least = smooth, error
    return best


def _of_days(
    noisy: Floats, weekdays: NDArray[np.int64], guide: Floats, has_weekdays: bool
) -> Iterator[tuple[Floats, float]]:
    width = 3
    while width < 2 * len(noisy):
        trend, trace = _moving_mean(noisy, width, guide)
        yield trend, trace
        if width >= 7 and len(noisy) >= 14 and has_weekdays:
            sizes = np.bincount(weekdays, minlength=7)
            effects = np.bincount(weekdays, noisy - trend, minlength=7) / sizes
            yield trend + effects[weekdays], trace + 7
        width = 2 * width + 1


def _moving_mean(values: Floats, width: int, guide: Floats) -> tuple[Floats, float]:
    """Return a guide in proportion to the windows of an odd width around each value, and the trace."""
    places = np.arange(len(values))
    first = np.maximum(places - width // 2, 0)
    last = np.minimum(places + width // 2 + 1, len(values))
    sums, guides = (np.append(0.0, np.cumsum(each)) for each in (values, guide))
    parts = guide / (guides[last] - guides[first])
    return parts * (sums[last] - sums[first]), float(parts.sum())


def _of_hours(noisy: Floats, scale: float) -> Iterator[tuple[Floats, float]]:
    table = noisy.reshape(7, 24)
    hours, days, mean = table.mean(0), table.mean(1), table.mean()
    energy = max(((days - mean) ** 2).sum(), np.finfo(float).tiny)
    # As James and Stein shrink six numbers, each the mean of a day.
    days = mean + (days - mean) * max(1 - 4 * 2 * scale**2 / 24 / energy, 0.0)
    yield (hours[None, :] + days[:, None] - mean).ravel(), 30.0
    yield np.tile(hours, 7), 24.0
    for width in (3, 5, 7):
        around = np.mean([np.roll(hours, step - width // 2) for step in range(width)], axis=0)
        yield (around[None, :] + days[:, None] - mean).ravel(), 24 / width + 6
        yield np.tile(around, 7), 24 / width
    yield np.repeat(days, 24), 7.0
    yield np.full(168, mean), 1.0


def shrunk_shares(noisy: Floats, scale: float) -> Floats:
    r"""Return the shares of bins in each cell, shrunk towards the shares of all cells together.

    The shrinkage follows James and Stein: the difference d of a cell of total n from n times the common
    shares keeps the factor :math:`(1 - 2 B b^2 / |d|^2)_+`, where :math:`2 B b^2` is the expected square
    of noise of scale b in B bins.

    Args:
        noisy: Noisy counts of shape ``(cells, B)``.
        scale: Scale b of the noise.

    Returns:
        Shares of shape ``(cells, B)``, each row of sum 1.
    """
    common, totals = shares(noisy.sum(axis=0)), noisy.sum(axis=1, keepdims=True)
    expected = np.maximum(totals, 0) * common
    difference = noisy - expected
    energy = np.maximum((difference**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
    factor = np.maximum(1 - 2 * noisy.shape[1] * scale**2 / energy, 0)
    return np.where(totals > 0, [shares(row) for row in expected + factor * difference], common)


def draw_places(probabilities: Floats, cells: Integers, rng: np.random.Generator) -> Integers:
    """Draw a place in the row of each cell: shapes ``(cells, B)`` and ``(T,)`` to ``(T,)``."""
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative = cumulative / cumulative[:, -1:] + np.arange(len(probabilities))[:, None]
    positions = np.searchsorted(cumulative.ravel(), rng.random(len(cells)) + cells, side="right")
    places: Integers = np.minimum(
        positions - cells * probabilities.shape[1], probabilities.shape[1] - 1
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

    All amounts of a cell get the same factor, of 1/10 to 2, and none exceeds the largest one. A cell is
    left alone if its released sum is within the noise, and the drawn one is not beyond that.

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
    if abs(lacking) > _LEAST_SUM_SIGNAL * scale * math.sqrt(2 * len(sums)):
        values = _fitted(values, 0 * cells, sums.sum(keepdims=True), scale, largest)
    return np.floor(values + rng.random(len(values))).astype(np.int64).clip(0, largest)


def _fitted(amounts: Floats, cells: Integers, sums: Floats, scale: float, largest: int) -> Floats:
    """Multiply amounts by a factor of their cell, see :func:`fitted_to_sums`."""
    factors, values = np.ones(len(sums)), amounts
    noise, drawn = _LEAST_SUM_SIGNAL * scale, np.bincount(cells, amounts, minlength=len(sums))
    is_known = (drawn > 0) & ((sums > noise) | (drawn > sums + noise))
    for _ in range(_ROUNDS):  # the bound takes a part of an increase
        current = np.bincount(cells, values, minlength=len(sums))
        step = np.where(is_known, np.maximum(sums, 0) / np.maximum(current, 1), 1.0)
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

    In each class of degrees, the difference between released counts and counts of the drawn graph is
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
        window = slice(max(held[0] - _NEAR, 0), held[-1] + _NEAR + 1)
        released = noisy[degree, window]
        expected = max(float(released.sum()), 0.0) * shares(drawn[degree, window])
        change = smoothed_change(released - expected, scale)
        # A node without a relation has no amount.
        if not degree or not change.any() or not expected.any():
            continue
        cumulative = np.zeros(len(borders))
        cumulative[window] = shares(expected + change)
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

    A transfer takes the factor of its end with fewer relations, to which it matters more.

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


class Curves(NamedTuple):
    """Released curves, which may have negative counts (noisy).

    Attributes:
        days: Transfers by day.
        hours: Transfers by hour of the week, from Monday on, shape ``(168,)``.
        gaps: Gaps by whether the payer changes and by their bins, shape ``(2, B)``.
        new_pairs: Pairs by the day of their first transfer.
    """

    days: Floats
    hours: Floats
    gaps: Floats
    new_pairs: Floats


class Stamps(NamedTuple):
    """Drawn times. Those of one pair follow each other in ascending order.

    Attributes:
        pairs: Number of the pair of each transfer, shape ``(T,)``.
        times: Seconds since the beginning of the window, shape ``(T,)``.
        is_reply: Whether the payer is the payee of the transfer before, shape ``(T,)``.
    """

    pairs: Integers
    times: Integers
    is_reply: NDArray[np.bool_]


def even_draws(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw places in ascending order, each as often as its probability says, up to 1."""
    cumulative = np.cumsum(probabilities)
    points = (np.arange(count) + rng.random()) / max(count, 1) * cumulative[-1]
    places = np.searchsorted(cumulative, points, side="right")
    return np.minimum(places, np.flatnonzero(probabilities > 0)[-1])


def draw_numbers(
    noisy: Floats,
    scale: float,
    most: int | None,
    mean: float,
    count: int,
    rng: np.random.Generator,
) -> Integers:
    r"""Draw the number of transfers of each pair.

    With an open last bin, the bins from the first one within the noise on are left out: few pairs of many
    transfers would decide on the number of all transfers. In the others, a number x has a probability in
    proportion to :math:`x^{-a}`, where a is fitted so that the mean is the released one. If it is too
    large for these bins, the rest of it is a tail that falls exponentially.

    Args:
        noisy: Noisy counts of pairs in the bins of :func:`number_borders`.
        scale: Scale of the noise in them.
        most: Most transfers of a pair (public); None if the last bin is open.
        mean: Released mean; used with an open bin only.
        count: Number of pairs.
        rng: Source of random numbers.

    Returns:
        Numbers from 1 on, shape ``(count,)``.
    """
    borders = number_borders(most)
    if most is not None:
        return rng.permutation(borders[even_draws(shares(noisy), count, rng)])
    is_within_noise = noisy <= _LEAST_SIGNAL * scale
    is_within_noise[0] = False
    is_left_out = np.logical_or.accumulate(is_within_noise)
    numbers = np.arange(1, 2 * borders[-1])
    bins = np.searchsorted(borders, numbers, side="right") - 1
    known = np.where(is_left_out, 0, noisy)
    known[0] = max(known[0], 0.0 if (known > 0).any() else 1.0)  # no shares of nothing but noise
    probabilities = _of_mean(numbers, bins, shares(known), mean)
    lacking = mean - float(numbers @ probabilities)
    if is_left_out.any() and lacking > _LEAST_LACK * mean:
        first = borders[np.argmax(is_left_out)]
        beyond = max(
            float(first), lacking / _MOST_TAIL
        )  # of the tail's mean, from its first number on
        tail = np.where(numbers >= first, np.exp(-(numbers - first) / beyond), 0.0)
        tail /= tail.sum()
        share = lacking / (lacking + float(numbers @ tail) - mean)
        probabilities = (1 - share) * probabilities + share * tail
    return rng.permutation(numbers[even_draws(probabilities, count, rng)])


def _of_mean(numbers: Integers, bins: Integers, by_bin: Floats, mean: float) -> Floats:
    """Return probabilities of numbers that have the shares of bins, and nearly a mean."""
    low, high, probabilities = 0.0, _LARGEST_POWER, np.zeros(len(numbers))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        weights = numbers**-middle
        probabilities = by_bin[bins] * weights / np.bincount(bins, weights)[bins]
        is_large = numbers @ probabilities > mean
        low, high = (middle, high) if is_large else (low, middle)
    return probabilities


def draw_stamps(
    numbers: Integers, curves: Curves, window: Window, rng: np.random.Generator
) -> Stamps:
    """Draw the times of all transfers of each pair.

    Args:
        numbers: Number of transfers of each pair, from 1 on, shape ``(P,)``.
        curves: Released curves.
        window: Grid of days and hours (public).
        rng: Source of random numbers.

    Returns:
        Times within the window.
    """
    pairs = np.repeat(np.arange(len(numbers)), numbers)
    gaps, is_reply = _draw_gaps(numbers, pairs, curves, window, rng)
    starts = np.cumsum(numbers) - numbers
    offsets = np.cumsum(gaps)
    offsets -= offsets[starts][pairs]
    spans = np.zeros(len(numbers), dtype=np.int64)
    np.maximum.at(spans, pairs, offsets)
    times = offsets + _first_times(spans, curves, window, rng)[pairs]
    _match_ranks(pairs, times, curves, window, rng)
    times = times[np.lexsort((times, pairs))]
    swap_for_gaps(pairs, times, curves, window, rng)
    return Stamps(pairs, times, is_reply)


def _match_ranks(
    pairs: Integers, times: Integers, curves: Curves, window: Window, rng: np.random.Generator
) -> None:
    """Move all sessions but the first one of each pair, so that days, hours and new pairs hold."""
    begins_pair = np.ones(len(times), dtype=np.bool_)
    begins_pair[1:] = pairs[1:] != pairs[:-1]
    begins = begins_pair.copy()
    begins[1:] |= np.diff(times) >= _SESSION
    sessions = np.cumsum(begins) - 1
    is_later = ~begins_pair[begins][sessions]
    first, later, begins = times[~is_later], times[is_later], begins[is_later]
    starts = times[begins_pair][pairs[is_later][begins]]
    sessions = np.cumsum(begins) - 1
    in_days = np.bincount(first // DAY, minlength=window.days)
    in_hours = np.bincount(window.hours_of_week(first), minlength=HOURS_OF_WEEK)
    targets = np.sort(
        _times_of_days(
            even_draws(shares(len(times) * shares(curves.days) - in_days), len(later), rng),
            shares(len(times) * shares(curves.hours) - in_hours),
            window,
            rng,
        )
    )
    heads, sizes = later[begins], np.bincount(sessions)
    moved = _after_starts(heads, starts, sizes, targets, rng)
    moved = moved[sessions] + later - heads[sessions]
    times[is_later] = np.minimum(moved, window.days * DAY - 1)


def _after_starts(
    heads: Integers,
    starts: Integers,
    sizes: Integers,
    targets: Integers,
    rng: np.random.Generator,
) -> Integers:
    """Give sorted times to sessions of pairs that have begun, of a few random ones to the nearest."""
    moved, pool, taken, place = np.empty_like(heads), list[int](), 0, 0
    order = np.argsort(starts, kind="stable").tolist()
    ready, wanted, numbers = starts[order].tolist(), heads.tolist(), sizes.tolist()
    for picks in rng.random((len(order), _CANDIDATES)).tolist():
        now = int(targets[place])
        # Without a pair that has begun, the one that begins first.
        until = max(bisect_right(ready, now), taken + (not pool))
        pool.extend(order[taken:until])
        taken = until
        distances = [(abs(wanted[pool[k]] - now), k) for k in (int(p * len(pool)) for p in picks)]
        chosen = min(distances)[1]
        pool[chosen], pool[-1] = pool[-1], pool[chosen]
        session = pool.pop()
        moved[session] = targets[place + numbers[session] // 2]
        place += numbers[session]
    return moved


def swap_for_gaps(
    pairs: Integers, times: Integers, curves: Curves, window: Window, rng: np.random.Generator
) -> None:
    """Let later transfers of two pairs exchange their times, so that the curve of gaps holds better.

    The times stay the same ones, and so do days, hours and the first transfer of each pair. A round
    proposes a transfer after a gap of which there are too many, and one whose time makes it a gap that
    lacks. Both exchange their times if the order within their pairs stays and the gaps come nearer to the
    curve. A round has as many proposals as gaps lack, of different pairs.
    """
    has_next = np.append(pairs[1:] == pairs[:-1], False)
    later = np.flatnonzero(has_next) + 1
    length = window.days * DAY
    borders = np.append(gap_borders(window), length)
    wanted = len(later) * shares(curves.gaps.sum(axis=0))
    by_time = later[np.argsort(times[later], kind="stable")]
    sorted_times, place_of = times[by_time], np.empty(len(pairs), dtype=np.int64)
    place_of[by_time] = np.arange(len(later))
    for _ in range(_SWAP_ROUNDS):
        bins = np.searchsorted(borders, times[later] - times[later - 1], side="right") - 1
        counts = np.bincount(bins, minlength=len(wanted))
        lacking = np.maximum(wanted - counts, 0)
        number = int(lacking.sum())
        if number <= _LEAST_GAPS * len(later):
            return
        surplus = np.cumsum((np.maximum(counts - wanted, 0) / np.maximum(counts, 1))[bins])
        one = later[np.searchsorted(surplus, rng.random(number) * surplus[-1], side="right")]
        places = rng.permutation(even_draws(lacking, number, rng))
        low, high = np.maximum(borders[places], 1), borders[places + 1]
        goal = times[one - 1] + (low * (high / low) ** rng.random(number)).astype(np.int64)
        other = by_time[np.searchsorted(sorted_times, goal).clip(0, len(later) - 1)]
        both = np.stack([one, other], axis=1)
        is_new = np.zeros(2 * number, dtype=np.bool_)
        is_new[np.unique(pairs[both], return_index=True)[1]] = True
        one, other = both[is_new.reshape(-1, 2).all(axis=1)].T
        before = np.append(0, times[:-1])
        after = np.where(has_next, np.append(times[1:], 0), 2 * length)
        # A gap beyond the window stands for none: it is in the last place, and so is one below 0.
        signs = np.append(np.sign(wanted - counts), 0)
        gain = np.zeros(len(one))
        for place, now, then in (
            (one, times[one], times[other]),
            (other, times[other], times[one]),
        ):
            gaps = np.stack(
                [then - before[place], after[place] - then, now - before[place], after[place] - now]
            )
            worth = signs[np.searchsorted(borders, gaps, side="right") - 1]
            gain += worth[:2].sum(axis=0) - worth[2:].sum(axis=0)
        is_better = (
            (gain > 0)
            & (before[one] <= times[other])
            & (times[other] <= after[one])
            & (before[other] <= times[one])
            & (times[one] <= after[other])
        )
        one, other = one[is_better], other[is_better]
        for values in (times, place_of):
            values[one], values[other] = values[other], values[one]
        by_time[place_of[one]], by_time[place_of[other]] = one, other


def _draw_gaps(
    numbers: Integers,
    pairs: Integers,
    curves: Curves,
    window: Window,
    rng: np.random.Generator,
) -> tuple[Integers, NDArray[np.bool_]]:
    """Draw the gap before each transfer, 0 before the first one of a pair, and whether it replies.

    The gaps of a pair fit into the window: large ones of a pair that lasts too long change places with
    random ones, and what remains is shortened.
    """
    borders, length = gap_borders(window), window.days * DAY
    is_first = np.ones(len(pairs), dtype=np.bool_)
    is_first[1:] = pairs[1:] != pairs[:-1]
    follows = np.flatnonzero(~is_first)
    places = rng.permutation(even_draws(shares(curves.gaps.ravel()), len(follows), rng))
    low, high = borders, np.append(borders[1:], length)
    low, high = low[places % len(borders)], high[places % len(borders)]
    drawn = np.maximum(low, 1) * (high / np.maximum(low, 1)) ** rng.random(len(follows))
    gaps, is_reply = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.bool_)
    gaps[follows] = np.where(low > 0, drawn, 0).astype(np.int64)
    is_reply[follows] = places >= len(borders)
    for _ in range(_EXCHANGES):
        spans = np.bincount(pairs, gaps, minlength=len(numbers))
        # A pair that lasts too long has a gap above its even share of the window.
        too_large = np.flatnonzero((spans >= length)[pairs] & (gaps * numbers[pairs] > length))
        if not len(too_large):
            break
        drawn_places = follows[rng.integers(0, len(follows), len(too_large))]
        other, place = np.unique(drawn_places, return_index=True)
        is_other = ~np.isin(other, too_large)
        one, other = too_large[place[is_other]], other[is_other]
        for values in (gaps, is_reply):
            values[one], values[other] = values[other].copy(), values[one].copy()
    spans = np.bincount(pairs, gaps, minlength=len(numbers))
    factors = np.minimum(1, (length - 1) / np.maximum(spans, 1))
    return (gaps * factors[pairs]).astype(np.int64), is_reply


def _first_times(
    spans: Integers, curves: Curves, window: Window, rng: np.random.Generator
) -> Integers:
    """Draw the first time of each pair, early enough for its last one, shape ``(P,)``.

    Times follow the curve of new pairs. Each pair gets a random one that is early enough; the pairs that
    last longest choose first.
    """
    days = even_draws(shares(curves.new_pairs), len(spans), rng)
    times = np.sort(_times_of_days(days, shares(curves.hours), window, rng))
    order = np.argsort(-spans, kind="stable")
    limits = window.days * DAY - 1 - spans[order]
    ready = np.searchsorted(times, limits, side="right").tolist()
    picks = rng.random(len(order)).tolist()
    found, pool, taken = np.empty(len(order), dtype=np.int64), list[int](), 0
    for place, (until, pick) in enumerate(zip(ready, picks, strict=True)):
        # Without a time that is early enough, the earliest of all.
        until = max(until, taken + (not pool))
        pool.extend(range(taken, until))
        taken = max(taken, until)
        chosen = int(pick * len(pool))
        pool[chosen], pool[-1] = pool[-1], pool[chosen]
        found[place] = pool.pop()
    first = np.empty(len(order), dtype=np.int64)
    first[order] = times[found]
    return np.minimum(first, window.days * DAY - 1 - spans)


def _times_of_days(
    days: Integers, by_hour: Floats, window: Window, rng: np.random.Generator
) -> Integers:
    """Draw a time on each day, by the hours of its day of the week."""
    times = days * DAY + rng.integers(0, HOUR, len(days))
    weekdays = window.weekday(days)
    for weekday in range(7):
        is_of = weekdays == weekday
        hours = by_hour[24 * weekday : 24 * (weekday + 1)]
        if not hours.sum() > 0:
            hours = np.ones(24)
        drawn = rng.permutation(even_draws(hours, int(is_of.sum()), rng))
        times[is_of] += drawn * HOUR
    return times
