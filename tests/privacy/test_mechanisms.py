"""Mechanisms have their closed-form laws, and are booked before they draw."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import (
    Budget,
    PrivacyBudgetExceeded,
    PrivacyLedger,
    Relation,
)
from lightning_dpg.privacy.mechanisms import (
    integer_noise,
    randomized_response,
    response_rates,
)
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.sensitivity.degrees import (
    degree_l1_sensitivity,
    degree_sensitivity,
    edge_count_sensitivity,
    pair_bit_sensitivity,
)
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity
from tests.entries import entry


def count(value, epsilon, sensitivity=1, ledger=None, noise=None):
    read = entry("pure", name="count", epsilon=epsilon, sensitivity=sensitivity)
    ledger = ledger if ledger is not None else PrivacyLedger(Relation.EDGE)
    return pay(read, torch.as_tensor(value), ledger, noise or NoiseSource())


def pmf(k, rate):
    return math.tanh(rate / 2) * math.exp(-rate * abs(k))


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.3, 1), (2.5, 1), (1.0, 3)])
def test_discrete_laplace_has_its_closed_form_law(epsilon, sensitivity):
    noise, total = NoiseSource(unsafe_seed=1), 40_000
    draws = (count(torch.full((total,), 7), epsilon, sensitivity, noise=noise) - 7).numpy()
    edge = 0
    while total * pmf(edge + 1, epsilon / sensitivity) >= 8:
        edge += 1
    clipped = np.clip(draws, -edge - 1, edge + 1)
    observed = [np.sum(clipped == k) for k in range(-edge - 1, edge + 2)]
    inner = [total * pmf(k, epsilon / sensitivity) for k in range(-edge, edge + 1)]
    tail = (total - sum(inner)) / 2
    assert stats.chisquare(observed, [tail, *inner, tail]).pvalue > 1e-3


def test_each_element_has_noise_of_its_own_scale():
    noise, total, scales = NoiseSource(unsafe_seed=1), 20_000, torch.tensor([1, 2, 5])
    read = entry("pure", epsilon=1.5, sensitivity=2)
    law = integer_noise(read, scales=scales.expand(total, 3))
    zeros = torch.zeros(total, 3, dtype=torch.long)
    draws = pay(read, zeros, PrivacyLedger(Relation.EDGE), noise, law)
    for values, scale in zip(draws.T.numpy(), scales.tolist(), strict=True):
        rate = 1.5 / 2 / scale
        expected = [total * pmf(k, rate) for k in range(-3, 4)]
        observed = [np.sum(values == k) for k in range(-3, 4)]
        rest = total - sum(expected), total - sum(observed)
        assert stats.chisquare([*observed, rest[1]], [*expected, rest[0]]).pvalue > 1e-3


def test_noise_that_may_be_too_small_is_booked_with_its_delta():
    ledger = PrivacyLedger(Relation.EDGE)
    read = entry("approximate", epsilon=0.5, delta=1e-6, sensitivity=3)
    pay(read, torch.tensor([1, 2]), ledger, NoiseSource())
    assert ledger.entries == [read]
    assert ledger.delta(0.5) == 1e-6


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.7, 3)])
def test_log_ratio_over_neighbours_is_at_most_epsilon(epsilon, sensitivity):
    neighbors = [
        (a, b) for a, b in itertools.product(range(9), repeat=2) if abs(a - b) <= sensitivity
    ]
    rate = epsilon / sensitivity
    ratios = [
        math.log(pmf(output - a, rate) / pmf(output - b, rate))
        for a, b in neighbors
        for output in range(-20, 30)
    ]
    assert max(ratios) == pytest.approx(epsilon, abs=1e-9)


def test_discrete_laplace_of_huge_and_tiny_rates():
    noise = NoiseSource(unsafe_seed=1)
    value = torch.arange(6).view(2, 3)
    assert torch.equal(count(value, 1e30, noise=noise), value)
    assert torch.equal(count(value, math.inf, noise=noise), value)
    draws = count(torch.zeros(2000, dtype=torch.long), 1e-6, noise=noise).double()
    assert draws.abs().mean() == pytest.approx(1e6, rel=0.1)
    ledger = PrivacyLedger(Relation.EDGE)
    with pytest.raises(ValueError, match="too small"):
        count(value, 1e-13, noise=noise, ledger=ledger)
    assert not ledger.entries


@pytest.mark.parametrize("sensitivity", [math.nan, math.inf, -1.0])
def test_gaussian_refuses_what_no_noise_covers_before_it_is_booked(sensitivity):
    ledger = PrivacyLedger(Relation.EDGE)
    with pytest.raises(ValueError, match="sensitivity"):
        read = entry(sensitivity=sensitivity, noise_multiplier=1.0)
        pay(read, torch.zeros(3), ledger, NoiseSource(unsafe_seed=1))
    assert not ledger.entries


def test_discrete_laplace_is_booked_before_it_is_drawn():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(0.25, 1e-5)
    count(10, 0.25, ledger=ledger)
    assert ledger.entries == [entry("pure", name="count", epsilon=0.25)]
    with pytest.raises(PrivacyBudgetExceeded):
        count(10, 1e-3, ledger=ledger, noise=object())  # a draw would fail otherwise
    for epsilon, sensitivity in ((0.0, 1), (1.0, 0)):
        with pytest.raises(ValueError, match="positive"):
            count(10, epsilon, sensitivity)


def release(value, ledger, noise=None, noise_multiplier=2.0):
    read = entry(name="degrees", sensitivity=1.5, noise_multiplier=noise_multiplier)
    return pay(read, value, ledger, noise or NoiseSource())


def test_gaussian_noise_has_the_booked_scale():
    ledger = PrivacyLedger(Relation.EDGE)
    clean = torch.arange(200_000) % 100
    draws = (release(clean, ledger) - clean).numpy()
    assert draws.dtype == np.float64
    assert draws.std() == pytest.approx(3.0, rel=0.01)
    assert stats.kstest(draws, stats.norm(0, 3.0).cdf).pvalue > 1e-5
    (booked,) = ledger.entries
    assert (booked.sensitivity, booked.event, booked.steps) == (1.5, Gaussian(2.0), 1)


def test_gaussian_spends_before_it_draws_and_keeps_type_and_shape():
    ledger = PrivacyLedger(Relation.EDGE)
    assert release(torch.zeros(2, 3), ledger).dtype == torch.float32
    ledger.budget = Budget(0.1, 1e-6)
    with pytest.raises(PrivacyBudgetExceeded):
        release(torch.zeros(2, 3), ledger, noise=object())
    assert ledger.entries[0].steps == 1


def test_no_noise_means_no_privacy():
    ledger = PrivacyLedger(Relation.EDGE)
    value = torch.randn(4)
    assert torch.equal(release(value, ledger, noise_multiplier=0.0), value)
    assert ledger.epsilon(1e-5) == math.inf


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_clipped_sum_moves_by_at_most_its_sensitivity(scale):
    gradients = scale * torch.randn(20, 7, generator=torch.Generator().manual_seed(0))
    clipped = gradients * (0.5 / gradients.norm(dim=1, keepdim=True)).clamp(max=1)
    changes = [(clipped.sum(0) - clipped[torch.arange(20) != i].sum(0)).norm() for i in range(20)]
    assert max(changes) == pytest.approx(edge_gradient_sensitivity(0.5), rel=1e-5)


def test_counts_and_degrees_move_by_at_most_their_sensitivity():
    pairs = list(itertools.combinations(range(4), 2))
    for present in itertools.product((0, 1), repeat=len(pairs)):  # all graphs of 4 nodes
        adjacency = np.zeros((4, 4))
        for (i, j), bit in zip(pairs, present, strict=True):
            adjacency[i, j] = adjacency[j, i] = bit
        for i, j in pairs:
            flipped = adjacency.copy()
            flipped[i, j] = flipped[j, i] = 1 - adjacency[i, j]
            change = np.linalg.norm(flipped.sum(0) - adjacency.sum(0))
            assert change == pytest.approx(degree_sensitivity())
            moved = np.abs(flipped.sum(0) - adjacency.sum(0)).sum()
            in_order = np.abs(np.sort(flipped.sum(0)) - np.sort(adjacency.sum(0))).sum()
            assert moved == degree_l1_sensitivity() >= in_order
            assert abs(flipped.sum() - adjacency.sum()) / 2 == edge_count_sensitivity()


def respond(present, num_bits, epsilon, ledger=None, noise=None, thinning=1.0):
    read = entry("pure", name="edges", epsilon=epsilon)
    ledger = ledger if ledger is not None else PrivacyLedger(Relation.EDGE)
    law = randomized_response(read, num_bits, thinning)
    return pay(read, torch.tensor(present, dtype=torch.long), ledger, noise or NoiseSource(), law)


@pytest.mark.parametrize("thinning", [1.0, 0.3])
@pytest.mark.parametrize(
    ("present", "at_once"),
    [
        ([], 2**24),
        ([0, 3], 2**24),
        ([1, 2, 4, 5], 2**24),
        ([1, 2, 4, 5], 4),
        ([0, 1, 2, 3, 4, 5], 2**24),
    ],
)
def test_randomized_response_has_its_closed_form_law(present, thinning, at_once, monkeypatch):
    """All 64 outputs on the 6 pairs of 4 nodes, against the product of their bits' laws."""
    monkeypatch.setattr("lightning_dpg.privacy.noise._INDICES_AT_ONCE", at_once)
    noise, total = NoiseSource(unsafe_seed=2), 2000
    true_rate, false_rate = response_rates(1.3, thinning)
    rates = np.where(np.isin(np.arange(6), present), true_rate, false_rate)
    outputs = np.array(list(itertools.product((0, 1), repeat=6)))
    expected = total * np.where(outputs, rates, 1 - rates).prod(1)
    observed, value = np.zeros(64), torch.tensor(present, dtype=torch.long)
    law = randomized_response(entry("pure", epsilon=1.3), 6, thinning)  # without a ledger's time
    for _ in range(total):
        bits = law(value, noise).tolist()
        assert bits == sorted(set(bits))
        observed[sum(2 ** (5 - bit) for bit in bits)] += 1
    common = np.argsort(expected)[::-1]
    common = common[: np.searchsorted(-expected[common], -8)]
    rest = [total - observed[common].sum()], [total - expected[common].sum()]
    observed, expected = (
        np.append(counts[common], left)
        for counts, left in zip((observed, expected), rest, strict=True)
    )
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "thinning"), [(0.5, 1.0), (3.0, 1.0), (3.0, 0.01)])
def test_no_output_of_randomized_response_tells_neighbours_apart_by_more(epsilon, thinning):
    true_rate, false_rate = response_rates(epsilon, thinning)
    outputs = np.array(list(itertools.product((0, 1), repeat=6)))
    worst = 0.0
    for graph in outputs:  # all graphs of 4 nodes
        rates = np.where(graph, true_rate, false_rate)
        law = np.where(outputs, rates, 1 - rates)
        for bit in range(6):
            neighbor = graph.copy()
            neighbor[bit] = 1 - graph[bit]
            rates = np.where(neighbor, true_rate, false_rate)
            other = np.where(outputs, rates, 1 - rates)
            assert (graph != neighbor).sum() == pair_bit_sensitivity()
            worst = max(worst, np.abs(np.log(law.prod(1) / other.prod(1))).max())
    assert worst == pytest.approx(epsilon, abs=1e-9)


def test_randomized_response_pays_first_and_flips_nothing_at_infinity():
    ledger = PrivacyLedger(Relation.EDGE)
    assert respond([1, 4], 6, math.inf, ledger).tolist() == [1, 4]
    assert ledger.epsilon(1e-5) == math.inf
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(1.0, 0.0)
    with pytest.raises(PrivacyBudgetExceeded):
        respond([1], 6, 1.1, ledger, noise=object())
    respond([1], 6, 1.0, ledger)
    assert ledger.headline(0.0) == (1.0, "sum of pure epsilons")
    for epsilon, thinning in ((0.0, 1.0), (1.0, 1.5)):
        with pytest.raises(ValueError, match="thinning"):
            respond([1], 6, epsilon, thinning=thinning)
