"""Pieces of a graph follow the law of pairs that are drawn one after the other."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from lightning_dpg.graph import expected_degrees
from lightning_dpg.graph.expected_degrees import (
    chung_lu_edges,
    chung_lu_pieces,
    edge_pieces,
    edge_weights,
)

WEIGHTS = np.array([1.5, 0.2, 0.9, 0.4])


def law_of_three():
    """Probability of each set of three pairs, by all orders in which they may be drawn."""
    rates = {
        pair: WEIGHTS[pair[0]] * WEIGHTS[pair[1]] for pair in itertools.combinations(range(4), 2)
    }
    law = {frozenset(three): 0.0 for three in itertools.combinations(rates, 3)}
    for order in itertools.permutations(rates, 3):
        left, chance = sum(rates.values()), 1.0
        for pair in order:
            chance *= rates[pair] / left
            left -= rates[pair]
        law[frozenset(order)] += chance
    return law


# With ten times the expected pairs the horizon is too short, and windows are added to it.
@pytest.mark.slow
@pytest.mark.parametrize(("piece", "expected"), [(1, 3.0), (2**21, 3.0), (1, 30.0)])
def test_sets_of_pairs_have_the_law_of_single_draws(piece, expected):
    law, runs = law_of_three(), 800
    counts = dict.fromkeys(law, 0)
    for seed in range(runs):
        pieces = list(edge_pieces(WEIGHTS, 3, expected, seed, piece))
        pairs = [tuple(pair) for pair in np.concatenate(pieces).tolist()]
        assert len(pairs) == 3
        counts[frozenset(pairs)] += 1
    wanted = [runs * chance for chance in law.values()]
    assert chisquare(list(counts.values()), wanted).pvalue > 1e-4


def test_pieces_are_in_order_and_no_pair_is_repeated():
    degrees = np.random.default_rng(0).integers(1, 60, 500)
    count = int(degrees.sum()) // 2
    *pieces, tail = edge_pieces(edge_weights(degrees), count, count, seed=1, piece=1000)
    assert len(pieces) > 5 and max(map(len, pieces)) < 1500 and len(tail) < 20
    listed = np.concatenate(pieces)
    assert listed.tolist() == sorted(listed.tolist())
    every = np.concatenate([listed, tail])
    assert len(np.unique(every, axis=0)) == count and (every[:, 0] < every[:, 1]).all()


def test_all_pairs_are_drawn_where_all_are_wanted():
    pieces = list(edge_pieces(WEIGHTS, 6, 3.0, seed=0))
    assert sorted(np.concatenate(pieces).tolist()) == [
        [i, j] for i in range(4) for j in range(i + 1, 4)
    ]


def test_a_large_graph_is_the_same_in_pieces_and_in_memory(monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", 0)
    monkeypatch.setattr(expected_degrees, "MANY_EDGES", 400)
    degrees = torch.tensor([0, 90, 40] + [4] * 200)
    count = int(degrees.sum()) // 2
    pieces = chung_lu_pieces(degrees, count, torch.Generator().manual_seed(3))
    edges = chung_lu_edges(degrees, count, torch.Generator().manual_seed(3))
    assert torch.equal(torch.cat(list(pieces)), edges)
    assert len(edges) == count and int(edges.min()) == 1
