"""Pooled statistics of sets move within their bounds, for all graphs of a few nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.methods.graph_set.pooled_shapes import (
    UNIT,
    SetStatistics,
    place_weights,
    pooled_components,
    pooled_degrees,
    pooled_triangles,
)
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    pooled_component_sensitivity,
    pooled_degree_sensitivity,
    pooled_triangle_sensitivity,
)

BINS = 4


def all_graphs(size):
    """All graphs of some nodes and, for each pair, the same graph with the pair flipped."""
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    present = np.array(list(itertools.product([False, True], repeat=len(pairs))))
    edges = np.concatenate([pairs[row] + size * number for number, row in enumerate(present)])
    places = 2 ** np.arange(len(pairs))[::-1]
    flipped = np.arange(len(present))[:, None] ^ places
    return SetStatistics(edges, np.full(len(present), size)), flipped


@pytest.mark.parametrize("size", [3, 4, 5])
def test_one_edge_moves_pooled_statistics_by_their_sensitivity_at_most(size):
    exact, flipped = all_graphs(size)
    alone = np.arange(len(exact.sizes))  # each graph is a class, so that its share can be read
    ones = np.ones(1, dtype=np.int64)
    triangles = pooled_triangles(exact.triangles(), exact.sizes, alone, len(alone))
    assert abs(triangles[flipped] - triangles[:, None]).max() == pooled_triangle_sensitivity(
        1, UNIT
    )
    largest = exact.largest_components()
    components = np.array([pooled_components(ones * part, ones * size) for part in largest])
    moved = abs(components[flipped] - components[:, None]).max()
    assert moved <= pooled_component_sensitivity(1, UNIT)
    assert moved == 2 * UNIT - 2 * UNIT * ((size + 1) // 2) // size  # a path cut in the middle
    weights = place_weights(exact.sizes, alone, len(alone), BINS)
    degrees = pooled_degrees(
        exact.ordered_degrees(), weights, np.repeat(alone, exact.sizes), len(alone)
    )
    moved = abs(degrees[flipped] - degrees[:, None]).sum(axis=2).max()
    assert moved == pooled_degree_sensitivity(1, UNIT)


def test_edges_that_occur_often_move_all_their_graphs():
    assert pooled_degree_sensitivity(3, 7) == 42
    assert pooled_triangle_sensitivity(3, 7) == pooled_component_sensitivity(3, 7) == 21


def test_statistics_are_those_of_networkx():
    graphs = [nx.gnp_random_graph(n, p, seed=n) for n, p in [(9, 0.5), (1, 0), (14, 0.1), (6, 1)]]
    joined = nx.disjoint_union_all(graphs)
    exact = SetStatistics(np.array(joined.edges), np.array([len(graph) for graph in graphs]))
    assert exact.triangles().tolist() == [sum(nx.triangles(g).values()) // 3 for g in graphs]
    assert exact.largest_components().tolist() == [
        max(map(len, nx.connected_components(g))) for g in graphs
    ]
    assert exact.ordered_degrees().tolist() == [
        d for g in graphs for d in sorted(dict(g.degree).values(), reverse=True)
    ]


def test_places_of_large_graphs_weigh_less_and_none_more_than_a_unit():
    sizes = np.array([1, 5, 9, 4])
    weights = place_weights(sizes, np.array([0, 0, 0, 1]), 2, BINS)
    assert weights.min() >= 0
    totals = weights.sum(axis=1)
    assert totals[1:6].tolist() == [UNIT] * 5  # the smallest of its class that has pairs
    assert totals[6:15].tolist() == [UNIT // 2] * 9  # twice as many possible neighbors
    assert totals[0] == 0  # a node alone has no degree
    # The largest degree has a bin of its own, and three others share the other three bins.
    assert (weights[15:] == UNIT * np.eye(4)).all()
