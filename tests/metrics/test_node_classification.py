"""Networks learn classes from edges where these have them, and from nothing else."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.nn import GCNConv, SGConv

from lightning_dpg.graph.graph import adjacency, make_graph
from lightning_dpg.graph.held_out import split_nodes
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    node_log_probabilities,
    node_scores,
    one_hop,
    scaled,
)
from lightning_dpg.nn.class_student import ClassEvidence, known_classes


@pytest.fixture
def planted():
    """Two groups of 120 nodes that edges tell apart; the attribute of a node is its number."""
    source = torch.Generator().manual_seed(0)
    classes = torch.arange(240) % 2
    pairs = torch.combinations(torch.arange(240))
    rate = torch.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 0.1, 0.005)
    real = make_graph(pairs[torch.rand(len(pairs), generator=source) < rate], 240)
    return real, torch.eye(240), classes


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    for name, network in NETWORKS.items():
        monkeypatch.setitem(NETWORKS, name, network._replace(steps=60))


def log_probabilities(name, graphs, rows, classes, split, seed):
    train, validation = (known_classes(part, classes[part], 2) for part in split[:2])
    return node_log_probabilities(name, graphs, rows, train, validation, split.test, seed)


def scores(name, graph, real, rows, classes, seed=0):
    split = split_nodes(classes, seed)
    own, on_real = log_probabilities(name, [graph, real], rows, classes, split, seed)
    return node_scores(own, classes[split.test], on_real)


@pytest.mark.parametrize("name", NETWORKS)
def test_edges_have_the_classes_and_attributes_do_not(planted, name):
    real, attributes, classes = planted
    empty = make_graph(torch.empty(0, 2), 240)
    rows = scaled(attributes)
    with_edges = scores(name, real, real, rows, classes)
    without = scores(name, empty, real, rows, classes)
    assert with_edges.node_accuracy > 0.9 and with_edges.node_macro_f1 > 0.9
    assert with_edges.node_accuracy == with_edges.node_accuracy_on_real_edges
    assert abs(without.node_accuracy - 0.5) < 0.15


def test_scores_follow_the_seed_and_leave_the_generator_of_the_caller_alone(planted):
    real, attributes, classes = planted
    rows = scaled(attributes)
    first = scores("GCN", real, real, rows, classes)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    assert scores("GCN", real, real, rows, classes) == first
    assert torch.equal(torch.get_rng_state(), state)


def built(name, real, attributes):
    with torch.sparse.check_sparse_tensor_invariants(False):
        return NETWORKS[name].build(scaled(attributes), one_hop(real), 2).eval()


def test_networks_are_those_of_pyg(planted):
    real, attributes, _ = planted
    attributes = attributes[:, :30] + 0.1
    rows = torch.nn.functional.normalize(attributes, p=1)
    nodes = torch.arange(240)
    own = built("SGC", real, attributes)
    theirs = SGConv(30, 2, K=2)
    theirs.lin.load_state_dict(own.layer.state_dict())
    assert torch.allclose(own(nodes), theirs(rows, real.edge_index), atol=1e-5)
    own = built("GCN", real, attributes)
    first, second = GCNConv(30, 16), GCNConv(16, 2)
    for theirs, layer in ((first, own.first), (second, own.second)):
        theirs.load_state_dict({"lin.weight": layer.weight, "bias": layer.bias})
    expected = second(first(rows, real.edge_index).relu(), real.edge_index)
    assert torch.allclose(own(nodes), expected, atol=1e-5)
    expected[0, 0].backward()
    own(nodes)[0, 0].backward()
    assert torch.allclose(own.first.weight.grad, first.lin.weight.grad, atol=1e-6)
    assert torch.allclose(own.second.bias.grad, second.bias.grad)


def test_simple_graph_convolution_learns_as_a_logistic_regression(planted):
    real, attributes, classes = planted
    rows, split = scaled(attributes), split_nodes(classes, 0)
    matrix = adjacency(real).toarray() + np.eye(240)
    scale = matrix.sum(0) ** -0.5
    hop = scale[:, None] * matrix * scale
    propagated = hop @ hop @ attributes.numpy()
    other = LogisticRegression(C=1e4, max_iter=5000)
    other.fit(propagated[split.train], classes[split.train])
    expected = other.score(propagated[split.test], classes[split.test])
    found = scores("SGC", real, real, rows, classes)
    assert found.node_accuracy == pytest.approx(expected, abs=0.1)


def test_training_reads_no_edge_of_another_graph(planted):
    real, attributes, classes = planted
    rows, split = scaled(attributes), split_nodes(classes, 0)
    empty = make_graph(torch.empty(0, 2), 240)
    found = [
        log_probabilities("SGC", [real, other], rows, classes, split, 0)[0]
        for other in (real, empty)
    ]
    assert torch.equal(*found)


def test_reports_are_learned_by_their_likelihood(planted):
    """A quarter of the classes is reported as the other one, and a report is known to be so often wrong."""
    real, attributes, classes = planted
    nodes = torch.arange(240)
    reports = torch.where(torch.isin(nodes % 8, torch.tensor([0, 1])), 1 - classes, classes)
    likely = torch.tensor([[3 / 4, 1 / 4], [1 / 4, 3 / 4]]).double().log()[reports]
    found, believed = (
        node_log_probabilities(
            *("GCN", [real], scaled(attributes), known, known.some(nodes < 0), nodes, 0)
        )[0].exp()
        for known in (ClassEvidence(nodes, likely), known_classes(nodes, reports, 2))
    )
    assert (found.argmax(1) == classes).double().mean() > 0.9
    # What is learned is the class, and not how often it is reported.
    assert found.amax(1).mean() > believed.amax(1).mean() + 0.05


def test_split_is_the_usual_one_and_smaller_on_small_graphs():
    classes = torch.arange(3000) % 7
    classes[:50] = -1
    split = split_nodes(classes, 0)
    assert [len(part) for part in split] == [140, 500, 1000]
    assert torch.bincount(classes[split.train]).tolist() == [20] * 7
    together = torch.cat(list(split))
    assert len(together.unique()) == 1640 and bool((classes[together] >= 0).all())
    assert not torch.equal(split.train, split_nodes(classes, 1).train)
    small = split_nodes(torch.tensor([0] * 9 + [1] * 6 + [2]), 0)
    assert [len(part) for part in small] == [3 + 2 + 1, 3, 7]


def test_attributes_are_scaled_by_columns_and_rows():
    rows = scaled(torch.tensor([[50_000.0, 1, 0, -0.5], [100_000.0, 0, 1, 0], [0, 0, 0, 0]]))
    expected = [[0.25, 0.5, 0, -0.25], [0.5, 0, 0.5, 0], [0, 0, 0, 0]]
    assert torch.allclose(rows.times(torch.eye(4)), torch.tensor(expected))
