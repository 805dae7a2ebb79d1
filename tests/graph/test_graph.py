"""Graphs are simple and undirected, and components keep names, features and classes."""

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.graph.graph import adjacency, largest_component, make_graph, undirected_edges


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
