import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from lightning_dpg.privacy.ledger import (
    Budget,
    LedgerEntry,
    PrivacyBudgetExceeded,
    PrivacyLedger,
    Relation,
)
from lightning_dpg.privacy.mechanisms import discrete_laplace, gaussian
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity import (
    degree_sensitivity,
    edge_count_sensitivity,
    edge_gradient_sensitivity,
)


def count(value, epsilon, sensitivity=1, ledger=None, noise=None):
    return discrete_laplace(
        value,
        ledger if ledger is not None else PrivacyLedger(Relation.EDGE),
        noise or NoiseSource(),
        name="count",
        epsilon=epsilon,
        sensitivity=sensitivity,
        proof="edge_count_sensitivity",
    )


def pmf(k, rate):
    return math.tanh(rate / 2) * math.exp(-rate * abs(k))


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.3, 1), (2.5, 1), (1.0, 3)])
def test_discrete_laplace_has_its_closed_form_law(epsilon, sensitivity):
    noise, total = NoiseSource(unsafe_seed=1), 4000
    draws = np.array([count(7, epsilon, sensitivity, noise=noise) - 7 for _ in range(total)])
    edge = 0
    while total * pmf(edge + 1, epsilon / sensitivity) >= 8:
        edge += 1
    clipped = np.clip(draws, -edge - 1, edge + 1)
    observed = [np.sum(clipped == k) for k in range(-edge - 1, edge + 2)]
    inner = [total * pmf(k, epsilon / sensitivity) for k in range(-edge, edge + 1)]
    tail = (total - sum(inner)) / 2
    assert stats.chisquare(observed, [tail, *inner, tail]).pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.7, 3)])
def test_log_ratio_over_neighbours_is_at_most_epsilon(epsilon, sensitivity):
    neighbours = [
        (a, b) for a, b in itertools.product(range(9), repeat=2) if abs(a - b) <= sensitivity
    ]
    rate = epsilon / sensitivity
    ratios = [
        math.log(pmf(output - a, rate) / pmf(output - b, rate))
        for a, b in neighbours
        for output in range(-20, 30)
    ]
    assert max(ratios) == pytest.approx(epsilon, abs=1e-9)


def test_discrete_laplace_is_booked_before_it_is_drawn():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(0.25, 1e-5)
    count(10, 0.25, ledger=ledger)
    assert ledger.entries == [
        LedgerEntry(
            name="count",
            relation=Relation.EDGE,
            mechanism="pure",
            sensitivity=1,
            epsilon=0.25,
            proof="edge_count_sensitivity",
        )
    ]
    with pytest.raises(PrivacyBudgetExceeded):
        count(10, 1e-3, ledger=ledger, noise=object())  # a draw would fail otherwise
    for epsilon, sensitivity in ((0.0, 1), (1.0, -1)):
        with pytest.raises(ValueError, match="positive"):
            count(10, epsilon, sensitivity)


def release(value, ledger, noise=None, noise_multiplier=2.0):
    return gaussian(
        value,
        ledger,
        noise or NoiseSource(),
        name="degrees",
        sensitivity=1.5,
        noise_multiplier=noise_multiplier,
        proof="by hand",
    )


def test_gaussian_noise_has_the_booked_scale():
    ledger = PrivacyLedger(Relation.EDGE)
    clean = torch.arange(200_000) % 100
    draws = (release(clean, ledger) - clean).numpy()
    assert draws.dtype == np.float64
    assert draws.std() == pytest.approx(3.0, rel=0.01)
    assert stats.kstest(draws, "norm", args=(0, 3.0)).pvalue > 1e-5
    (entry,) = ledger.entries
    assert (entry.sensitivity, entry.noise_multiplier, entry.steps) == (1.5, 2.0, 1)


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
            assert abs(flipped.sum() - adjacency.sum()) / 2 == edge_count_sensitivity()
