"""Bounds on subgraph counts hold for all graphs of five or six nodes, and for exact laws."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.graph.degrees import truncate
from lightning_dpg.papers.dubhashi2015.graphlet_samples import edge_graphlet_counts
from lightning_dpg.papers.dubhashi2015.graphlets import graphlet_counts, walk_counts
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    amplified_epsilon,
    containing_graphlets,
    graphlet_sensitivity,
    printed_amplification,
    printed_graphlet_sensitivity,
    printed_walk_sensitivity,
    truncated_sensitivity,
    truncation_stretch,
    walk_sensitivity,
)


class AllGraphs:
    """All labelled graphs of a few nodes as one set; a graph's number has a bit for each pair."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.pairs = np.array(list(itertools.combinations(range(nodes), 2)))
        self.numbers = np.arange(2 ** len(self.pairs))
        self.linked = (self.numbers[:, None] >> np.arange(len(self.pairs))) & 1 == 1
        graph, pair = np.nonzero(self.linked)
        self.edges = torch.from_numpy(graph[:, None] * nodes + self.pairs[pair])
        self.graph_of = torch.arange(len(self.numbers)).repeat_interleave(nodes)
        ends = np.bincount(self.edges.flatten(), minlength=len(self.graph_of))
        self.max_degree = ends.reshape(-1, nodes).max(axis=1)

    def largest_change(self, counts, max_degree):
        """Largest L1 change by a flip, among the graphs with degrees of at most D."""
        low, largest = self.max_degree <= max_degree, 0
        for bit in range(len(self.pairs)):
            with_edge = np.flatnonzero(self.linked[:, bit] & low)
            change = np.abs(counts[with_edge] - counts[with_edge ^ (1 << bit)])
            largest = max(largest, change.reshape(len(with_edge), -1).sum(axis=1).max())
        return largest


SIX = AllGraphs(6)


def regular_tree(degree, radius):
    """The edge (0, 1) and all nodes within ``radius`` of it, inner ones of the same degree."""
    edges, ends = [(0, 1)], [0, 1]
    for _ in range(radius):
        fresh = itertools.count(max(map(max, edges)) + 1)
        grown = [(end, next(fresh)) for end in ends for _ in range(degree - 1)]
        edges, ends = edges + grown, [leaf for _, leaf in grown]
    return torch.tensor(edges), max(map(max, edges)) + 1


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_walks_over_all_graphs_of_six_nodes_and_all_flips(length):
    counts = walk_counts(SIX.edges, SIX.graph_of, len(SIX.numbers), length)[:, -1].numpy()
    for degree in (1, 2, 3, 4, 5):
        change, bound = SIX.largest_change(counts, degree), walk_sensitivity(length, degree)
        assert change <= bound <= printed_walk_sensitivity(length, degree)
        if length <= 2:
            assert change == bound


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_walks_of_three_edges_attain_the_bound_on_a_tree(degree):
    edges, num_nodes = regular_tree(degree, 4)
    graph_of = torch.zeros(num_nodes, dtype=torch.long)
    counts = walk_counts(edges, graph_of, 1, 3) - walk_counts(edges[1:], graph_of, 1, 3)
    assert counts[0].tolist() == [walk_sensitivity(length, degree) for length in (1, 2, 3)]


@pytest.mark.parametrize("size", [3, 4, 5])
def test_graphlets_over_all_graphs_of_six_nodes_and_all_flips(size):
    counts = graphlet_counts(SIX.edges, SIX.graph_of, len(SIX.numbers), size).numpy()
    changes = {d: SIX.largest_change(counts, d) for d in (1, 2, 3, 4, 5)}
    assert all(change <= graphlet_sensitivity(size, d) for d, change in changes.items())
    assert changes[2] == graphlet_sensitivity(size, 2)  # on a path or a cycle
    if size == 3:
        assert changes[3] == graphlet_sensitivity(3, 3)


@pytest.mark.parametrize(
    ("degree", "expected"), [(3, [4, 14, 48]), (4, [6, 33, 182]), (5, [8, 60])]
)
def test_graphlets_attain_the_bound_on_a_tree(degree, expected):
    for size, number in enumerate(expected, start=3):
        edges, num_nodes = regular_tree(degree, size - 2)
        graph_of = torch.zeros(num_nodes, dtype=torch.long)
        around = edge_graphlet_counts(edges, num_nodes, size, torch.tensor([0])).sum()
        assert int(around) == number == containing_graphlets(size, degree)
        both = [graphlet_counts(e, graph_of, 1, size) for e in (edges, edges[1:])]
        assert int((both[0] - both[1]).abs().sum()) == graphlet_sensitivity(size, degree)
        assert graphlet_sensitivity(size, degree) < printed_graphlet_sensitivity(size, degree)


