"""Numbers for people, against the release that shows as much as any other."""

import math

import numpy as np
import pytest
from scipy import stats

from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.meaning import (
    belief_bound,
    group_budget,
    joint_budget,
    true_positive_bound,
)
from lightning_dpg.release.card.reads import discrete_laplace_error, gaussian_error

GUARANTEES = [(0.0, 0.0), (1.0, 0.0), (3.7, 1e-4), (1.0, 0.02), (8.0, 1e-5), (0.5, 0.995)]


def extreme_release(epsilon, delta):
    """Laws of the four outcomes under two neighbors (Kairouz, Oh, Viswanath, 2015)."""
    right = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    law = np.array([delta, right, 1 - delta - right, 0.0])
    return law, law[::-1]


def best_test(present, absent, alarms):
    """Power of the likelihood-ratio test with so many false alarms, by Neyman and Pearson."""
    order = np.argsort(-present / np.maximum(absent, 1e-300), kind="stable")
    power, left = 0.0, alarms
    for outcome in order:
        part = 1.0 if absent[outcome] <= left else left / absent[outcome]
        power += part * present[outcome]
        left -= part * absent[outcome]
        if part < 1:
            break
    return power


@pytest.mark.parametrize(("epsilon", "delta"), GUARANTEES)
@pytest.mark.parametrize("alarms", [0.0, 0.01, 0.3, 0.9])
def test_the_best_test_of_the_extreme_release_attains_the_bound(epsilon, delta, alarms):
    expected = best_test(*extreme_release(epsilon, delta), alarms)
    assert true_positive_bound(epsilon, delta, alarms) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 5.0])
def test_belief_is_that_after_the_report_of_the_extreme_release(epsilon):
    present, absent = extreme_release(epsilon, 0.0)
    posterior = max(p / (p + a) for p, a in zip(present, absent, strict=True) if p + a)
    assert belief_bound(epsilon) == pytest.approx(posterior, abs=1e-14)
    assert belief_bound(1e6) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), GUARANTEES)
def test_mean_belief_of_the_extreme_release_attains_the_bound(epsilon, delta):
    present, absent = extreme_release(epsilon, delta)
    mean = np.maximum(present, absent).sum() / 2  # of both answers with equal chances
    assert belief_bound(epsilon, delta) == pytest.approx(mean, abs=1e-14)
    assert belief_bound(1e6, delta) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), GUARANTEES)
@pytest.mark.parametrize("other", [(0.7, 0.0), (0.7, 1e-3), (3.0, 0.01)])
def test_units_of_two_relations_together_cost_what_two_extreme_releases_show(epsilon, delta, other):
    laws = zip(extreme_release(epsilon, delta), extreme_release(*other), strict=True)
    present, absent = (np.outer(first, second) for first, second in laws)
    joint = joint_budget(Budget(epsilon, delta), Budget(*other))
    shown = np.maximum(present - math.exp(joint.epsilon) * absent, 0).sum()
    assert joint.epsilon == pytest.approx(epsilon + other[0])
    assert shown <= joint.delta + 1e-15
    if not other[1]:
        assert shown == pytest.approx(joint.delta, abs=1e-15)  # nothing less is true
    assert joint == joint_budget(Budget(*other), Budget(epsilon, delta))


def test_beliefs_above_that_of_epsilon_are_likelier_than_delta():
    """A release that merges two outcomes is (1, 0.02)-DP, and its likelier outcome is beyond."""
    present, absent = extreme_release(1.0, 0.02)
    belief = present[:2].sum() / (present + absent)[:2].sum()
    assert belief_bound(1.0) < belief == pytest.approx(belief_bound(1.0, 0.02))
    assert present[:2].sum() > 0.7


def test_groups_cost_what_the_geometric_series_says():
    for size in (1, 2, 5, 10):
        epsilon, delta = group_budget(0.3, 1e-6, size)
        assert epsilon == pytest.approx(0.3 * size)
        assert delta == pytest.approx(1e-6 * math.expm1(0.3 * size) / math.expm1(0.3))
    assert group_budget(2.0, 0.0, 50) == (100.0, 0.0)
    assert group_budget(2.0, 1e-5, 50) == (100.0, 1.0)
    assert group_budget(1e6, 1e-5, 1) == (1e6, 1e-5)


@pytest.mark.parametrize("rate", [0.03, 0.2, 1.0, 4.0])
def test_errors_of_integer_noise_are_those_of_its_law(rate):
    law = stats.dlaplace(rate)
    numbers = np.arange(-4000, 4001)
    mean, half = discrete_laplace_error(rate)
    assert mean == pytest.approx((law.pmf(numbers) * abs(numbers)).sum(), rel=1e-9)
    inside = {h: law.cdf(h) - law.cdf(-h - 1) for h in (int(half) - 1, int(half))}
    assert inside[int(half)] >= 0.95
    assert half == 0 or inside[int(half) - 1] < 0.95


def test_errors_of_extreme_rates_are_finite():
    assert discrete_laplace_error(math.inf) == discrete_laplace_error(800.0) == (0.0, 0.0)
    assert discrete_laplace_error(1e-9).mean == pytest.approx(1e9)


def test_errors_of_normal_noise_are_those_of_its_law():
    error = gaussian_error(3.0)
    assert error.mean == pytest.approx(3.0 * stats.foldnorm(0).mean())
    assert error.half_width == pytest.approx(stats.norm(scale=3.0).ppf(0.975))
