"""Queries of directed and bipartite graphs, against networkx and counting by hand."""

import math
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs
from lightning_dpg.metrics.queries import (
    butterflies,
    compare_kinds,
    num_directed_edges,
    part_degrees,
    reciprocity,
)


def random_edges(space, count, seed=0):
    nothing = torch.empty(0, 2, dtype=torch.long)
    return space.draw(nothing, count, torch.Generator().manual_seed(seed))


def test_reciprocity_is_that_of_networkx():
    space = DirectedPairs(12)
    edges = random_edges(space, 60)
    graph = space.graph(edges)
    assert reciprocity(graph) == pytest.approx(nx.overall_reciprocity(nx.DiGraph(edges.tolist())))
    assert num_directed_edges(graph) == 60
    assert math.isnan(reciprocity(space.graph(edges[:0])))


@pytest.mark.parametrize("num_left", [4, 12])
def test_butterflies_are_cycles_of_four(num_left):
    space = BipartitePairs(16, num_left)
    edges = random_edges(space, 30)
    neighbors = [{j for i, j in edges.tolist() if i == node} for node in range(num_left)]
    counted = sum(math.comb(len(a & b), 2) for a, b in combinations(neighbors, 2))
    assert butterflies(space.graph(edges)) == counted > 0


@pytest.mark.parametrize("space", [DirectedPairs(9), BipartitePairs(11, 4)], ids=lambda s: s.kind)
def test_degree_distributions_are_of_each_part(space):
    edges = random_edges(space, 20)
    graph = space.graph(edges)
    nodes = [range(9), range(9)] if space.kind == "directed" else [range(4), range(4, 11)]
    for part in (0, 1):
        degrees = [(edges[:, part] == node).sum().item() for node in nodes[part]]
        assert part_degrees(graph, part).tolist() == np.bincount(degrees).tolist()
    answers = compare_kinds(graph, graph)
    assert {name: answer.score for name, answer in answers.items()} == dict.fromkeys(answers, 0.0)
    other = compare_kinds(graph, space.graph(random_edges(space, 20, seed=1)))
    assert all(answer.score >= 0 for answer in other.values())


def test_nodes_that_one_graph_lacks_have_no_edge_there():
    # Of the real graph c is no sender, and d has no edge; of the synthetic one a has none.
    real = DirectedPairs(3).graph(torch.tensor([[0, 1], [1, 2], [0, 2]]), ["a", "b", "c"])
    synthetic = DirectedPairs(3).graph(torch.tensor([[0, 1], [1, 0], [1, 2]]), ["b", "d", "c"])
    out = compare_kinds(real, synthetic)["out_degree_distribution_kl"].score
    # Out-degrees 2, 1, 0, 0 against 0, 1, 0, 2, and in-degrees 0, 1, 2, 0 against 0, 1, 1, 1
    assert out == pytest.approx(0, abs=1e-9)
    into = compare_kinds(real, synthetic)["in_degree_distribution_kl"].score
    expected = 0.5 * math.log(2) + 0.25 * math.log(1 / 3) + 0.25 * math.log(2**50)
    assert into == pytest.approx(expected)
    # The left node c and the right nodes y and z are without an edge in one of the graphs.
    real = BipartitePairs(4, 2).graph(torch.tensor([[0, 2], [1, 2], [1, 3]]), ["a", "b", "x", "y"])
    synthetic = BipartitePairs(5, 3).graph(
        torch.tensor([[0, 3], [1, 4], [2, 4]]), ["a", "b", "c", "x", "z"]
    )
    answers = compare_kinds(real, synthetic)
    left = answers["left_degree_distribution_kl"].score
    # Left degrees 1, 2, 0 against 1, 1, 1, and right ones 2, 1, 0 against 1, 0, 2
    assert left == pytest.approx((math.log(1 / 3) + 2 * math.log(2**52 / 3)) / 3, abs=1e-6)
    assert answers["right_degree_distribution_kl"].score == pytest.approx(0, abs=1e-9)
