"""Private selections have the law of permute and flip, and one edge costs at most the rate."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lightning_dpg.privacy.ledger import (
    Budget,
    PrivacyBudgetExceeded,
    PrivacyLedger,
    Relation,
)
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.selection import choose_in_turns
from tests.entries import entry
from tests.flip_law import flip_law

NO_ONE = torch.empty(0, dtype=torch.long)


def choose(counts, epsilon, offsets=None, sensitivity=1, ledger=None, noise=None):
    counts = torch.as_tensor(counts)
    offsets = torch.zeros(counts.shape) if offsets is None else torch.as_tensor(offsets)
    read = entry("pure", name="communities", epsilon=epsilon, sensitivity=sensitivity)
    law = choose_in_turns(read, [len(counts)], lambda chosen, stop: (counts, offsets))
    ledger = ledger if ledger is not None else PrivacyLedger(Relation.EDGE)
    return pay(read, NO_ONE, ledger, noise or NoiseSource(unsafe_seed=1), law)


@pytest.mark.parametrize(
    ("counts", "offsets", "epsilon", "sensitivity"),
    [
        ([2, 0, 1], [0.0, 0.0, 0.0], 0.7, 1),
        ([2, 0, 1], [-1.5, 0.25, 0.0], 1.4, 2),
        ([0, 4], [0.0, 0.0], 0.9, 1),
        ([1, 1, 1, 0], [0.0, 0.0, 0.0, 2.0], 3.0, 1),
    ],
)
def test_choices_have_the_law_of_permute_and_flip(counts, offsets, epsilon, sensitivity):
    total = 20_000
    chosen = choose([counts] * total, epsilon, [offsets] * total, sensitivity)
    utilities = np.add(counts, offsets)
    expected = total * flip_law(utilities, epsilon / sensitivity)
    observed = np.bincount(chosen, minlength=len(counts))
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    # The largest of the utilities with exponential noise on top has the same law.
    noisy = utilities + np.random.default_rng(0).exponential(
        sensitivity / epsilon, (total, len(counts))
    )
    other = np.bincount(noisy.argmax(axis=1), minlength=len(counts))
    assert stats.chisquare(other, expected).pvalue > 1e-3


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=5),
    st.floats(0.05, 3),
    st.data(),
)
def test_one_more_edge_costs_at_most_the_rate(counts, rate, data):
    grown = list(counts)
    grown[data.draw(st.integers(0, len(counts) - 1))] += 1
    ratios = np.log(flip_law(grown, rate) / flip_law(counts, rate))
    assert np.abs(ratios).max() <= rate + 1e-9
    # Never worse than the exponential mechanism.
    weights = np.exp(rate * np.array(counts))
    assert flip_law(counts, rate) @ counts >= weights @ counts / weights.sum() - 1e-9


def test_it_is_booked_once_before_it_is_drawn():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(0.5, 0.0)
    choose([[1, 0]], 0.5, sensitivity=2, ledger=ledger)
    assert ledger.entries == [entry("pure", name="communities", sensitivity=2, epsilon=0.5)]
    with pytest.raises(PrivacyBudgetExceeded):
        choose([[1, 0]], 1e-3, ledger=ledger, noise=object())  # a draw would fail otherwise
    for epsilon, sensitivity in ((0.0, 1), (1.0, 0)):
        with pytest.raises(ValueError, match="positive"):
            choose([[1, 0]], epsilon, sensitivity=sensitivity)


def test_turns_see_earlier_choices_and_keep_the_first_ones():
    seen = []

    def utilities(chosen, stop):
        seen.append((chosen.tolist(), stop))
        # All wish for the community after that of the last node.
        counts = torch.zeros(stop - len(chosen), 3, dtype=torch.long)
        counts[:, (chosen[-1] + 1) % 3] = 1
        return counts, torch.zeros(counts.shape)

    read = entry("pure", epsilon=math.inf)
    law = choose_in_turns(read, [3, 5], utilities)
    chosen = pay(read, torch.tensor([0, 1]), PrivacyLedger(Relation.EDGE), NoiseSource(), law)
    assert chosen.tolist() == [0, 1, 2, 0, 0]
    assert seen == [([0, 1], 3), ([0, 1, 2], 5)]


def test_ties_are_broken_evenly_without_noise_and_tiny_budgets_choose_evenly():
    total = 6000
    without_noise = choose([[3, 5, 5]] * total, math.inf)
    assert np.bincount(without_noise, minlength=3).tolist()[0] == 0
    assert abs(int((without_noise == 1).sum()) - total // 2) < 200  # sd 39
    tiny = np.bincount(choose([[90, 0, 0]] * total, 1e-15), minlength=3)
    assert np.abs(tiny - total / 3).max() < 200  # sd 37


def test_counts_beyond_the_number_of_nodes_are_cut():
    # Uncut they would overflow, and the choice would turn round.
    assert choose([[2**62, 0]] * 40, 1.0).tolist() == [0] * 40
