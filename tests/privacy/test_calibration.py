"""Calibrated Gaussian noise equals the analytic mechanism, also at tiny deltas."""

import math

import mpmath
import pytest

from lightning_dpg.privacy.accounting import gaussian_sigma
from lightning_dpg.privacy.calibration import remaining_noise_multiplier
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, PrivacyLedger, Relation


def entry(mechanism, **amount):
    return LedgerEntry(
        name="x",
        relation=Relation.EDGE,
        mechanism=mechanism,
        sensitivity=1,
        proof="none",
        **amount,
    )


def ledger(epsilon, delta, *entries):
    books = PrivacyLedger(Relation.EDGE)
    books.budget = Budget(epsilon, delta)
    for each in entries:
        books.spend(each)
    return books


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 30.0])
def test_of_an_untouched_budget_it_is_that_of_the_analytic_mechanism(epsilon):
    sigma = remaining_noise_multiplier(ledger(epsilon, 1e-5))
    assert sigma == pytest.approx(gaussian_sigma(epsilon, 1e-5), rel=1e-5)


@pytest.mark.parametrize(("epsilon", "paid"), [(1.0, 0.2), (8.0, 1.6), (1e-4, 5e-5)])
@pytest.mark.parametrize("parts", [(1.0,), (0.9, 0.1), (0.02, *[0.98 / 24] * 24)])
def test_parts_of_it_spend_the_budget_and_no_more(epsilon, paid, parts):
    books = ledger(epsilon, 1e-5, entry("pure", epsilon=paid))
    sigma = remaining_noise_multiplier(books)
    assert sigma <= gaussian_sigma(epsilon - paid, 1e-5) * (1 + 1e-5)
    for part in parts:
        books.spend(entry("gaussian", noise_multiplier=sigma / math.sqrt(part)))
    assert books.delta(epsilon) == pytest.approx(1e-5, rel=1e-2)
    assert not books.affords(entry("gaussian", noise_multiplier=1e3 * sigma**0.5))


@pytest.mark.parametrize("delta", [1e-10, 1e-14, 1e-100])
def test_at_tiny_deltas_it_is_no_less_than_in_fifty_digits(delta):
    sigma = remaining_noise_multiplier(ledger(2.0, delta))
    with mpmath.workdps(50):
        mu = 1 / mpmath.mpf(sigma)
        exact = mpmath.ncdf(mu / 2 - 2 / mu) - mpmath.exp(2) * mpmath.ncdf(-mu / 2 - 2 / mu)
        assert 0.99 * delta < exact <= delta


def test_infinite_and_missing_budgets_and_such_that_nothing_is_left_of():
    assert remaining_noise_multiplier(ledger(math.inf, 1e-5)) == 0
    with pytest.raises(ValueError, match="no Gaussian noise fits"):
        remaining_noise_multiplier(ledger(1.0, 0.0, entry("pure", epsilon=1.0)))
    with pytest.raises(ValueError, match="without a budget"):
        remaining_noise_multiplier(PrivacyLedger(Relation.EDGE))
