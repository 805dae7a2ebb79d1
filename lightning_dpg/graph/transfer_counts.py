"""Exact counts of amounts and times of transfers, in public bins. All counts are integers.

Which transfers count depends on the unit of protection, see :func:`counted_transfers`. The bounds on
how far the counts of neighbors differ are in :mod:`lightning_dpg.privacy.sensitivity.transfers`.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.kind import CENTS, Kind
from lightning_dpg.graph.pair_space import PairSpace

DAY, HOUR = 86_400, 3_600
HOURS_OF_WEEK = 168
# Amounts below C / 1000 are one bin. The others have eight bins for each factor of 10.
_LOWEST = 1_000
_BINS_OF_AMOUNTS = 24
_WIDTHS = (1, 7, 28)  # days of a bin of curves of days
_LEAST_MOVED, _MOST_MOVED = 0.05, 0.15  # of all counts, by the noise of weeks
# The last bin of the number of transfers of a pair is open.
_DOUBLINGS = 12


class Counted(NamedTuple):
    """The transfers that count (private). Transfers of one pair follow each other, in their public order.

    Attributes:
        pairs: Payer and payee, shape ``(T, 2)``; of a bipartite graph the left and the right node.
        is_first: Whether a transfer is the first one of its pair, shape ``(T,)``.
        amounts: Units of each amount, from 0 to the largest one, shape ``(T,)``; None without amounts.
        times: Seconds since the beginning of the window, shape ``(T,)``; None without times.
    """

    pairs: Integers
    is_first: NDArray[np.bool_]
    amounts: Integers | None
    times: Integers | None


def largest_amount(weight_max: float) -> int:
    """Return the largest amount that counts in units, at least 1."""
    return max(1, round(weight_max * CENTS))


def counted_transfers(
    pairs: Integers,
    amounts: Integers | None,
    times: Integers | None,
    *,
    kind: Kind,
    most: int | None,
    largest: int = 0,
) -> Counted:
    """Choose the transfers that count, for each pair by its own transfers alone.

    A pair is an edge of the graph: without directions, unless the graph is directed. The transfers of
    a pair are ordered by time, payer and amount. Equal ones cannot be told apart, so the order of the
    rows does not matter.

    Args:
        pairs: Payer and payee of all transfers, shape ``(T, 2)`` (private).
        amounts: Their amounts in units, shape ``(T,)`` (private); None without amounts.
        times: Their seconds since the beginning of the window, shape ``(T,)`` (private); None without
            times.
        kind: Kind of the graph (public).
        most: Number k of transfers of a pair that count, its first ones; None counts all of them. If
            1, and without times, a pair counts as one transfer of the sum of its amounts, clipped, in
            the direction of its first one.
        largest: Largest amount in units (public), to which larger ones are clipped.

    Returns:
        The transfers that count (private).
    """
    if kind == "bipartite":
        pairs = np.sort(pairs, axis=1)
    ends = pairs if kind == "directed" else np.sort(pairs, axis=1)
    keys = [each for each in (amounts, pairs[:, 0], times) if each is not None]
    order = np.lexsort((*keys, ends[:, 1], ends[:, 0]))
    pairs, ends = pairs[order], ends[order]
    is_first = np.ones(len(pairs), dtype=np.bool_)
    is_first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    starts = np.flatnonzero(is_first)
    if amounts is not None:
        amounts = amounts[order].clip(0, largest)
        if most == 1 and times is None:
            totals = np.add.reduceat(amounts, starts) if len(starts) else amounts
            return Counted(pairs[starts], is_first[starts], totals.clip(0, largest), None)
    place = np.arange(len(pairs)) - np.repeat(starts, np.diff(starts, append=len(pairs)))
    counts = np.ones(len(pairs), dtype=np.bool_) if most is None else place < most
    return Counted(
        pairs[counts],
        is_first[counts],
        None if amounts is None else amounts[counts],
        None if times is None else times[order][counts],
    )


def amount_borders(weight_max: float) -> Integers:
    """Return the smallest amount of each bin in units, ascending (public).

    The first bin begins at 0, the others are logarithmic, and the last one has the largest amount
    alone, which clipped amounts have.
    """
    largest = largest_amount(weight_max)
    steps = np.arange(_BINS_OF_AMOUNTS + 1) / _BINS_OF_AMOUNTS
    borders = np.round(largest * float(_LOWEST) ** (steps - 1)).astype(np.int64)
    return np.unique(np.concatenate([[0], borders]))


def count_amounts(
    amounts: Integers, cells: Integers, num_cells: int, weight_max: float
) -> Integers:
    """Count transfers by a cell and the bin of their amounts.

    Args:
        amounts: Units of each amount, shape ``(T,)`` (private).
        cells: Cell of each transfer, such as the classes of payer and payee, shape ``(T,)``.
        num_cells: Number of cells (public).
        weight_max: Largest amount (public).

    Returns:
        Counts of shape ``(num_cells, B)`` (private).
    """
    borders = amount_borders(weight_max)
    bins = np.searchsorted(borders, amounts, side="right") - 1
    counts = np.bincount(cells * len(borders) + bins, minlength=num_cells * len(borders))
    return counts.reshape(num_cells, len(borders))


def sum_amounts(amounts: Integers, cells: Integers, num_cells: int) -> Integers:
    """Sum the units of amounts by a cell, in whole numbers: shape ``(num_cells,)`` (private)."""
    sums = np.zeros(num_cells, dtype=np.int64)
    np.add.at(sums, cells, amounts)
    return sums


def number_borders(most: int | None) -> Integers:
    """Return the smallest number of transfers of a pair of each bin (public).

    These are all numbers up to k, or the powers of 2 without k, where the last bin is open.
    """
    if most is not None:
        return np.arange(1, most + 1)
    return 2 ** np.arange(_DOUBLINGS)


def count_numbers(counted: Counted, most: int | None) -> Integers:
    """Count pairs by the number of their transfers, in the bins of :func:`number_borders` (private)."""
    numbers = np.diff(np.flatnonzero(counted.is_first), append=len(counted.is_first))
    return np.bincount(number_bins(numbers, most), minlength=len(number_borders(most)))


def number_bins(numbers: Integers, most: int | None) -> Integers:
    """Return the bin of numbers of transfers of a pair."""
    return np.searchsorted(number_borders(most), numbers, side="right") - 1


class Window(NamedTuple):
    """Grid of days and hours (public).

    Attributes:
        days: Number of days.
        first_weekday: Day of the week of the first one; 0 is Monday.
    """

    days: int
    first_weekday: int

    def weekday(self, days: Integers) -> Integers:
        """Return the day of the week of numbers of days."""
        return (days + self.first_weekday) % 7

    def hours_of_week(self, times: Integers) -> Integers:
        """Return the hour of the week of times in seconds, from 0 on Monday to 167."""
        return (times // HOUR + 24 * self.first_weekday) % HOURS_OF_WEEK


def window_of(first: datetime, last: datetime) -> Window:
    """Return the grid of a window from its first to its last day."""
    return Window((last.date() - first.date()).days + 1, first.weekday())


def first_days(days: int, scale: float, total: float) -> Integers:
    """Return the first day of each bin of a curve: days, weeks, or four weeks where noise asks for it.

    The narrowest bins are taken whose expected noise moves no more of all counts than their share. For
    weeks it is the share of four weeks in the window, of 5 to 15 %: a window of few weeks loses more by
    wide bins. Days bear twice as much, because smoothing takes noise out of them.

    Args:
        days: Number of days (public).
        scale: Scale of the Laplace noise in each bin.
        total: Released number of all counts.
    """
    moved = scale * days / 2 / max(total, 1.0)
    share = min(max(_WIDTHS[-1] / days, _LEAST_MOVED), _MOST_MOVED)
    most = dict(zip(_WIDTHS, (2 * share, share, math.inf), strict=True))
    return np.arange(0, days, next(w for w in _WIDTHS if moved / w <= most[w]))


def first_days_of(days: int, bins: int) -> Integers:
    """Return the first day of each bin, given their number."""
    return next(first for width in _WIDTHS if len(first := np.arange(0, days, width)) <= bins)


def times_of(counted: Counted) -> Integers:
    """Return the times of transfers that have them."""
    assert counted.times is not None
    return counted.times


def count_days(counted: Counted, window: Window) -> Integers:
    """Count transfers by day: shape ``(days,)`` (private)."""
    return np.bincount(times_of(counted) // DAY, minlength=window.days)


def count_hours(counted: Counted, window: Window) -> Integers:
    """Count transfers by hour of the week: shape ``(168,)`` (private)."""
    return np.bincount(window.hours_of_week(times_of(counted)), minlength=HOURS_OF_WEEK)


def count_new_pairs(counted: Counted, window: Window) -> Integers:
    """Count pairs by the day of their first transfer: shape ``(days,)`` (private)."""
    return np.bincount(times_of(counted)[counted.is_first] // DAY, minlength=window.days)


def gap_borders(window: Window) -> Integers:
    """Return the smallest gap of each bin in seconds: 0, and the powers of 2 of a window (public)."""
    doublings = int(window.days * DAY - 1).bit_length()
    return np.concatenate([[0], 2 ** np.arange(doublings)])


def count_gaps(counted: Counted, window: Window) -> Integers:
    """Count gaps between transfers of a pair by whether the payer changes, and by their bin.

    Returns:
        Counts of shape ``(2, B)``, those of the same payer first (private). A pair with a direction has
        no others.
    """
    times, borders = times_of(counted), gap_borders(window)
    follows = np.flatnonzero(~counted.is_first)
    gaps = times[follows] - times[follows - 1]
    is_reply = counted.pairs[follows, 0] != counted.pairs[follows - 1, 0]
    bins = np.searchsorted(borders, gaps, side="right") - 1
    counts = np.bincount(is_reply * len(borders) + bins, minlength=2 * len(borders))
    return counts.reshape(2, len(borders))


def strength_borders(weight_max: float) -> Integers:
    """Return the smallest strength of each bin in units, ascending (public).

    The first bin is 0. The others are logarithmic, with two bins for each factor of 2, and the last
    one is open.
    """
    largest = largest_amount(weight_max)
    powers = np.arange(-2 * _DOUBLINGS, 2 * _DOUBLINGS + 1) / 2
    borders = np.round(largest * 2.0**powers).astype(np.int64)
    return np.unique(np.concatenate([[0, 1], borders]))


def num_degree_classes(num_nodes: int) -> int:
    """Return the number of classes of degrees that N nodes can have (public)."""
    return (2 * num_nodes).bit_length() + 1


class Strengths(NamedTuple):
    """The amounts of nodes.

    Attributes:
        degrees: Class of the number of relations of each node, shape ``(N,)``.
        sums: Units that it pays and gets, shape ``(N,)``.
    """

    degrees: Integers
    sums: Integers


def node_sums(pairs: Integers, amounts: Integers, num_nodes: int) -> Integers:
    """Sum the amounts that each node pays and gets: shapes ``(T, 2)`` and ``(T,)`` to ``(N,)``."""
    sums = np.zeros(num_nodes, dtype=np.int64)
    for ends in pairs.T:
        np.add.at(sums, ends, amounts)
    return sums


def strengths_of(
    pairs: Integers, is_first: NDArray[np.bool_], amounts: Integers, num_nodes: int
) -> Strengths:
    """Sum amounts by node.

    Args:
        pairs: Payer and payee of each transfer, shape ``(T, 2)``.
        is_first: Whether a transfer is the first one of its pair, shape ``(T,)``.
        amounts: Amounts in units, shape ``(T,)``.
        num_nodes: Number of nodes N (public).
    """
    degrees = np.bincount(pairs[is_first].ravel(), minlength=num_nodes)
    sums = node_sums(pairs, amounts, num_nodes)
    return Strengths(classes_of_degrees(degrees), sums)


def classes_of_degrees(degrees: Integers) -> Integers:
    """Return the class of degrees: 0, and above it powers of 2."""
    return np.frexp(degrees)[1].astype(np.int64)


def count_strengths(strengths: Strengths, nodes: slice, weight_max: float) -> Integers:
    """Count nodes by the class of their degree and the bin of their strength.

    Args:
        strengths: Strengths of all nodes (private).
        nodes: Nodes that are counted (public).
        weight_max: Largest amount (public).

    Returns:
        Counts of shape ``(degree classes, bins)`` (private).
    """
    borders, classes = strength_borders(weight_max), num_degree_classes(len(strengths.sums))
    bins = np.searchsorted(borders, strengths.sums[nodes], side="right") - 1
    cells = strengths.degrees[nodes] * len(borders) + bins
    counts = np.bincount(cells, minlength=classes * len(borders))
    return counts.reshape(classes, len(borders))


class EndClasses(NamedTuple):
    """Classes of payers and payees: public, or functions of earlier releases.

    Attributes:
        of_end: Class of each end, shape ``(num_ends,)``. Where the graph has two sides, payers and
            payees have classes of their own.
        sizes: Number of classes of payers and of payees.
    """

    of_end: Integers
    sizes: tuple[int, int]

    @property
    def num_cells(self) -> int:
        """Number of pairs of classes."""
        return self.sizes[0] * self.sizes[1]

    def cells(self, ends: Integers) -> Integers:
        """Return the pair of classes of payer and payee: shape ``(T, 2)`` to ``(T,)``."""
        classes = self.of_end[ends]
        found: Integers = classes[:, 0] * self.sizes[1] + classes[:, 1]
        return found


@dataclass(frozen=True)
class TransferStatistics:
    """Exact counts of the transfers that count (private).

    Which ones count is said by :func:`counted_transfers`. Sensitivities are those of the counts and sums;
    nothing here adds noise or books.

    Attributes:
        counted: The transfers that count (private).
        space: Pairs of nodes (public).
        most: Number k of transfers of a pair that count; None for all.
        weight_max: Largest amount (public); None without amounts.
        window: Grid of days and hours (public); None without times.
    """

    counted: Counted
    space: PairSpace
    most: int | None
    weight_max: float | None
    window: Window | None

    def numbers(self) -> Integers:
        """Count pairs by the number of their transfers."""
        return count_numbers(self.counted, self.most)

    def amounts(self, classes: EndClasses) -> Integers:
        """Count transfers by the classes of their ends and the bin of their amount."""
        amounts, weight_max = self._amounts
        return count_amounts(amounts, self._cells(classes), classes.num_cells, weight_max)

    def sums(self, classes: EndClasses) -> Integers:
        """Sum amounts by the classes of the ends."""
        return sum_amounts(self._amounts[0], self._cells(classes), classes.num_cells)

    def strengths(self, nodes: slice) -> Integers:
        """Count nodes by the class of their degree and the bin of their sum of amounts."""
        (amounts, weight_max), transfers = self._amounts, self.counted
        strengths = strengths_of(transfers.pairs, transfers.is_first, amounts, self.space.num_nodes)
        return count_strengths(strengths, nodes, weight_max)

    def days(self) -> Integers:
        """Count transfers by day."""
        return count_days(self.counted, self._grid)

    def hours(self) -> Integers:
        """Count transfers by hour of the week."""
        return count_hours(self.counted, self._grid)

    def gaps(self) -> Integers:
        """Count gaps by reply and bin."""
        return count_gaps(self.counted, self._grid)

    def new_pairs(self) -> Integers:
        """Count pairs by the day of their first transfer."""
        return count_new_pairs(self.counted, self._grid)

    def _cells(self, classes: EndClasses) -> Integers:
        return classes.cells(self.space.ends(torch.from_numpy(self.counted.pairs)).numpy())

    @property
    def _amounts(self) -> tuple[Integers, float]:
        """The amounts and the largest one, of transfers that have them."""
        assert self.counted.amounts is not None and self.weight_max is not None
        return self.counted.amounts, self.weight_max

    @property
    def _grid(self) -> Window:
        """The grid of transfers that have times."""
        assert self.window is not None
        return self.window
