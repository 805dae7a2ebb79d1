"""Scores of count tables equal likelihoods summed over all coins."""

import itertools

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from lightning_dpg.apps.audit.scores.counts import (
    counts_score,
    links_score,
    ordered_degrees_score,
    table_scores,
)
from lightning_dpg.apps.audit.scores.gradients import updates_score
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.graph.wedges import count_wedges
from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.degrees import edge_count_sensitivity
from tests.entries import entry
from tests.scoring import observed

EDGES = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (5, 6)]
KNOWN = make_graph(torch.tensor(EDGES), 12)
EPSILON = 0.7


def over_all_coins(table, noisy, pairs, rate):
    """Log likelihood ratio of each pair as an edge; all coins of the others are tried."""
    found = {(k, bit): [] for k in range(len(pairs)) for bit in (0, 1)}
    for coins in itertools.product((0, 1), repeat=len(pairs)):
        edges = [*EDGES, *(pair for coin, pair in zip(coins, pairs, strict=True) if coin)]
        value = -(rate * np.abs(noisy - table(np.array(edges)))).sum()
        for k, coin in enumerate(coins):
            found[k, coin].append(value)
    logsum = np.logaddexp.reduce
    return [logsum(found[k, 1]) - logsum(found[k, 0]) for k in range(len(pairs))]


def released(noisy, pairs):
    """Noisy values with discrete Laplace noise of epsilon per unit."""
    read = LedgerEntry.proved("num_edges", "a count", Pure(EPSILON), edge_count_sensitivity)
    return observed(torch.from_numpy(noisy), torch.tensor(pairs), KNOWN, read)


def ordered(edges):
    return -np.sort(-np.bincount(edges.ravel(), minlength=12))


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 5)],  # degrees 4 and 1
        [(7, 8)],  # two of degree 0
        [(0, 5), (1, 7)],  # four different degrees
        [(7, 8), (9, 10)],  # all of degree 0
    ],
)
def test_ordered_degrees_weigh_as_their_likelihood_ratio(pairs):
    noisy = ordered(np.array(EDGES)) + np.random.default_rng(0).integers(-3, 4, 12)
    expected = over_all_coins(ordered, noisy, pairs, EPSILON / 2)
    found = ordered_degrees_score(released(noisy, pairs))
    assert found.tolist() == pytest.approx(expected)


PAIRS = [(0, 5), (0, 6), (1, 4), (2, 7), (8, 9), (10, 11)]


def test_links_weigh_as_their_likelihood_ratio_also_where_canaries_share_a_cell():
    rng = np.random.default_rng(1)
    classes = rng.integers(3, size=12)
    classes[:3] = range(3)
    lower = np.tril_indices(3)
    table = lambda edges: count_links(classes, edges)[lower]
    noisy = table(np.array(EDGES)) + rng.integers(-3, 4, len(lower[0]))
    of_classes = torch.from_numpy(classes)
    found = links_score(released(noisy, PAIRS), torch.from_numpy(noisy), of_classes)
    assert found.tolist() == pytest.approx(over_all_coins(table, noisy, PAIRS, EPSILON))


def test_the_number_of_edges_weighs_as_its_likelihood_ratio():
    table = lambda edges: np.array([len(edges)])
    found = counts_score(released(np.array(12), PAIRS), table)
    assert found.tolist() == pytest.approx(over_all_coins(table, 12, PAIRS, EPSILON))


def test_wedges_weigh_as_the_likelihood_ratio_of_a_single_canary():
    slots, classes = np.full(12, 2), np.zeros(12, dtype=np.int64)
    wedges = lambda edges: count_wedges(edges, slots, classes, 2, seed=0)
    noisy = wedges(np.array(EDGES)) + np.array([[2], [1]])
    changed = 0
    for pair in ([0, 5], [1, 4], [2, 3], [3, 4]):
        expected = over_all_coins(wedges, noisy, [tuple(pair)], 0.2)
        found = counts_score(released(noisy, [pair]), wedges, 0.2)
        assert found.tolist() == pytest.approx(expected)
        changed += bool(found)
    assert changed


def test_changes_of_several_sizes_in_one_cell_are_all_averaged():
    changes = csr_array(np.array([[1, 0], [-2, 0], [3, 1], [0, 2]]))
    surplus, rates = np.array([2, 1]), np.array([0.4, 0.9])
    # A canary in one cell is exact, whatever the others there do.
    sums = [
        (coins, -(rates * np.abs(surplus - np.array(coins) @ changes.toarray())))
        for coins in itertools.product((0, 1), repeat=4)
    ]
    logsum = np.logaddexp.reduce
    for canary, cell in ((0, 0), (1, 0), (3, 1)):
        ratio = [logsum([v[cell] for coins, v in sums if coins[canary] == bit]) for bit in (0, 1)]
        found = table_scores(surplus, changes, rates)[canary]
        assert found == pytest.approx(ratio[1] - ratio[0])


def test_a_sum_of_updates_tells_the_canaries_of_its_clients():
    torch.manual_seed(0)
    size, effects = 12, torch.randn(12, 12, 40)
    graph_of = torch.arange(12) // 4  # each client has one graph of four nodes
    pairs = torch.tensor([[0, 2], [1, 3], [4, 6], [8, 11], [9, 10]])
    known = make_graph(torch.tensor([[0, 1], [4, 5], [8, 9]]), size)

    def updates(edges):
        total = torch.zeros(3, 40)
        return total.index_add(0, graph_of[edges[:, 0]], effects[edges[:, 0], edges[:, 1]])

    read = entry(
        key="client_updates",
        name="sum of client updates",
        relation=Relation.LOCAL_GRAPH,
        noise_multiplier=0.1,
    )
    client_of = graph_of[pairs[:, 0]].clone()
    client_of[3:] = -1  # the last client does not train
    for coins in itertools.product((False, True), repeat=3):
        inside = pairs[:3][torch.tensor(coins)]
        noisy = updates(torch.cat([torch.tensor([[0, 1], [4, 5], [8, 9]]), inside])).sum(0)
        noisy += 0.1 * torch.randn(40)
        found = updates_score(observed(noisy, pairs, known, read), updates, client_of)
        assert (found[:3] > 0).tolist() == list(coins)
        assert found[3:].tolist() == [0, 0]
