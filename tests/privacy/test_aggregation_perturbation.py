"""Noisy sums over neighbors: their sensitivity over all small graphs, and what they book."""

import itertools
from functools import partial

import pytest
import torch

from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.privacy.aggregation_perturbation import aggregation_entries, noisy_aggregation
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded, PrivacyLedger, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.neighbor_sums import aggregation_sensitivity

PAIRS = torch.combinations(torch.arange(5))


def graphs():
    """All graphs of five nodes, as masks over the ten pairs."""
    return torch.tensor(list(itertools.product([False, True], repeat=10)))


def release(edges, features, sigma):
    ledger, reads = PrivacyLedger(Relation.EDGE), aggregation_entries(2, sigma, Relation.EDGE)
    sums_of = partial(neighbor_sums, edges)
    return noisy_aggregation(sums_of, features, reads, ledger, NoiseSource(unsafe_seed=0)), ledger


def test_one_edge_moves_a_hop_by_exactly_the_square_root_of_two_in_all_graphs_of_five_nodes():
    rows = torch.nn.functional.normalize(torch.randn(5, 3, dtype=torch.float64))
    masks = graphs()
    sums = torch.stack([neighbor_sums(PAIRS[mask], rows) for mask in masks])
    for flipped in range(10):  # number k of the masks has the flipped bit of k xor 2^(9 - flipped)
        neighbors = sums[torch.arange(1024) ^ 2 ** (9 - flipped)]
        moved = (sums - neighbors).flatten(1).norm(dim=1)
        torch.testing.assert_close(moved, torch.full_like(moved, aggregation_sensitivity()))


def test_without_noise_the_second_hop_sums_rows_of_norm_one():
    features = torch.nn.functional.normalize(torch.randn(5, 3))
    edges = PAIRS[[0, 3, 4, 9]]
    rows, ledger = release(edges, features, 0.0)
    first = neighbor_sums(edges, features)
    torch.testing.assert_close(rows[:, :3], first)
    expected = neighbor_sums(edges, first / first.norm(dim=1, keepdim=True))
    torch.testing.assert_close(rows[:, 3:], expected)
    assert ledger.reasons  # no noise, no guarantee


def test_longer_rows_are_scaled_to_norm_one_and_shorter_ones_stay():
    edges = PAIRS[:1]
    rows, _ = release(edges, torch.tensor([[3.0, 4.0], [0.3, 0.4], [0, 0], [0, 0], [0, 0]]), 0.0)
    torch.testing.assert_close(rows[:2, :2], torch.tensor([[0.3, 0.4], [0.6, 0.8]]))


def test_each_hop_is_booked_and_has_noise_of_its_scale():
    features = torch.nn.functional.normalize(torch.randn(4000, 4))
    rows, ledger = release(torch.empty(0, 2, dtype=torch.long), features, 3.0)
    booked = [(e.name, e.event, e.sensitivity) for e in ledger.entries]
    assert booked == [(f"sums over neighbors, hop {hop}", Gaussian(3.0), 2**0.5) for hop in (1, 2)]
    # Without an edge there is noise alone: 32,000 draws of standard deviation 3 sqrt(2).
    assert float(rows.std()) == pytest.approx(3 * 2**0.5, rel=0.03)


def test_a_hop_that_the_budget_does_not_cover_is_refused():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(1.0, 1e-6)
    with pytest.raises(PrivacyBudgetExceeded, match="hop 1"):
        reads = aggregation_entries(2, 1.0, Relation.EDGE)
        sums_of = partial(neighbor_sums, PAIRS)
        noisy_aggregation(sums_of, torch.eye(5), reads, ledger, NoiseSource(unsafe_seed=0))
    assert not ledger.entries
