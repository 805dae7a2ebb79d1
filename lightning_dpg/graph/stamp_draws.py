"""Drawn times of transfers, from released curves: renewal of pairs, then matching of ranks.

All inputs are public or released. A pair has its first transfer on a day of the curve of new pairs, and
further ones at gaps of the curve of gaps. Transfers of a pair less than a quarter of an hour apart are a
session, which moves as a whole. The first session of each pair stays. The others are sorted, and move to
the same ranks of a draw from what the first ones leave of the curves of days and hours. So these curves
hold, most gaps stay, and a pair becomes new on another day only if a later session moves before its
first one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.amount_draws import shares
from lightning_dpg.graph.transfer_counts import (
    DAY,
    HOUR,
    HOURS_OF_WEEK,
    Window,
    gap_borders,
    number_borders,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SESSION = 900  # seconds
_LARGEST_POWER = 4.0
_BISECTIONS = 40
_LEAST_LACK, _MOST_TAIL = 0.02, 0.5  # of the released mean, and of all pairs
_EXCHANGES = 50
_LEAST_SIGNAL = 3.0  # in units of the scale of the noise


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
    """Drawn times, those of a pair behind each other and ascending.

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
    found = np.searchsorted(cumulative, points, side="right")
    return np.minimum(found, np.flatnonzero(probabilities > 0)[-1])


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
    found = _of_mean(numbers, bins, shares(np.where(is_left_out, 0, noisy)), mean)
    lacking = mean - float(numbers @ found)
    if is_left_out.any() and lacking > _LEAST_LACK * mean:
        first = borders[np.argmax(is_left_out)]
        beyond = max(
            float(first), lacking / _MOST_TAIL
        )  # of the tail's mean, from its first number on
        tail = np.where(numbers >= first, np.exp(-(numbers - first) / beyond), 0.0)
        tail /= tail.sum()
        share = lacking / (lacking + float(numbers @ tail) - mean)
        found = (1 - share) * found + share * tail
    return rng.permutation(numbers[even_draws(found, count, rng)])


def _of_mean(numbers: Integers, bins: Integers, by_bin: Floats, mean: float) -> Floats:
    """Return probabilities of numbers that have the shares of bins, and nearly a mean."""
    low, high, found = 0.0, _LARGEST_POWER, np.zeros(len(numbers))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        weights = numbers**-middle
        found = by_bin[bins] * weights / np.bincount(bins, weights)[bins]
        is_large = numbers @ found > mean
        low, high = (middle, high) if is_large else (low, middle)
    return found


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
    return Stamps(pairs, times[np.lexsort((times, pairs))], is_reply)


def _match_ranks(
    pairs: Integers, times: Integers, curves: Curves, window: Window, rng: np.random.Generator
) -> None:
    """Move all sessions but the first one of each pair, so that the curves of days and hours hold."""
    begins_pair = np.ones(len(times), dtype=np.bool_)
    begins_pair[1:] = pairs[1:] != pairs[:-1]
    begins = begins_pair.copy()
    begins[1:] |= np.diff(times) >= _SESSION
    sessions = np.cumsum(begins) - 1
    is_later = ~begins_pair[begins][sessions]
    if not is_later.any():
        return
    first, later, begins = times[~is_later], times[is_later], begins[is_later]
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
    order = np.argsort(heads, kind="stable")
    middles = np.cumsum(sizes[order]) - (sizes[order] + 1) // 2
    moved = np.empty_like(heads)
    moved[order] = targets[middles]
    moved = moved[sessions] + later - heads[sessions]
    times[is_later] = np.minimum(moved, window.days * DAY - 1)


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

    The draws are those of the curve of new pairs. Each pair gets a random one of those that are early
    enough, the pairs that last longest first.
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
