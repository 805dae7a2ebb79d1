"""The stretch of each truncation is within its bound over all graphs of six nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.graph.degrees import truncate
from lightning_dpg.privacy.sensitivity.subgraph_counts import truncation_stretch

NODES = 6
PAIRS = list(itertools.combinations(range(NODES), 2))
BITS = np.array([code.bit_count() for code in range(2 ** len(PAIRS))])


def order_of_pairs(order):
    """Place of each pair, read off graphs of two edges at one node: D = 1 keeps the earlier one."""
    earlier = np.zeros((len(PAIRS), len(PAIRS)), dtype=bool)
    for (i, first), (j, second) in itertools.combinations(enumerate(PAIRS), 2):
        if set(first) & set(second):
            kept = truncate(torch.tensor([first, second]), NODES, 1, order)
            assert len(kept) == 1
            wins = tuple(kept[0].tolist()) == first
            earlier[i, j], earlier[j, i] = wins, not wins
    return earlier


def kept_in_all_graphs(earlier, max_degree):
    """For each graph, by its bits, those of its canonical list: pair by pair, for all graphs."""
    graphs = np.arange(2 ** len(PAIRS))
    has = [(graphs >> bit) & 1 == 1 for bit in range(len(PAIRS))]
    kept = np.zeros_like(graphs)
    for i, pair in enumerate(PAIRS):
        among_first = has[i]
        for end in pair:
            before = [has[j] for j, p in enumerate(PAIRS) if j != i and end in p and earlier[j, i]]
            among_first = among_first & (sum(b.astype(int) for b in before) < max_degree)
        kept |= among_first.astype(int) << i
    return kept


def edges_of(code):
    return torch.tensor([p for bit, p in enumerate(PAIRS) if code >> bit & 1]).reshape(-1, 2)


def code_of(edges):
    return sum(1 << PAIRS.index(tuple(edge)) for edge in edges.tolist())


def largest_stretch(kept):
    """Most pairs that two truncated graphs differ in, over all graphs and all flips."""
    graphs = np.arange(len(kept))
    changes = (kept ^ kept[graphs ^ (1 << bit)] for bit in range(len(PAIRS)))
    return max(BITS[change].max() for change in changes)


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_stretch_of_the_canonical_list_over_all_graphs_of_six_nodes(max_degree, order):
    kept = kept_in_all_graphs(order_of_pairs(order), max_degree)
    for code in np.random.default_rng(order).integers(0, len(kept), 300).tolist():
        assert code_of(truncate(edges_of(code), NODES, max_degree, order)) == kept[code]
    assert largest_stretch(kept) == truncation_stretch()


def test_degrees_are_bounded_and_small_ones_are_left_alone():
    graph = nx.barabasi_albert_graph(500, 4, seed=0)
    edges = torch.tensor(sorted(tuple(sorted(edge)) for edge in graph.edges))
    assert torch.bincount(truncate(edges, 500, 6).flatten()).max() <= 6
    assert torch.equal(truncate(edges, 500, 499), edges)
    assert truncate(edges[:0], 500, 2).shape == (0, 2)


def test_the_order_favors_no_nodes():
    """In a clique each node keeps as many edges as any other, on average over the orders."""
    pairs = torch.combinations(torch.arange(20))
    degrees = sum(
        torch.bincount(truncate(pairs, 20, 4, order).flatten(), minlength=20)
        for order in range(400)
    )
    mean, spread = degrees.double().mean(), 400**0.5 * 1.2
    assert ((degrees - mean).abs() < 4.5 * spread).all()


def test_no_degree_below_one():
    with pytest.raises(ValueError, match="max_degree must be 1 or more, got 0"):
        truncate(torch.tensor([[0, 1]]), 2, 0)
