"""Local scalars are the statistics of the graphs, spend their budget once, and predict labels."""

import math

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import GraphSetDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import LocalScalars
from lightning_dpg.methods.local_scalars import graph_scalars
from tests.training import quiet_trainer

BOTH = ("density", "transitivity")


def labelled(count=20):
    """Cycles and complete graphs of five to nine nodes, by turns."""
    graphs = []
    for number in range(count):
        for label, kind in enumerate((nx.cycle_graph, nx.complete_graph)):
            graphs.append(from_networkx(kind(5 + number % 5)))
            graphs[-1].y = torch.tensor([label])
    return graphs


def fitted(graphs, epsilon, statistics=("density",)):
    pl.seed_everything(0, verbose=False)
    method, data = LocalScalars(statistics), GraphSetDataModule(graphs)
    quiet_trainer(PrivacyAccountant(epsilon, 0.0 if math.isfinite(epsilon) else 1e-5)).fit(
        method, data
    )
    return method, data


def test_statistics_are_those_of_networkx():
    graphs = [nx.gnp_random_graph(3 + k, 0.4, seed=k) for k in range(12)]
    graphs += [nx.empty_graph(1), nx.empty_graph(4), nx.path_graph(2), nx.star_graph(5)]
    union = nx.disjoint_union_all(graphs)
    sizes = torch.tensor([len(graph) for graph in graphs])
    graph_of = torch.arange(len(graphs)).repeat_interleave(sizes)
    found = graph_scalars(BOTH, torch.tensor(list(union.edges)), graph_of, sizes)
    expected = [[nx.density(graph), nx.transitivity(graph)] for graph in graphs]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.double))


def test_a_fit_releases_estimates_near_the_statistics():
    graphs = labelled()
    method, _ = fitted(graphs, 40.0, BOTH)
    (entry,) = method.ledger.entries
    assert (entry.relation, entry.event.mechanism) == ("local_graph", "pure")
    assert (entry.event.epsilon, entry.sensitivity, method.ledger.epsilon(0.0)) == (40.0, 2, 40.0)
    exact, _ = fitted(graphs, math.inf, BOTH)
    np.testing.assert_allclose(method.features, exact.features, atol=0.01)
    assert not exact.ledger.entries[0].event.protects
    assert "the number of nodes of each graph" in method.assumptions


def test_estimates_predict_what_sizes_do_not():
    method, _ = fitted(labelled(), 16.0)
    assert method.accuracy(folds=3, repetitions=1).mean > 0.9
    sizes = method.kernels({"features": torch.zeros_like(method.features)}, method.sizes)
    method.kernels = lambda embedding, of: sizes
    assert method.accuracy(folds=3, repetitions=1).mean < 0.7


def test_two_statistics_have_half_of_the_epsilon_each():
    method, _ = fitted(labelled(80), 2.0, BOTH)
    root = math.exp(1 / 2)
    complete = method.features[method.labels == 1]  # both statistics are 1
    variance = (1 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)) / 4
    assert complete.var().item() == pytest.approx(variance, rel=0.4)


@pytest.mark.parametrize("statistics", [(), ("density", "density"), ("diameter",)])
def test_unknown_statistics_are_refused(statistics):
    with pytest.raises(ValueError, match="density, transitivity"):
        LocalScalars(statistics)


def test_an_attacker_finds_an_edge_of_a_tiny_graph_at_a_large_epsilon():
    """The second node pair is the whole graph: its density is 0 or 1."""
    graphs = [make_graph(torch.tensor([[0, 1]]), 2), make_graph(torch.empty(0, 2).long(), 2)]
    for graph in graphs:
        graph.y = torch.tensor([0])
    method, data = fitted(graphs, 12.0)
    pairs = torch.tensor([[0, 1], [2, 3]])
    known = make_graph(torch.empty(0, 2).long(), 4)
    scores = black_box_score(method, data, pairs, known)
    assert scores.tolist() == pytest.approx([12.0, -12.0], rel=1e-3)