def test_graphlets_in_random_graphs_with_cycles():
    """Where sets change their type instead of falling apart, up to a good share of the bound."""
    shares = []
    for seed in range(40):
        graph = nx.random_regular_graph(4, 12, seed=seed)
        edges = torch.tensor(sorted(tuple(sorted(edge)) for edge in graph.edges))
        graph_of = torch.zeros(12, dtype=torch.long)
        for size in (3, 4, 5):
            both = [graphlet_counts(e, graph_of, 1, size) for e in (edges, edges[1:])]
            change = int((both[0] - both[1]).abs().sum())
            shares.append(change / graphlet_sensitivity(size, 4))
    assert 0.5 < max(shares) <= 1


@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_truncated_counts_over_all_graphs_of_five_nodes(max_degree):
    five = AllGraphs(5)
    truncated = []
    for number, bits in enumerate(five.linked):
        kept = truncate(torch.from_numpy(five.pairs[bits]), 5, max_degree)
        truncated.append(kept + 5 * number)
    edges = torch.cat(truncated)
    counts = {
        walk_sensitivity(3, max_degree): walk_counts(edges, five.graph_of, 1024, 3)[:, -1],
        graphlet_sensitivity(3, max_degree): graphlet_counts(edges, five.graph_of, 1024, 3),
        graphlet_sensitivity(4, max_degree): graphlet_counts(edges, five.graph_of, 1024, 4),
    }
    for sensitivity, values in counts.items():
        change = five.largest_change(values.numpy(), 4)
        assert change <= truncated_sensitivity(sensitivity, truncation_stretch())


def law_of_sums(values, draws):
    """Law of the sum of draws with replacement, as probabilities of 0, 1, 2, ..."""
    one = np.bincount(values) / len(values)
    law = np.ones(1)
    for _ in range(draws):
        law = np.convolve(law, one)
    return law


def privacy_loss(first, second, scale):
    """Largest log ratio, either way, of two laws of whole numbers after Laplace noise.

    Between two atoms the ratio is monotone, so that they and both ends suffice.
    """
    length = max(len(first), len(second))
    laws = [np.pad(law, (0, length - len(law))) for law in (first, second)]
    atoms = np.arange(length)
    kernel = np.exp(-np.abs(atoms[:, None] - atoms) / scale)
    ends = np.exp(np.stack([atoms, -atoms]) / scale)
    ratios = [np.log((k @ laws[0]) / (k @ laws[1])) for k in (kernel, ends)]
    return max(np.abs(ratio).max() for ratio in ratios)


def paths_on_edges(degree, slots, flipped):
    """Paths of 3 nodes on the edge of each slot: a star, and edges on their own."""
    edges = torch.tensor([(0, leaf) for leaf in range(1, degree + 1)])
    edges = edges[1:] if flipped else edges
    per_edge = edge_graphlet_counts(edges, int(edges.max()) + 1, 3)[:, 0].numpy()
    return np.concatenate([per_edge, np.zeros(slots - len(per_edge), dtype=int)])


def test_the_printed_amplification_does_not_hold():
    """PRIVACY: a star of five edges among 2,000, slides' noise, ten draws: 0.345 is claimed."""
    degree, slots, draws = 5, 2000, 10
    claimed = printed_amplification(1.0, draws, slots, 3, degree)
    assert claimed == pytest.approx(0.345, abs=0.001)
    laws = [law_of_sums(paths_on_edges(degree, slots, f), draws) for f in (False, True)]
    scale = printed_graphlet_sensitivity(3, degree) / 1.0
    assert privacy_loss(*laws, scale * (draws * 2) / slots) > 3


def test_amplification_is_attained_by_the_number_of_edges():
    rate, epsilon, edges = 0.3, 1.5, 12
    laws = [
        np.array([math.comb(m, x) * rate**x * (1 - rate) ** (m - x) for x in range(m + 1)])
        for m in (edges, edges + 1)
    ]
    assert privacy_loss(*laws, 1 / epsilon) == pytest.approx(amplified_epsilon(epsilon, rate))
