"""Networks learn classes from edges where these have them, and from nothing else."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.nn import SGConv

from lightning_dpg.graph.graph import adjacency, make_graph
from lightning_dpg.graph.node_splits import split_nodes
from lightning_dpg.metrics import node_classification
from lightning_dpg.metrics.node_classification import NETWORKS, node_scores, scaled


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


@pytest.mark.parametrize("name", NETWORKS)
def test_edges_have_the_classes_and_attributes_do_not(planted, name):
    real, attributes, classes = planted
    empty = make_graph(torch.empty(0, 2), 240)
    rows = scaled(attributes)
    with_edges = node_scores(name, real, real, rows, classes, 0)
    without = node_scores(name, empty, real, rows, classes, 0)
    assert with_edges.node_accuracy > 0.9 and with_edges.node_macro_f1 > 0.9
    assert with_edges.node_accuracy == with_edges.node_accuracy_on_real_edges
    assert abs(without.node_accuracy - 0.5) < 0.15


def test_scores_follow_the_seed_and_leave_the_generator_of_the_caller_alone(planted):
    real, attributes, classes = planted
    first = node_scores("GCN", real, real, attributes, classes, 0)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    assert node_scores("GCN", real, real, attributes, classes, 0) == first
    assert torch.equal(torch.get_rng_state(), state)


def test_simple_graph_convolution_is_a_logistic_regression_on_propagated_attributes(planted):
    real, attributes, classes = planted
    rows = scaled(attributes)
    split = split_nodes(classes, 0)
    matrix = adjacency(real).toarray() + np.eye(240)
    scale = matrix.sum(0) ** -0.5
    hop = scale[:, None] * matrix * scale
    propagated = hop @ hop @ rows.numpy()
    with torch.sparse.check_sparse_tensor_invariants(False):
        model = NETWORKS["SGC"].build(rows, node_classification._sparse(adjacency(real)), 2)
    theirs = SGConv(240, 2, K=2)
    theirs.lin.load_state_dict(model.layer.state_dict())
    weight, bias = (part.detach().numpy() for part in model.layer.parameters())
    logits = model(split.test).detach()
    assert torch.allclose(logits, theirs(rows, real.edge_index)[split.test], atol=1e-5)
    assert np.allclose(logits, (propagated @ weight.T + bias)[split.test], atol=1e-5)
    other = LogisticRegression(C=1e4, max_iter=5000)
    other.fit(propagated[split.train], classes[split.train])
    expected = other.score(propagated[split.test], classes[split.test])
    found = node_scores("SGC", real, real, rows, classes, 0)
    assert found.node_accuracy == pytest.approx(expected, abs=0.1)


def test_training_reads_no_class_of_the_test_and_no_real_edge(planted):
    real, attributes, classes = planted
    rows, split = scaled(attributes), split_nodes(classes, 0)
    hidden = classes.clone()
    hidden[split.test] = 1 - hidden[split.test]
    empty = make_graph(torch.empty(0, 2), 240)
    found, other = (node_scores("SGC", real, given, rows, classes, 0) for given in (empty, real))
    assert found.node_accuracy == other.node_accuracy
    matrix = node_classification._sparse(adjacency(real))
    weights = []
    for given in (classes, hidden):
        torch.manual_seed(0)
        with torch.sparse.check_sparse_tensor_invariants(False):
            model = NETWORKS["SGC"].build(rows, matrix, 2)
            node_classification._train(model, NETWORKS["SGC"], given, split)
        weights.append(model.layer.weight)
    assert torch.equal(*weights)


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
    assert torch.allclose(rows, torch.tensor(expected))
