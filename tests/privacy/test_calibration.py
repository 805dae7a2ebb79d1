"""Calibrated Gaussian noise equals the analytic mechanism, also at tiny deltas."""

import math

import mpmath
import pytest

from lightning_dpg.privacy.budget import BudgetTooSmall
from lightning_dpg.privacy.calibration import (
    calibrate_gaussian,
    calibrate_noise_multiplier,
    max_steps,
)
from lightning_dpg.privacy.ledger import Budget
from tests.characteristic import exact_delta
from tests.closed_forms import gaussian_sigma
from tests.entries import entry, ledger_of

CORA = 2048 / 6784


def noise_of_the_rest(books):
    return calibrate_noise_multiplier(books.budget, other=books.entries)


def steps_of(sigma, steps):
    return entry("gaussian", noise_multiplier=sigma, sample_rate=CORA, steps=steps)


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [(0.1, 30.7496), (0.5, 7.0318), (1, 3.7306), (1.5, 2.5826), (5, 0.8919), (10, 0.4999)],
)
def test_noise_of_one_gaussian_release_is_the_published_one(epsilon, sigma):
    calibrated = calibrate_gaussian(Budget(epsilon, 1e-5))
    assert calibrated == pytest.approx(sigma, abs=6e-5)
    assert calibrated == pytest.approx(gaussian_sigma(epsilon, 1e-5), rel=1e-8)


@pytest.mark.parametrize(  # noise by Renyi DP: Cora-ML at delta 1e-4, a sample of 2048 records
    ("epsilon", "steps", "renyi"), [(2.9, 332, 7.62), (9.5, 332, 2.90), (440, 3313, 0.807)]
)
def test_sampled_noise_is_the_smallest_that_keeps_the_budget(epsilon, steps, renyi):
    sigma = calibrate_noise_multiplier(Budget(epsilon, 1e-4), sample_rate=CORA, steps=steps)
    assert 0.9 * renyi < sigma < renyi
    least = exact_delta([steps_of(sigma, steps)], epsilon)
    assert 0.9e-4 < least <= 1e-4 < exact_delta([steps_of(0.999 * sigma, steps)], epsilon)


@pytest.mark.parametrize(  # steps by Renyi DP
    ("epsilon", "renyi"), [(0.5, 0), (2.9, 1), (9.5, 20), (440, 5655)]
)
def test_steps_are_the_most_that_keep_the_budget(epsilon, renyi):
    steps = max_steps(Budget(epsilon, 1e-4), 1.0, sample_rate=CORA)
    assert renyi <= steps
    assert exact_delta([steps_of(1.0, math.ceil(1.001 * steps) + 1)], epsilon) > 1e-4
    assert steps == 0 or exact_delta([steps_of(1.0, steps)], epsilon) <= 1e-4


def test_impossible_budgets_are_refused():
    assert calibrate_noise_multiplier(Budget(math.inf, 1e-5), sample_rate=0.1, steps=10) == 0.0
    with pytest.raises(BudgetTooSmall, match="no Gaussian noise fits 10 steps"):
        calibrate_noise_multiplier(
            Budget(1.0, 1e-5), sample_rate=0.1, steps=10, other=[entry("pure", epsilon=2.0)]
        )
    with pytest.raises(ValueError, match="epsilon"):
        calibrate_gaussian(Budget(0.0, 1e-5))


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 30.0])
def test_of_an_untouched_budget_it_is_that_of_the_analytic_mechanism(epsilon):
    sigma = noise_of_the_rest(ledger_of(epsilon, 1e-5))
    assert sigma == pytest.approx(gaussian_sigma(epsilon, 1e-5), rel=1e-5)


@pytest.mark.parametrize(("epsilon", "paid"), [(1.0, 0.2), (8.0, 1.6), (1e-4, 5e-5)])
@pytest.mark.parametrize("parts", [(1.0,), (0.9, 0.1), (0.02, *[0.98 / 24] * 24)])
def test_parts_of_it_spend_the_budget_and_no_more(epsilon, paid, parts):
    books = ledger_of(epsilon, 1e-5, entry("pure", epsilon=paid))
    sigma = noise_of_the_rest(books)
    assert sigma <= gaussian_sigma(epsilon - paid, 1e-5) * (1 + 1e-5)
    for part in parts:
        books.spend(entry("gaussian", noise_multiplier=sigma / math.sqrt(part)))
    assert books.delta(epsilon) == pytest.approx(1e-5, rel=1e-2)
    assert not books.affords(entry("gaussian", noise_multiplier=1e3 * sigma**0.5))


@pytest.mark.parametrize("delta", [1e-10, 1e-14, 1e-100])
def test_at_tiny_deltas_it_is_no_less_than_in_fifty_digits(delta):
    sigma = noise_of_the_rest(ledger_of(2.0, delta))
    with mpmath.workdps(50):
        mu = 1 / mpmath.mpf(sigma)
        exact = mpmath.ncdf(mu / 2 - 2 / mu) - mpmath.exp(2) * mpmath.ncdf(-mu / 2 - 2 / mu)
        assert 0.99 * delta < exact <= delta


def test_infinite_budgets_and_such_that_nothing_is_left_of():
    assert noise_of_the_rest(ledger_of(math.inf, 1e-5)) == 0
    with pytest.raises(ValueError, match="no Gaussian noise fits"):
        noise_of_the_rest(ledger_of(1.0, 0.0, entry("pure", epsilon=1.0)))
