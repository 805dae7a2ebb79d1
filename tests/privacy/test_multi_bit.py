"""Multi-bit reports have the enumerated law, the proved cost and unbiased estimates."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded, PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.reports import (
    best_reports_per_row,
    cost_of_reports,
    least_rate,
    multi_bit,
    report_rate,
    reports_entry,
    unbiased,
)


def encode(values, sizes, epsilon, m, bounds=(0.0, 1.0), seed=1, ledger=None):
    sizes = torch.tensor(sizes)
    epsilon = torch.as_tensor(epsilon, dtype=torch.float64).expand(len(sizes))
    read = reports_entry("embeddings", "embeddings", float(epsilon.max()), sizes, m)
    terms = {"epsilon": epsilon, "reports_per_row": m, "bounds": bounds}
    law = multi_bit(read, values.shape, sizes, **terms)
    ledger = ledger or PrivacyLedger(Relation.LOCAL_GRAPH)
    return pay(read, values, ledger, NoiseSource(unsafe_seed=seed), law)


def masks(n, h, m, reading):
    """All masks of a reading of Algorithm 1, which are equally likely."""
    if reading == "m of each row":
        rows = list(itertools.combinations(range(h), m))
        for chosen in itertools.product(rows, repeat=n):
            yield [(i, j) for i, columns in enumerate(chosen) for j in columns]
    elif reading == "m of all":
        yield from itertools.combinations(itertools.product(range(n), range(h)), m)
    else:
        yield list(itertools.product(range(n), range(h)))


def largest_log_ratio(n, h, m, each, reading):
    """Over all outputs and all inputs with entries at the ends, from the rates that are drawn with.

    The factors of a probability are in it as it stands: no property of the law is used.
    """
    corners = [np.array(bits).reshape(n, h) for bits in itertools.product((0, 1), repeat=n * h)]
    least = least_rate(torch.tensor([each], dtype=torch.float64))
    up = report_rate(torch.tensor([0.0, 1.0]).double(), least).double() / RATE_DENOMINATOR
    laws = []
    for corner in corners:
        law = {}
        for mask in masks(n, h, m, reading):
            for signs in itertools.product((1, -1), repeat=len(mask)):
                output = np.zeros((n, h), dtype=int)
                chance = 1.0
                for place, sign in zip(mask, signs, strict=True):
                    output[place] = sign
                    rate = float(up[corner[place]])
                    chance *= rate if sign == 1 else 1 - rate
                key = output.tobytes()
                law[key] = law.get(key, 0.0) + chance
        laws.append(law)
    return max(
        math.log(max(law[key] for law in laws) / min(law[key] for law in laws)) for key in laws[0]
    )


CASES = [(2, 2, 1), (2, 3, 1), (3, 2, 1), (2, 3, 2), (3, 2, 2)]


@pytest.mark.parametrize(("n", "h", "m"), CASES)
def test_m_of_each_row_cost_epsilon(n, h, m):
    assert largest_log_ratio(n, h, m, 1 / (m * n), "m of each row") == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("n", "h", "m"), CASES)
def test_traps_cost_what_is_said(n, h, m):
    wasted = largest_log_ratio(n, h, m, 1 / (m * n), "m of all")
    assert wasted == pytest.approx(1 / n, abs=1e-9)
    assert wasted == pytest.approx(cost_of_reports(m, 1 / (m * n)), abs=1e-9)
    unmasked = largest_log_ratio(n, h, m, 1 / (m * n), "all")
    assert unmasked == pytest.approx(h / m, abs=1e-9)
    assert unmasked == pytest.approx(cost_of_reports(n * h, 1 / (m * n)), abs=1e-9)
    per_row = largest_log_ratio(n, h, m, 1 / m, "m of each row")
    assert per_row == pytest.approx(n, abs=1e-9)
    assert per_row == pytest.approx(cost_of_reports(n * m, 1 / m), abs=1e-9)


@settings(max_examples=100)
@given(st.floats(1e-6, 80), st.floats(0, 1))
def test_rounded_rates_are_nowhere_worse_than_epsilon(each, share):
    least = least_rate(torch.tensor([each], dtype=torch.float64))
    up = int(report_rate(torch.tensor([share], dtype=torch.float64), least))
    low = int(least)
    assert low <= up <= RATE_DENOMINATOR - low
    assert (RATE_DENOMINATOR - low) / low <= math.exp(each)
    exact = (1 + share * (math.exp(each) - 1)) / (math.exp(each) + 1)
    assert up / RATE_DENOMINATOR == pytest.approx(exact, abs=2.0**-38)


@pytest.mark.parametrize(("n", "h", "m"), [(2, 3, 1), (1, 4, 2), (1, 3, 3)])
def test_outputs_have_the_law_that_is_enumerated(n, h, m):
    total, epsilon, values = 30_000, 1.5, np.linspace(0.1, 0.9, n * h).reshape(n, h)
    drawn = encode(torch.tensor(values).repeat(total, 1), [n] * total, epsilon, m).numpy()
    keys, counts = np.unique(drawn.reshape(total, -1), axis=0, return_counts=True)
    each = epsilon / (n * m)
    law = {}
    for mask in (all_masks := list(masks(n, h, m, "m of each row"))):
        for signs in itertools.product((1, -1), repeat=n * m):
            output, chance = np.zeros((n, h), dtype=int), 1 / len(all_masks)
            for place, sign in zip(mask, signs, strict=True):
                output[place] = sign
                plus = (1 + values[place] * (math.exp(each) - 1)) / (math.exp(each) + 1)
                chance *= plus if sign == 1 else 1 - plus
            law[tuple(output.ravel())] = chance
    expected = [total * law[tuple(key)] for key in keys.tolist()]
    assert stats.chisquare(counts, expected, sum_check=False).pvalue > 1e-3
    assert len(keys) == len(law)


@pytest.mark.parametrize(("m", "bounds"), [(1, (0.0, 1.0)), (3, (-2.0, 1.0))])
def test_estimates_are_unbiased_with_the_variance_of_the_formula(m, bounds):
    total, h, n, epsilon = 40_000, 4, 2, 9.0
    rows = np.linspace(*bounds, n * h).reshape(n, h)
    sizes, terms = torch.full((total,), n), {"reports_per_row": m, "bounds": bounds}
    reports = encode(torch.tensor(rows).repeat(total, 1), [n] * total, epsilon, m, bounds)
    assert (reports != 0).sum(1).unique().tolist() == [m]
    drawn = unbiased(reports, sizes, epsilon=torch.full((total,), epsilon), **terms)
    drawn = drawn.reshape(total, n, h).numpy()
    b, middle = epsilon / (m * n), sum(bounds) / 2
    c = h * (bounds[1] - bounds[0]) / (2 * m) / math.tanh(b / 2)
    variance = m / h * c**2 - (rows - middle) ** 2
    assert np.abs(drawn.mean(0) - rows).max() < 4.5 * math.sqrt(variance.max() / total)
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.05)


def test_noise_of_the_sizes_of_the_review():
    sizes, epsilon = torch.tensor([18, 18, 39]), torch.tensor([1.0, 10.0, 1.0])
    ones = torch.ones(75, 7, dtype=torch.int8)
    terms = {"epsilon": epsilon, "reports_per_row": 1, "bounds": (0.0, 1.0)}
    scale = unbiased(ones, sizes, **terms)[[0, 18, 36], 0] - 0.5
    sd = (scale.square() / 7).sqrt()  # of an entry at the middle
    assert sd.tolist() == pytest.approx([47.6, 4.88, 103], rel=5e-3)


def test_clients_of_different_epsilons_book_the_largest_one():
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
    reports = encode(torch.rand(9, 5), [4, 3, 2], torch.tensor([0.5, 2.0, 1.0]), 2, ledger=ledger)
    (entry,) = ledger.entries
    assert (entry.event, entry.sensitivity) == (Pure(2.0), 8)
    assert (entry.relation, entry.record) == ("local_graph", "graph of one client")
    assert reports.dtype == torch.int8
    assert ledger.epsilon(0.0) == 2.0


def test_a_second_release_is_refused_before_noise_is_drawn():
    ledger, noise = PrivacyLedger(Relation.LOCAL_GRAPH), NoiseSource(unsafe_seed=1)
    ledger.budget = Budget(1.0, 0.0)
    values, sizes = torch.rand(3, 2), torch.tensor([3])
    read = reports_entry("x", "x", 1.0, sizes, 1)
    terms = {"epsilon": torch.tensor([1.0]), "reports_per_row": 1, "bounds": (0, 1)}
    call = (read, values, ledger, noise, multi_bit(read, values.shape, sizes, **terms))
    pay(*call)
    state = noise._generator.bit_generator.state["state"]["counter"].tolist()
    with pytest.raises(PrivacyBudgetExceeded):
        pay(*call)
    assert noise._generator.bit_generator.state["state"]["counter"].tolist() == state


def test_values_out_of_bounds_are_moved_and_no_numbers_are_middling():
    values = torch.tensor([[7.0], [-math.inf], [math.nan], [math.inf]]).repeat(5_000, 1)
    plus = encode(values, [1] * 20_000, 60.0, 1).reshape(-1, 4).eq(1).double().mean(0)
    assert plus.tolist() == pytest.approx([1, 0, 0.5, 1], abs=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": math.inf}, "finite"),
        ({"epsilon": 0.0}, "positive"),
        ({"epsilon": 1e-13}, "too small"),
        ({"m": 0}, "reports_per_row"),
        ({"m": 4}, "between 1 and 3"),
        ({"sizes": [2, 2]}, "5 rows"),
        ({"bounds": (1.0, 1.0)}, "bound"),
        ({"ledger": PrivacyLedger(Relation.EDGE)}, "local_graph"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"values": torch.rand(5, 3), "sizes": [2, 3], "epsilon": 1.0, "m": 1} | change
    with pytest.raises(ValueError, match=message):
        encode(**arguments)


@pytest.mark.parametrize(
    ("epsilon", "rows", "width", "expected"), [(1, 1, 8, 1), (44, 5, 8, 4), (1e4, 5, 8, 8)]
)
def test_best_reports_per_row(epsilon, rows, width, expected):
    assert best_reports_per_row(epsilon, rows, width) == expected
