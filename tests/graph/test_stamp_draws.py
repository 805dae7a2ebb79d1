"""Drawn times: their curves, gaps and first days, and sessions that move as a whole."""

import numpy as np
import pytest

from lightning_dpg.graph.transfer_counts import (
    DAY,
    Counted,
    Window,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    gap_borders,
    number_borders,
)
from lightning_dpg.graph.transfer_draws import Curves, draw_numbers, draw_stamps, even_draws
from lightning_dpg.metrics.transfers import curve_distance

WINDOW = Window(56, 2)  # eight weeks from a Wednesday


def bursts(seed=0, num_pairs=1500):
    """Pairs that begin early or late, with sessions of minutes some days apart, mostly by day."""
    rng, rows = np.random.default_rng(seed), []
    for pair in range(num_pairs):
        begin, k = WINDOW.days * DAY * rng.beta(1, 3), 0
        while begin < WINDOW.days * DAY and k < 1 + rng.geometric(0.3):
            if 8 <= begin / 3600 % 24 < 20:
                for gap in np.cumsum(rng.exponential(120, 1 + rng.poisson(2))):
                    rows.append((pair, int(begin + gap), rng.random() < 0.4))
                    k += 1
            begin += rng.exponential(2 * DAY)
    pairs, times, replies = (np.array(each) for each in zip(*rows, strict=True))
    inside = times < WINDOW.days * DAY
    return counted(pairs[inside], times[inside], replies[inside])


def counted(pairs, times, replies):
    is_first = np.append(True, pairs[1:] != pairs[:-1])
    payer = np.cumsum(replies) % 2
    return Counted(np.stack([payer, 1 - payer], 1), is_first, None, times)


def curves_of(real):
    found = (each(real, WINDOW) for each in (count_days, count_hours, count_gaps, count_new_pairs))
    return Curves(*(each.astype(float) for each in found))


def numbers_of(real):
    return np.diff(np.flatnonzero(real.is_first), append=len(real.times))


def test_curves_hold_and_pairs_keep_their_gaps():
    real, rng = bursts(), np.random.default_rng(1)
    stamps = draw_stamps(numbers_of(real), curves_of(real), WINDOW, rng)
    assert np.bincount(stamps.pairs).tolist() == numbers_of(real).tolist()
    assert 0 <= stamps.times.min() and stamps.times.max() < WINDOW.days * DAY
    follows = stamps.pairs[1:] == stamps.pairs[:-1]
    assert (np.diff(stamps.times)[follows] >= 0).all()
    drawn = counted(*stamps)
    ours, theirs = curves_of(drawn), curves_of(real)
    close = {"days": 0.03, "hours": 0.05, "new_pairs": 0.1}
    for name, most in close.items():
        assert curve_distance(getattr(theirs, name), getattr(ours, name)) < most, name
    gaps = curve_distance(theirs.gaps.sum(0), ours.gaps.sum(0))
    shuffled = stamps._replace(times=rng.permutation(stamps.times))
    order = np.lexsort((shuffled.times, shuffled.pairs))
    apart = curves_of(counted(shuffled.pairs, shuffled.times[order], stamps.is_reply))
    assert gaps < 0.1
    assert curve_distance(theirs.gaps.sum(0), apart.gaps.sum(0)) > 0.5
    share = stamps.is_reply.sum() / (~drawn.is_first).sum()
    assert share == pytest.approx(theirs.gaps[1].sum() / theirs.gaps.sum(), abs=0.02)


def test_gaps_that_are_longer_than_the_window_are_shortened():
    borders = gap_borders(WINDOW)
    gaps = np.zeros((1, len(borders)))
    gaps[0, -1] = 1.0  # half of the window, or more
    flat = np.ones(WINDOW.days)
    curves = Curves(flat, np.ones(168), gaps, flat)
    numbers = np.full(50, 6)
    stamps = draw_stamps(numbers, curves, WINDOW, np.random.default_rng(0))
    assert len(stamps.times) == 300 and stamps.times.max() < WINDOW.days * DAY


def test_noise_alone_gives_times_in_the_window():
    rng = np.random.default_rng(0)
    noisy = Curves(*(-np.abs(rng.normal(size=size)) for size in ((56,), (168,), (2, 24), (56,))))
    noisy = noisy._replace(gaps=-np.ones((2, len(gap_borders(WINDOW)))))
    stamps = draw_stamps(np.array([1, 3]), noisy, WINDOW, rng)
    assert len(stamps.times) == 4 and (0 <= stamps.times).all()
    assert stamps.times.max() < WINDOW.days * DAY


def test_numbers_have_the_released_mean():
    rng, borders = np.random.default_rng(0), number_borders(None)
    real = np.minimum(rng.zipf(1.8, 5000), 500)
    bins = np.searchsorted(borders, real, side="right") - 1
    counts = np.bincount(bins, minlength=len(borders)).astype(float)
    drawn = draw_numbers(counts, 0.0, None, float(real.mean()), 5000, rng)
    assert drawn.mean() == pytest.approx(real.mean(), rel=0.02)
    again = np.bincount(np.searchsorted(borders, drawn, side="right") - 1, minlength=len(borders))
    assert np.abs(again - counts).max() <= 1
    few = draw_numbers(np.array([5.0, 0, 15.0]), 0.0, 3, 2.0, 20, rng)
    assert sorted(few.tolist()) == [1] * 5 + [3] * 15


def test_bins_within_the_noise_have_no_pairs():
    counts = np.zeros(len(number_borders(None)))
    counts[:2], counts[-1] = (900, 100), 25  # 25 pairs of thousands of transfers would decide
    drawn = draw_numbers(counts, 10.0, None, 1.13, 1000, np.random.default_rng(0))
    assert drawn.max() <= 3
    more = draw_numbers(counts, 10.0, None, 3.0, 1000, np.random.default_rng(0))
    assert more.mean() == pytest.approx(3, rel=0.02)  # the rest of a released mean is a tail
    assert (more == 1).mean() > 0.5 and more.max() < 100


def test_even_draws_have_the_shares_of_their_probabilities():
    found = np.bincount(even_draws(np.array([0.1, 0.0, 0.6, 0.3]), 100, np.random.default_rng(0)))
    assert np.abs(found - [10, 0, 60, 30]).max() <= 1
    assert len(even_draws(np.ones(3), 0, np.random.default_rng(0))) == 0
