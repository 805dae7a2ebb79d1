"""Rewired graphs are simple, keep their degrees, and reach triangles and connection."""

from random import Random

import networkx as nx
import pytest

from lightning_dpg.graph.swaps import SwapGraph


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
