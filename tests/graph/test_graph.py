"""Graphs are simple and undirected, and components keep names, features and classes."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import graph as graph_module
from lightning_dpg.graph.graph import (
    adjacency,
    are_edges,
    component_labels,
    count_common,
    distinct_edges,
    largest_component,
    make_graph,
    renumber,
    undirected_edges,
)


@pytest.fixture
def graph():
    pairs = torch.tensor([[3, 1], [1, 3], [0, 1], [0, 1], [2, 2], [4, 5]])
    return make_graph(pairs, 7, list("abcdefg"))


def test_merges_orientations_and_drops_loops(graph):
    expected = [[0, 1, 1, 3, 4, 5], [1, 0, 3, 1, 5, 4]]
    assert graph.edge_index.tolist() == expected
    assert graph.num_nodes == 7 and graph.node_names == list("abcdefg")
    assert undirected_edges(graph).tolist() == [[0, 1], [1, 3], [4, 5]]
    assert make_graph(graph.edge_index.T, 7).node_names == list("0123456")


def test_adjacency_is_that_of_networkx():
    other = nx.gnm_random_graph(40, 100, seed=1)
    other.add_nodes_from([40, 41])
    graph = make_graph(torch.tensor(list(other.edges)), 42)
    np.testing.assert_array_equal(adjacency(graph).toarray(), nx.to_numpy_array(other))


def test_largest_component_keeps_names_features_and_classes(graph):
    graph.x, graph.y = torch.arange(14.0).view(7, 2), torch.arange(7)
    component = largest_component(graph)
    assert component.node_names == ["a", "b", "d"]
    assert undirected_edges(component).tolist() == [[0, 1], [1, 2]]
    assert component.x.tolist() == [[0, 1], [2, 3], [6, 7]] and component.y.tolist() == [0, 1, 3]


def test_graph_without_edges():
    graph = make_graph(torch.empty(0, 2, dtype=torch.long), 3)
    assert graph.num_edges == 0 and undirected_edges(graph).shape == (0, 2)
    assert largest_component(graph).node_names == ["0"]


@pytest.mark.parametrize(
    ("edges", "names", "message"),
    [
        ([[0, 3]], None, "from 0 to 2"),
        ([[-1, 2]], None, "from 0 to 2"),
        ([[0, 1, 2]], None, "shape"),
        ([[0, 1]], ["a", "b"], "3 names"),
        ([[0, 1]], ["a", "b", "a"], "'a' occurs twice"),
    ],
)
def test_refuses(edges, names, message):
    with pytest.raises(ValueError, match=message):
        make_graph(torch.tensor(edges), 3, names)


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_edges_are_found_and_compared_in_blocks(block, monkeypatch):
    monkeypatch.setattr(graph_module, "_BLOCK", block)
    one, other = (nx.gnm_random_graph(20, 40, seed=seed) for seed in (0, 1))
    first, second = np.divmod(np.arange(400), 20)
    graphs = [make_graph(torch.tensor(list(each.edges)), 20) for each in (one, other)]
    found = are_edges(graphs[0], first, second)
    assert found.tolist() == [one.has_edge(*pair) for pair in zip(first, second, strict=True)]
    assert count_common(*graphs) == len(nx.intersection(one, other).edges)
    nothing = make_graph(torch.empty(0, 2).long(), 20)
    assert count_common(graphs[0], nothing) == count_common(nothing, graphs[0]) == 0
    assert not are_edges(nothing, first, second).any()


@given(
    st.sampled_from([3, 2**20]),
    st.sampled_from([torch.int32, torch.int64]),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))),
    st.permutations(range(6)),
)
def test_edges_are_listed_once_and_renumbered_in_place(block, dtype, pairs, numbers):
    ordered = {(a, b) for a, b in pairs if a != b}
    once = {(min(pair), max(pair)) for pair in ordered}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_module, "_BLOCK", block)
        edges = distinct_edges(torch.tensor(pairs, dtype=dtype).view(-1, 2), 6)
        assert edges.dtype == torch.int64
        assert [*map(tuple, edges.tolist())] == sorted(once)
        directed = torch.tensor(sorted(ordered)).long().view(-1, 2)
        for is_directed, rows, old in ((False, edges, once), (True, directed, ordered)):
            renumber(rows, torch.tensor(numbers), is_directed=is_directed)
            new = [(numbers[a], numbers[b]) for a, b in old]
            new = new if is_directed else [(min(pair), max(pair)) for pair in new]
            assert [*map(tuple, rows.tolist())] == sorted(new)


def test_components_are_those_of_networkx():
    graph = nx.gnm_random_graph(60, 40, seed=0)
    labels = component_labels(make_graph(torch.tensor(list(graph.edges)), 60))
    parts = {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}
    assert parts == {frozenset(part) for part in nx.connected_components(graph)}
