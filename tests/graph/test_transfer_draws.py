"""Drawn amounts and times of transfers."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from lightning_dpg.graph.counts import onto_total, shares
from lightning_dpg.graph.transfer_counts import (
    DAY,
    Counted,
    Window,
    amount_borders,
    count_amounts,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    count_strengths,
    first_days,
    first_days_of,
    gap_borders,
    number_borders,
    strengths_of,
)
from lightning_dpg.graph.transfer_draws import (
    Curves,
    draw_amounts,
    draw_numbers,
    draw_stamps,
    even_draws,
    fitted_to_strengths,
    fitted_to_sums,
    shrunk_shares,
    smoothed_change,
    smoothed_days,
    smoothed_hours,
    swap_for_gaps,
)
from lightning_dpg.metrics.transfers import curve_distance

RNG = np.random.default_rng(0)
HALF_YEAR = Window(182, 3)
DAYS = np.arange(HALF_YEAR.days)
TREND = 300 * np.exp(-(((DAYS - 60) / 40) ** 2)) + 40
WEEK = np.where((DAYS + 3) % 7 >= 5, -60, 24)
HOURS = np.tile(np.where(np.abs(np.arange(24) - 13) < 6, 80.0, 5.0), 7)
CURVES = {
    "trend": (lambda x, b: smoothed_days(x, b, HALF_YEAR, HOURS), TREND),
    "weeks": (lambda x, b: smoothed_days(x, b, HALF_YEAR, HOURS), TREND + WEEK),
    "hours": (smoothed_hours, HOURS + np.repeat([30.0] * 5 + [0.0] * 2, 24)),
    "change": (smoothed_change, 40 * np.sin(np.arange(40) / 7)),
    "no change": (smoothed_change, np.zeros(40)),
}


@pytest.mark.parametrize("name", CURVES)
def test_noise_is_taken_out(name):
    smooth, exact = CURVES[name]
    noisy = exact + RNG.laplace(0, 20, (20, len(exact)))
    error = np.mean([((smooth(each, 20.0) - exact) ** 2).sum() for each in noisy])
    assert error < ((noisy - exact) ** 2).sum(axis=1).mean() / 3


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_without_noise_stays(name):
    smooth, exact = CURVES[name]
    rough = exact + RNG.normal(0, 30, len(exact))
    assert smooth(rough, 0.0).tolist() == rough.tolist()


C = 1000.0
LARGEST = 100_000


def test_the_nearest_numbers_of_a_total_are_not_negative():
    assert onto_total(np.array([3.0, 1.0, -2.0]), 3.0).tolist() == [2.5, 0.5, 0.0]
    assert onto_total(np.array([1.0, 1.0]), 4.0).tolist() == [2.0, 2.0]


def test_cells_within_the_noise_become_the_common_one():
    rng = np.random.default_rng(0)
    common = np.arange(26.0) / np.arange(26).sum()
    own = common[::-1]
    exact = np.stack([1000 * common] * 6 + [1000 * own])
    noisy = exact + rng.laplace(0, 10, exact.shape)
    found = shrunk_shares(noisy, 10.0)
    assert found.sum(axis=1) == pytest.approx(1)
    errors = np.abs(found - exact / 1000).sum(axis=1) / 2
    raw = np.abs(noisy / 1000 - exact / 1000).sum(axis=1) / 2
    assert errors[:6].mean() < raw[:6].mean() / 1.5
    assert errors[6] < 0.2 < np.abs(common - own).sum() / 2  # what differs stays different
    assert shrunk_shares(exact, 0.0) == pytest.approx(exact / 1000)


def test_a_cell_whose_noise_adds_up_to_nothing_has_the_common_shares():
    noisy = np.array([[100.0, 200.0, 300.0, 400.0], [-13.0, 12.0, 5.0, -4.0]])
    assert shrunk_shares(noisy, 1.0)[1].tolist() == [0.087, 0.212, 0.305, 0.396]
    assert 0 < (0.1 * noisy[1]).sum() < 1e-15  # what rounding leaves
    assert shares(0.1 * noisy[1]).tolist() == [0.25] * 4


def test_drawn_amounts_have_the_bins_of_their_cells():
    borders, rng = amount_borders(C), np.random.default_rng(0)
    shares = np.zeros((2, len(borders)))
    shares[0, [0, 3, -1]] = 0.2, 0.5, 0.3
    shares[1, 10] = 1.0
    cells = np.repeat([0, 1], 5000)
    amounts = draw_amounts(shares, cells, C, rng)
    found = count_amounts(amounts, cells, 2, C) / 5000
    assert found == pytest.approx(shares, abs=0.03)
    assert (amounts[:5000] == LARGEST).mean() == pytest.approx(0.3, abs=0.03)


def test_sums_of_cells_are_the_released_ones():
    rng = np.random.default_rng(0)
    amounts, cells = rng.integers(0, 50_000, 3000), rng.integers(0, 3, 3000)
    before = np.bincount(cells, amounts)
    wanted = before * [1.3, 0.7, 1.0]
    wanted[2] = 1e6  # which its noise may be
    found = fitted_to_sums(amounts, cells, wanted, 1e6, C, rng)
    after = np.bincount(cells, found)
    assert after[:2] == pytest.approx(wanted[:2], rel=0.01)
    assert found.min() >= 0 and found.max() <= LARGEST
    assert np.bincount(cells, fitted_to_sums(amounts, cells, wanted, 1e9, C, rng)) == pytest.approx(
        before, rel=1e-4
    )


def test_strengths_have_the_released_distribution():
    """Amounts of nodes with one relation are larger, which pooled draws do not know."""
    rng, size = np.random.default_rng(0), 1500
    degrees = rng.choice([1, 2, 4], size, p=[0.6, 0.3, 0.1])
    payer = np.repeat(np.arange(size), degrees)
    pairs = np.stack([payer, size + rng.integers(0, 5, len(payer))], 1)
    is_first = np.ones(len(pairs), dtype=bool)  # a pair may occur twice, as two relations
    real = np.minimum(rng.lognormal(8, 1, len(pairs)) * 4 / degrees[payer], LARGEST).astype(int)
    drawn, nodes = rng.permutation(real), slice(0, size)
    held = strengths_of(pairs, is_first, real, size + 5)
    exact = count_strengths(held, nodes, C).astype(float)
    assert exact.sum() == size
    for scale in (0.0, 5.0):
        noisy = exact + np.round(rng.laplace(0, scale, exact.shape)) if scale else exact
        found = fitted_to_strengths(pairs, is_first, drawn, nodes, noisy, scale, C, size + 5, rng)
        before, after = (
            strengths_of(pairs, is_first, each, size + 5).sums for each in (drawn, found)
        )
        assert ks_2samp(before[:size], held.sums[:size]).statistic > 0.12
        assert ks_2samp(after[:size], held.sums[:size]).statistic < 0.07
    only_noise = np.round(rng.laplace(0, 1e4, exact.shape))
    same = fitted_to_strengths(pairs, is_first, drawn, nodes, exact * 0, 0.0, C, size + 5, rng)
    assert (same == drawn).all()
    far = fitted_to_strengths(pairs, is_first, drawn, nodes, only_noise, 1e4, C, size + 5, rng)
    assert 0 <= far.min() and far.max() <= LARGEST


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
    close = {"days": 0.03, "hours": 0.05, "new_pairs": 0.03}
    for name, most in close.items():
        assert curve_distance(getattr(theirs, name), getattr(ours, name)) < most, name
    gaps = curve_distance(theirs.gaps.sum(0), ours.gaps.sum(0))
    shuffled = stamps._replace(times=rng.permutation(stamps.times))
    order = np.lexsort((shuffled.times, shuffled.pairs))
    apart = curves_of(counted(shuffled.pairs, shuffled.times[order], stamps.is_reply))
    assert gaps < 0.03
    assert curve_distance(theirs.gaps.sum(0), apart.gaps.sum(0)) > 0.5
    share = stamps.is_reply.sum() / (~drawn.is_first).sum()
    assert share == pytest.approx(theirs.gaps[1].sum() / theirs.gaps.sum(), abs=0.02)


def test_new_pairs_follow_the_days_where_their_own_curve_is_noise():
    days, rng = np.arange(WINDOW.days), np.random.default_rng(3)
    by_day = 500.0 * (1 + (days % 9 == 0) * 4)
    pairs, errors = 0.1 * by_day * np.exp(-days / 40), dict[bool, list[float]]()
    for has_guide in (True, False):
        for scale in (25.0, 6.0):
            bins = np.add.reduceat(pairs, first_days_of(len(days), 8 if scale > 20 else len(days)))
            noisy = bins + rng.laplace(0, scale, len(bins))
            args = (noisy, scale, WINDOW, np.ones(168), by_day if has_guide else None)
            errors.setdefault(has_guide, []).append(curve_distance(pairs, smoothed_days(*args)))
    assert max(errors[True]) < 0.12 and all(np.less(errors[True], 0.6 * np.array(errors[False])))


def test_swaps_keep_times_and_first_transfers():
    real = bursts()
    numbers, rng = numbers_of(real), np.random.default_rng(2)
    pairs, curves = np.repeat(np.arange(len(numbers)), numbers), curves_of(real)
    order = np.argsort(real.times)
    before = np.empty_like(real.times)
    before[order[np.argsort(np.arange(len(order)) + rng.normal(0, 3, len(order)))]] = real.times[
        order
    ]
    before = before[np.lexsort((before, pairs))]
    swap_for_gaps(pairs, times := before.copy(), curves, WINDOW, rng)
    assert sorted(times) == sorted(before)
    assert (times[real.is_first] == before[real.is_first]).all()
    follows = pairs[1:] == pairs[:-1]
    assert (np.diff(times)[follows] >= 0).all()
    wanted, apart, near = (
        curves_of(counted(pairs, each, 0 * pairs)).gaps.sum(0)
        for each in (real.times, before, times)
    )
    assert curve_distance(wanted, near) < 0.8 * curve_distance(wanted, apart)


def test_a_long_window_is_counted_by_weeks_where_days_would_be_noise():
    """A month of five years at 20,000 transfers is known to 3 %."""
    days = np.arange(5 * 365)
    window, rng, scale = Window(len(days), 0), np.random.default_rng(0), 12.0
    rates = (1 + 0.5 * np.sin(days / 58)) * np.where(days % 7 >= 5, 0.5, 1.2)
    exact = rng.multinomial(20_000, rates / rates.sum())
    hours = np.repeat(np.bincount(days % 7, exact) / 24, 24)
    first = first_days(len(days), scale, 20_000)
    assert (first == first_days_of(len(days), len(first))).all() and first[1] == 28
    assert len(first_days(len(days), scale, 10**6)) == len(days)
    # Half a year has few bins of four weeks: it bears more noise.
    assert [first_days(195, noise, 45_000)[1] for noise in (120.0, 240.0, 600.0)] == [1, 7, 28]
    assert first_days(len(days), scale, 40_000)[1] == 7
    noisy = np.add.reduceat(exact, first) + rng.laplace(0, scale, len(first))
    found = smoothed_days(noisy, scale, window, hours)
    months = np.arange(0, len(days), 30)
    distance = [
        curve_distance(*(np.add.reduceat(x, months) for x in pair)) for pair in ((exact, found),)
    ]
    assert distance[0] < 0.03
    assert curve_distance(exact * 1.0, found) < 0.15


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
    noise = np.full(len(counts), -5.0)  # no bin beyond it: the mean is known, and decides
    few = draw_numbers(noise, 10.0, None, 8.5, 1000, np.random.default_rng(0))
    assert few.mean() == pytest.approx(8.5, rel=0.02) and few.max() < 200
    more = draw_numbers(counts, 10.0, None, 3.0, 1000, np.random.default_rng(0))
    assert more.mean() == pytest.approx(3, rel=0.02)  # the rest of a released mean is a tail
    assert (more == 1).mean() > 0.5 and more.max() < 100


def test_even_draws_have_the_shares_of_their_probabilities():
    found = np.bincount(even_draws(np.array([0.1, 0.0, 0.6, 0.3]), 100, np.random.default_rng(0)))
    assert np.abs(found - [10, 0, 60, 30]).max() <= 1
    assert len(even_draws(np.ones(3), 0, np.random.default_rng(0))) == 0
