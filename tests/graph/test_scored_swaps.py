"""Swaps keep degrees and simple graphs, and reach the law of the scores."""

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
import torch

from lightning_dpg.graph.scored_swaps import swap_by_scores


def edges_of(graph):
    return torch.tensor([sorted(edge) for edge in graph.edges]).view(-1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_degrees_stay_and_the_graph_is_simple(seed):
    edges = edges_of(nx.gnm_random_graph(12, 30, seed=seed))  # dense: many swaps are refused
    table = torch.randn(12, 12, generator=torch.Generator().manual_seed(seed))
    table = 3 * (table + table.T)
    source = torch.Generator().manual_seed(seed)
    swapped = swap_by_scores(edges, 12, lambda p: table[p[:, 0], p[:, 1]], 50, source)
    assert (swapped[:, 0] < swapped[:, 1]).all()
    assert len(swapped.unique(dim=0)) == len(edges)
    assert (swapped.flatten().bincount() == edges.flatten().bincount()).all()
    assert table[*swapped.T].sum() > table[*edges.T].sum()


def test_the_law_is_that_of_the_scores():
    # The three perfect matchings of four nodes: each has the probability of its scores.
    table = torch.zeros(4, 4)
    table[0, 1], table[2, 3], table[0, 2] = 0.4, 0.3, -0.5
    weights = {
        ((0, 1), (2, 3)): torch.tensor(0.7).exp(),
        ((0, 2), (1, 3)): torch.tensor(-0.5).exp(),
        ((0, 3), (1, 2)): torch.tensor(1.0),
    }
    source, drawn = torch.Generator().manual_seed(0), Counter()
    edges = torch.tensor([[0, 1], [2, 3]])
    for _ in range(3000):
        edges = swap_by_scores(edges, 4, lambda p: table[p[:, 0], p[:, 1]], 3, source)
        drawn[tuple(sorted(map(tuple, edges.tolist())))] += 1
    for matching, weight in weights.items():
        expected = float(weight / sum(weights.values()))
        assert drawn[matching] / 3000 == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_edges_stay(count):
    edges = torch.tensor(list(combinations(range(3), 2)))[:count].view(-1, 2)
    kept = swap_by_scores(edges, 3, lambda p: torch.zeros(len(p)), 5, torch.Generator())
    assert kept.tolist() == edges.tolist()
