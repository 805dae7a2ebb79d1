"""Drawn amounts: shrunk shares, sums that hold, and strengths with the released distribution."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from lightning_dpg.graph.counts import onto_total
from lightning_dpg.graph.transfer_counts import (
    amount_borders,
    count_amounts,
    count_strengths,
    strengths_of,
)
from lightning_dpg.graph.transfer_draws import (
    draw_amounts,
    fitted_to_strengths,
    fitted_to_sums,
    shrunk_shares,
)

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
