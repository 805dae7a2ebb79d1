"""Piecewise reports have the enumerated law, the proved cost and the variance of the paper."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded, PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.reports import (
    CELLS,
    cost_of_piecewise,
    piecewise,
    piecewise_entry,
    piecewise_law,
)

EPSILONS = (1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0)


def report(shares, epsilon, cells=CELLS, ledger=None, seed=1):
    shares = torch.as_tensor(shares, dtype=torch.double)
    read = piecewise_entry("scalars", "scalars", epsilon, shares.shape[1])
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH) if ledger is None else ledger
    return pay(read, shares, ledger, NoiseSource(unsafe_seed=seed), piecewise(read, cells))


def exact_law(share, law):
    """Probabilities of all cells, as fractions, from the words of the paper."""
    first = round(share * (law.cells - law.width))
    inside = Fraction(law.rate, RATE_DENOMINATOR)
    window = range(first, first + law.width)
    return [
        inside / law.width if cell in window else (1 - inside) / (law.cells - law.width)
        for cell in range(law.cells)
    ]


@pytest.mark.parametrize(("cells", "epsilon"), list(product((2, 3, 8, 21), EPSILONS)))
def test_no_pair_of_inputs_changes_a_probability_by_more_than_epsilon(cells, epsilon):
    """All pairs of windows and all reports, in exact arithmetic."""
    law = piecewise_law(epsilon, cells)
    laws = [exact_law(k / law.starts, law) for k in range(law.starts + 1)]
    assert all(sum(one) == 1 for one in laws)
    worst = max(
        a / b for one, other in product(laws, laws) for a, b in zip(one, other, strict=True)
    )
    mpmath.mp.dps = 60
    bound = mpmath.e ** mpmath.mpf(epsilon)
    assert mpmath.mpf(worst.numerator) / worst.denominator <= bound
    if epsilon <= 20:  # the rate has 40 bits: beyond, it protects more than is booked
        assert math.log(worst) == pytest.approx(epsilon, rel=1e-2 if epsilon > 8 else 1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_factor_of_the_grid_in_use_is_at_most_epsilon(epsilon):
    law = piecewise_law(epsilon)
    outside = RATE_DENOMINATOR - law.rate
    mpmath.mp.dps = 60
    factor = mpmath.mpf(law.rate * law.starts) / (outside * law.width)
    assert 1 <= factor <= mpmath.e ** mpmath.mpf(epsilon)
    assert epsilon > 20 or float(mpmath.log(factor)) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_reports_follow_the_law(share):
    law = piecewise_law(1.5, 8)
    found = Counter(report([[share]] * 40_000, 1.5, 8).flatten().tolist())
    expected = [40_000 * float(chance) for chance in exact_law(share, law)]
    assert stats.chisquare([found[cell] for cell in range(8)], expected).pvalue > 1e-4


def variance_of_the_paper(share, epsilon):
    """Wang et al., 2019, Lemma 1, for a number from -1 to 1, which is twice as wide."""
    root = math.exp(epsilon / 2)
    number = 2 * share - 1
    return (number**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)) / 4


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_estimates_have_the_mean_and_the_variance_of_the_paper(share, epsilon):
    """By the whole law, without a draw."""
    law = piecewise_law(epsilon, 2**14)
    first, inside = round(share * law.starts), law.rate / RATE_DENOMINATOR
    chances = np.full(law.cells, (1 - inside) / law.starts)
    chances[first : first + law.width] = inside / law.width
    estimates = law.estimates(torch.arange(law.cells)).numpy()
    assert chances @ estimates == pytest.approx(first / law.starts, abs=1e-9)
    variance = chances @ (estimates - first / law.starts) ** 2
    assert variance == pytest.approx(variance_of_the_paper(share, epsilon), rel=5e-3)
    root = math.exp(epsilon / 2)  # the paper's C, for numbers from -1 to 1
    assert torch.equal(law.reports_of(torch.from_numpy(estimates)), torch.arange(law.cells))
    ends = (2 * estimates[[0, -1]] - 1) * (root - 1) / (root + 1)
    np.testing.assert_allclose(ends, [-1, 1], rtol=1e-2)


def test_drawn_estimates_have_the_variance_of_the_paper():
    found = piecewise_law(2.0).estimates(report([[0.4]] * 100_000, 2.0)).numpy()
    variance = variance_of_the_paper(0.4, 2.0)
    assert found.mean() == pytest.approx(0.4, abs=5 * math.sqrt(variance / 100_000))
    assert found.var() == pytest.approx(variance, rel=0.02)


def test_the_likelihood_is_that_of_the_law():
    law = piecewise_law(1.0, 9)
    for start in range(law.starts + 1):
        share = torch.tensor(start / law.starts)
        found = law.log_likelihood(torch.arange(9), share)
        expected = [math.log(chance) for chance in exact_law(float(share), law)]
        np.testing.assert_allclose(found, expected)


def test_several_numbers_share_the_epsilon():
    """The product of the laws of two dependent numbers, and the entry written by hand."""
    law = piecewise_law(0.5, 4)
    laws = [exact_law(k / law.starts, law) for k in range(law.starts + 1)]
    joint = [[a * b for a, b in product(one, one)] for one in laws]
    worst = max(
        a / b for one, other in product(joint, joint) for a, b in zip(one, other, strict=True)
    )
    assert math.log(worst) == pytest.approx(cost_of_piecewise(2, 0.5), abs=1e-9)
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
    found = report([[0.0, 1.0]] * 5_000, 1.0, 4, ledger)
    (entry,) = ledger.entries
    assert (entry.event, entry.sensitivity, entry.steps) == (Pure(1.0), 2, 1)
    assert (entry.proof, entry.record) == ("cost_of_piecewise", "graph of one client")
    for column, share in enumerate((0.0, 1.0)):  # at half of the epsilon each
        counts = np.bincount(found[:, column], minlength=4)
        expected = [5_000 * float(chance) for chance in exact_law(share, law)]
        assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_values_out_of_range_are_moved_into_it():
    law = piecewise_law(1.0)
    shares = torch.tensor([-3.0, 7.0, math.nan, math.inf, -math.inf])
    half = round(0.5 * law.starts)
    assert law.starts_of(shares).tolist() == [0, law.starts, half, law.starts, 0]


def test_nothing_is_drawn_unpaid_or_under_another_relation():
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
    ledger.budget = Budget(0.5, 0.0)
    with pytest.raises(PrivacyBudgetExceeded):
        report([[0.5]], 1.0, ledger=ledger)
    with pytest.raises(ValueError, match="'local_graph'"):
        report([[0.5]], 1.0, ledger=PrivacyLedger(Relation.EDGE))
    for epsilon in (0.0, -1.0, math.inf, math.nan, 1e-13):
        with pytest.raises(ValueError, match="epsilon"):
            report([[0.5]], epsilon)


def test_more_epsilon_is_less_noise():
    variances = []
    for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0, 40.0):
        estimates = piecewise_law(epsilon).estimates(report([[0.3]] * 2_000, epsilon))
        variances.append(float(estimates.var()))
    assert all(more > less for more, less in pairwise(variances))
