"""Edges swapped in pairs."""

from collections import Counter
from itertools import combinations, permutations
from random import Random

import networkx as nx
import pytest
import torch

from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs
from lightning_dpg.graph.swaps import SwapGraph, score_of_images, swap_by_scores


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
    for _ in range(1500):
        edges = swap_by_scores(edges, 4, lambda p: table[p[:, 0], p[:, 1]], 3, source)
        drawn[tuple(sorted(map(tuple, edges.tolist())))] += 1
    for matching, weight in weights.items():
        expected = float(weight / sum(weights.values()))
        assert drawn[matching] / 1500 == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("space", [DirectedPairs(9), BipartitePairs(13, 6)], ids=lambda s: s.kind)
@pytest.mark.parametrize("seed", range(3))
def test_the_degrees_of_both_ends_stay(space, seed):
    source = torch.Generator().manual_seed(seed)
    edges = space.draw(torch.empty(0, 2).long(), space.num_pairs // 2, source)
    table = 3 * torch.randn(13, 13, generator=source)
    swapped = swap_by_scores(
        edges, space.num_nodes, lambda p: table[p[:, 0], p[:, 1]], 50, source, space=space
    )
    assert torch.equal(space.pairs(space.numbers(swapped)), swapped)
    assert len(swapped.unique(dim=0)) == len(edges)
    assert torch.equal(space.degrees(swapped), space.degrees(edges))
    assert table[*swapped.T].sum() > table[*edges.T].sum()


def test_the_law_of_bipartite_graphs_is_that_of_the_scores():
    # The six perfect matchings of three left and three right nodes.
    table = torch.tensor([[0.6, 0.0, -0.4], [0.1, -0.7, 0.5], [0.0, 0.3, 0.8]])
    weights = {p: float(table[range(3), list(p)].sum().exp()) for p in permutations(range(3))}
    source, drawn = torch.Generator().manual_seed(0), Counter()
    space, edges = BipartitePairs(6, 3), torch.tensor([[0, 3], [1, 4], [2, 5]])
    for _ in range(1000):
        edges = swap_by_scores(
            edges, 6, lambda p: table[p[:, 0], p[:, 1] - 3], 4, source, space=space
        )
        drawn[tuple((edges[edges[:, 0].argsort(), 1] - 3).tolist())] += 1
    for matching, weight in weights.items():
        expected = weight / sum(weights.values())
        assert drawn[matching] / 1000 == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_edges_stay(count):
    edges = torch.tensor(list(combinations(range(3), 2)))[:count].view(-1, 2)
    kept = swap_by_scores(edges, 3, lambda p: torch.zeros(len(p)), 5, torch.Generator())
    assert kept.tolist() == edges.tolist()


def test_scores_of_images_are_products_of_both_ends():
    first, second = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    pairs = torch.cartesian_prod(torch.arange(7), torch.arange(7)).repeat(2000, 1)  # many parts
    expected = (2.5 * first @ second.T)[*pairs.T]
    torch.testing.assert_close(score_of_images(first, second, 2.5)(pairs), expected)


def as_networkx(graph, size):
    result = nx.empty_graph(size)
    result.add_edges_from(graph.edges)
    assert result.number_of_edges() == len(graph.edges)  # none twice
    assert not list(nx.selfloop_edges(result))
    return result


@pytest.mark.parametrize("target", [0, 10, 40])
def test_swaps_reach_a_number_of_triangles_and_keep_degrees(target):
    original = nx.gnm_random_graph(30, 90, seed=3)
    degrees = [degree for _, degree in original.degree]
    graph = SwapGraph(degrees, 90, Random(0))
    graph.shuffle()
    graph.connect()
    graph.reach_triangles(target, connected=True)
    drawn = as_networkx(graph, 30)
    assert sorted(degree for _, degree in drawn.degree) == sorted(degrees)
    assert sum(nx.triangles(drawn).values()) // 3 == graph.triangles() == target
    assert nx.is_connected(drawn)


def test_components_are_joined_as_far_as_there_are_edges():
    triangles = SwapGraph([2] * 6, 6, Random(0))
    while nx.is_connected(as_networkx(triangles, 6)):  # until two triangles are drawn
        triangles.shuffle()
    triangles.connect()
    assert nx.is_connected(as_networkx(triangles, 6))
    lonely = SwapGraph([3, 3, 3, 3, 0, 0], 6, Random(0))
    lonely.connect()
    assert nx.is_connected(as_networkx(lonely, 6))
    forest = SwapGraph([1, 1, 1, 1], 2, Random(0))
    forest.connect()
    assert nx.number_connected_components(as_networkx(forest, 4)) == 2


@pytest.mark.parametrize(
    ("degrees", "num_edges"), [([4, 4, 1, 1, 0], 5), ([0] * 5, 3), ([0] * 5, 10)]
)
def test_the_number_of_edges_is_kept_where_no_graph_has_the_degrees(degrees, num_edges):
    graph = SwapGraph(degrees, num_edges, Random(0))
    assert as_networkx(graph, 5).number_of_edges() == num_edges
