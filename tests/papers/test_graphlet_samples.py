"""Graphlets at an edge equal enumeration, and estimates from draws are unbiased."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.papers.dubhashi2015 import graphlet_samples
from lightning_dpg.papers.dubhashi2015.graphlet_samples import (
    edge_graphlet_counts,
    rescale,
    sampled_graphlets,
)
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts
from tests.graphs import edges_of

PAIRS = list(combinations(range(8), 2))
EXAMPLES = {
    size: [nx.Graph([(int(e[0]), int(e[1])) for e in edges.split()]) for edges in types.values()]
    for size, types in GRAPHLETS.items()
}


def around_edges(graph, size):
    """For each edge, every set of nodes with both its ends, and the isomorphism test of networkx."""
    counts = np.zeros((graph.number_of_edges(), len(GRAPHLETS[size])), dtype=int)
    for row, edge in enumerate(edges_of(graph).tolist()):
        for others in combinations(sorted(set(graph) - set(edge)), size - 2):
            part = graph.subgraph([*edge, *others])
            for number, example in enumerate(EXAMPLES[size]):
                if part.size() == example.size() and nx.is_isomorphic(part, example):
                    counts[row, number] += 1
    return counts


def set_of(graphs):
    edges = edges_of(nx.disjoint_union_all(graphs))
    return edges, torch.repeat_interleave(torch.tensor([len(g) for g in graphs])), len(graphs)


@settings(max_examples=15)
@given(st.sets(st.sampled_from(PAIRS), min_size=1), st.sampled_from([3, 4, 5]))
def test_equals_enumeration(pairs, size):
    graph = nx.empty_graph(8)
    graph.add_edges_from(pairs)
    counts = edge_graphlet_counts(edges_of(graph), 8, size)
    np.testing.assert_array_equal(counts, around_edges(graph, size))


@pytest.mark.parametrize("size", [3, 4, 5])
def test_each_graphlet_is_found_at_each_of_its_edges(size, monkeypatch):
    graphs = [nx.les_miserables_graph(), nx.empty_graph(2), nx.gnp_random_graph(60, 0.1, seed=0)]
    edges, graph_of, num_graphs = set_of(graphs)
    monkeypatch.setattr(graphlet_samples, "_SETS", 20_000)
    counts = edge_graphlet_counts(edges, len(graph_of), size)
    links = torch.tensor([example.size() for example in EXAMPLES[size]])
    total = torch.zeros(num_graphs, len(links), dtype=torch.long)
    total.index_add_(0, graph_of[edges[:, 0]], counts)
    assert torch.equal(total, links * graphlet_counts(edges, graph_of, num_graphs, size))
    chosen = torch.tensor([7, 7, 0, 100])
    assert torch.equal(edge_graphlet_counts(edges, len(graph_of), size, chosen), counts[chosen])


@pytest.mark.parametrize("spare", [0, 40])
@pytest.mark.parametrize("size", [3, 4])
def test_estimates_are_unbiased(size, spare):
    """Also where slots without an edge are drawn."""
    graphs = [nx.karate_club_graph(), nx.empty_graph(3), nx.cycle_graph(5)]
    edges, graph_of, num_graphs = set_of(graphs)
    slots = torch.tensor([graph.number_of_edges() + spare for graph in graphs])
    exact = graphlet_counts(edges, graph_of, num_graphs, size)
    generator = torch.Generator().manual_seed(0)
    estimates = []
    for _ in range(200):
        draws = (torch.rand(3, 20, generator=generator) * slots[:, None]).long()
        sums = sampled_graphlets(edges, graph_of, num_graphs, size, draws)
        estimates.append(rescale(sums, slots, size, 20))
    values = torch.stack(estimates)
    error = (values.mean(0) - exact).abs()
    assert (error <= 4.5 * values.std(0) / 200**0.5 + 1e-9).all()
    assert not values[:, 1].any()
    # All edges of a cycle are alike.
    assert values[:, 2].std(0).any() == (spare > 0)


def test_sums_of_what_was_drawn():
    graphs = [nx.gnp_random_graph(9, 0.5, seed=0), nx.gnp_random_graph(8, 0.5, seed=1)]
    draws = torch.tensor([[3, 3, 0], [1, 99, 5]])
    sums = sampled_graphlets(*set_of(graphs), 4, draws)
    first, second = (around_edges(graph, 4) for graph in graphs)
    np.testing.assert_array_equal(sums, [2 * first[3] + first[0], second[1] + second[5]])
