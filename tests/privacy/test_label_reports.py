"""Reports of labels have the enumerated law, and the proved cost between all values of a label."""

import itertools
import math
from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy import reports
from lightning_dpg.privacy.events import Pure, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.reports import (
    LABEL_DENOMINATOR,
    label_reports_entry,
    report_labels,
    report_log_likelihoods,
    report_rates,
)

INF = math.inf


def drawn(labels, epsilon, k, noise):
    return report_labels(label_reports_entry(epsilon, k), k)(torch.as_tensor(labels), noise)


def enumerated_law(value, epsilon, k, coins):
    """Share of each report of one value over all fair integers that can be drawn."""
    every = np.array(list(itertools.product(range(coins), range(k))))
    columns = iter([every[:, 0], every[:, 1]])
    noise = SimpleNamespace(integers=lambda high, size: next(columns))
    reports = drawn(np.full(len(every), value), epsilon, k, noise)
    return torch.bincount(reports, minlength=k).numpy() / k


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 2), (1.0, 3), (2.5, 5), (30.0, 3)])
def test_no_two_values_of_a_label_are_told_apart_by_more_than_epsilon(monkeypatch, epsilon, k):
    """All fair integers of a small denominator, and all pairs of values, two of no class among them."""
    monkeypatch.setattr(reports, "LABEL_DENOMINATOR", 2**10)
    own, other = report_rates(epsilon, k)
    laws = np.stack([enumerated_law(value, epsilon, k, 2**10) for value in range(-1, k + 1)])
    expected = np.full((k, k), float(other))
    np.fill_diagonal(expected, own)
    np.testing.assert_array_equal(laws[1:-1], expected)
    np.testing.assert_allclose(laws[[0, -1]], 2**10 / k)
    assert (laws[:, None] <= math.exp(epsilon) * laws[None]).all()


@pytest.mark.parametrize("k", [2, 3, 7, 1000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 4.0, 20.0, 60.0, 1e9])
def test_rates_are_those_of_the_formula_and_rounded_to_the_safe_side(epsilon, k):
    own, other = report_rates(epsilon, k)
    assert own + (k - 1) * other == LABEL_DENOMINATOR
    with localcontext() as digits:
        digits.prec = 100
        odds = Decimal(min(epsilon, 1e4)).exp()
        assert own <= odds * other
        if epsilon <= 20:  # the cost is no less than epsilon
            assert math.log(own / other) == pytest.approx(epsilon, rel=1e-9)
        assert 0 <= other - LABEL_DENOMINATOR / (odds + k - 1) <= 1


def test_draws_have_the_law():
    count, k, epsilon = 40_000, 4, 1.5
    reports = drawn(torch.full((count,), 2), epsilon, k, NoiseSource(unsafe_seed=0))
    rates = np.full(k, 1 / (math.exp(epsilon) + k - 1))
    rates[2] *= math.exp(epsilon)
    errors = torch.bincount(reports, minlength=k).numpy() / count - rates
    assert (np.abs(errors) < 4 * np.sqrt(rates * (1 - rates) / count)).all()
    expected = torch.from_numpy(np.log(rates))
    torch.testing.assert_close(report_log_likelihoods(epsilon, k)[2], expected)


def test_an_infinite_epsilon_reports_labels_and_any_class_for_other_values():
    reports = drawn([0, 1, 2, 3, 7], INF, 3, NoiseSource(unsafe_seed=0)).tolist()
    assert reports[:3] == [0, 1, 2]
    assert set(reports[3:]) <= {0, 1, 2}
    assert report_log_likelihoods(INF, 2).tolist() == [[0.0, -INF], [-INF, 0.0]]


def test_the_entry_is_that_of_one_label():
    entry = label_reports_entry(2.0, 3)
    assert (entry.relation, entry.event, entry.sensitivity) == (Relation.ATTRIBUTES, Pure(2.0), 1)
    assert entry.record == "label of one node"


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 1), (1e-30, 3)])
def test_reports_without_a_signal_are_refused(epsilon, k):
    with pytest.raises(Refusal):
        report_labels(label_reports_entry(epsilon, k), k)
