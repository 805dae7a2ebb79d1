"""Graph kernels equal counts by hand and GraKeL."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.datamodules.tu import TUGraphDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import kernel_svm
from lightning_dpg.metrics.kernel_svm import (
    node_labels,
    shortest_path_kernel,
    weisfeiler_lehman_kernel,
)


@st.composite
def labeled_sets(draw):
    """A few small graphs of networkx, with labels 0, 1, 2 of their nodes."""
    graphs = []
    for _ in range(draw(st.integers(1, 4))):
        seed = draw(st.integers(0, 2**32 - 1))
        graph = nx.gnp_random_graph(1 + seed % 9, draw(st.sampled_from([0.0, 0.2, 0.5])), seed=seed)
        labels = np.random.default_rng(seed).integers(3, size=len(graph)).tolist()
        nx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        graphs.append(graph)
    return graphs


def converted(graphs):
    """The graphs as ours, with their labels as columns of ``x`` after an attribute."""
    found = []
    for graph in graphs:
        labels = torch.tensor([graph.nodes[node].get("label", 0) for node in graph])
        columns = torch.nn.functional.one_hot(labels, 3).float()
        found.append(make_graph(torch.tensor(list(graph.edges)).view(-1, 2), len(graph)))
        found[-1].x = torch.cat([torch.rand(len(graph), 1), columns], dim=1)
    return found


def cosines(counters):
    def inner(first, second):
        return sum(first[key] * second[key] for key in first)

    norms = [inner(counter, counter) ** 0.5 or 1 for counter in counters]
    return [
        [inner(a, b) / (m * n) for b, n in zip(counters, norms, strict=True)]
        for a, m in zip(counters, norms, strict=True)
    ]


def path_counter(graph, labelled):
    return Counter(
        (length, *((graph.nodes[i]["label"], graph.nodes[j]["label"]) if labelled else ()))
        for i, lengths in nx.all_pairs_shortest_path_length(graph)
        for j, length in lengths.items()
        if i != j
    )


def color_counter(graph, iterations, labelled):
    """Colors spelled out: that of a node holds its own and its neighbors' colors before."""
    colors = {i: graph.nodes[i]["label"] if labelled else graph.degree[i] for i in graph}
    counter = Counter(map(repr, colors.values()))
    for _ in range(iterations):
        colors = {i: (colors[i], sorted((colors[j] for j in graph[i]), key=repr)) for i in graph}
        counter.update(map(repr, colors.values()))
    return counter


@settings(max_examples=40)
@given(labeled_sets(), st.booleans())
def test_shortest_paths_are_those_of_networkx(graphs, labelled):
    expected = cosines([path_counter(graph, labelled) for graph in graphs])
    np.testing.assert_allclose(
        shortest_path_kernel(converted(graphs), labelled=labelled), expected, atol=1e-12
    )


@settings(max_examples=40)
@given(labeled_sets(), st.booleans(), st.integers(0, 3))
def test_colors_are_those_spelled_out(graphs, labelled, iterations):
    expected = cosines([color_counter(graph, iterations, labelled) for graph in graphs])
    found = weisfeiler_lehman_kernel(converted(graphs), iterations, labelled=labelled)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_paths_of_more_nodes_than_are_measured_at_a_time():
    graphs = [from_networkx(graph) for graph in (nx.star_graph(650), nx.path_graph(2))]
    # The hub is next to 650 leaves, of which each is next to it and two away from 649 others.
    near, far = 2 * 650, 650 * 649
    expected = near / (near**2 + far**2) ** 0.5
    assert shortest_path_kernel(graphs)[0, 1] == pytest.approx(expected)


def test_labels_are_the_columns_of_zeros_and_ones():
    graphs = converted([nx.path_graph(3), nx.path_graph(2)])
    for graph, labels in zip(graphs, ([0, 2, 0], [1, 2]), strict=True):
        graph.x[:, 1:] = torch.eye(3)[labels]
    first, second, third, fourth, fifth = node_labels(graphs)
    assert first == third and second == fifth
    assert sorted([first, second, fourth]) == [0, 1, 2]
    for graph in graphs:
        graph.x = graph.x[:, :1] + 2
    with pytest.raises(ValueError, match="no column"):
        shortest_path_kernel(graphs, labelled=True)
    graphs[1].x = None
    with pytest.raises(ValueError, match="no node features"):
        weisfeiler_lehman_kernel(graphs, labelled=True)


@pytest.mark.parametrize("kernel", [shortest_path_kernel, weisfeiler_lehman_kernel])
def test_refuses_more_graphs_than_pairs_fit(kernel, monkeypatch):
    monkeypatch.setattr(kernel_svm, "MAX_GRAPHS", 2)
    with pytest.raises(ValueError, match="3 graphs, more than the 2"):
        kernel([from_networkx(nx.path_graph(2))] * 3)


@pytest.mark.parametrize(
    ("name", "labelled"), [("MUTAG", False), ("MUTAG", True), ("IMDB-BINARY", False)]
)
def test_kernels_of_real_sets_are_those_of_grakel(data_root, name, labelled):
    grakel = pytest.importorskip("grakel")
    data = TUGraphDataModule(name)
    data.setup("fit")
    graphs = data.graphs[:60]
    numbers = iter(node_labels(graphs).tolist() if labelled else [])
    paths, colors = [], []
    for graph in graphs:
        links = set(map(tuple, graph.edge_index.T.tolist()))
        degrees = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).tolist()
        labels = dict(enumerate([next(numbers) for _ in degrees] if labelled else degrees))
        paths.append(grakel.Graph(links, node_labels=labels))
        colors.append(grakel.Graph(links, node_labels=labels))
    theirs = grakel.ShortestPath(normalize=True, with_labels=labelled).fit_transform(paths)
    np.testing.assert_allclose(shortest_path_kernel(graphs, labelled=labelled), theirs, atol=1e-9)
    theirs = grakel.WeisfeilerLehman(n_iter=4, normalize=True).fit_transform(colors)
    ours = weisfeiler_lehman_kernel(graphs, 4, labelled=labelled)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
