"""Local prototypes are the nearest ones by Gromov-Wasserstein objectives of a fixed coupling."""

import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import GraphSetDataModule
from lightning_dpg.graph.io import from_networkx
from lightning_dpg.methods import LocalPrototypes
from lightning_dpg.methods.graph_features.local_reports.prototypes import (
    PROTOTYPES,
    half_densities,
)
from tests.training import quiet_trainer


def objective(graph, prototype):
    """The discrepancy at the coupling by ranks of degrees, from its four sums."""
    order = sorted(graph, key=lambda node: -graph.degree(node))
    c, size = nx.to_numpy_array(graph, nodelist=order), len(graph)
    coupling = np.zeros((size, 2))
    for rank in range(size):
        coupling[rank, 0] = min(max(size / 2 - rank, 0), 1) / size
        coupling[rank, 1] = 1 / size - coupling[rank, 0]
    d = np.array(prototype)
    squares = (c[:, :, None, None] - d[None, None]) ** 2  # i, k, j, l
    return np.einsum("ikjl,ij,kl->", squares, coupling, coupling)


def test_the_reported_prototype_has_the_smaller_discrepancy():
    graphs = [nx.gnp_random_graph(4 + k % 9, 0.2 + 0.05 * (k % 16), seed=k) for k in range(32)]
    graphs += [nx.complete_graph(6), nx.star_graph(6), nx.empty_graph(1)]
    union = nx.disjoint_union_all(graphs)
    sizes = torch.tensor([len(graph) for graph in graphs])
    graph_of = torch.arange(len(graphs)).repeat_interleave(sizes)
    found = LocalPrototypes().client_values(torch.tensor(list(union.edges)), graph_of, sizes)
    expected = [np.argmin([objective(graph, one) for one in PROTOTYPES]) for graph in graphs]
    assert found.flatten().tolist() == expected
    assert set(expected) == {0, 1}


def test_halves_of_a_star_by_hand():
    edges = torch.tensor([[0, 1], [0, 2]])  # center 0, of the three nodes 1 is in both halves
    found = half_densities(edges, torch.zeros(3, dtype=torch.long), torch.tensor([3]))
    # Upper: node 0 and half of 1. Lower: node 2 and half of 1. Each has the mass 1.5.
    expected = torch.tensor([[[1.0, 1.5], [1.5, 0.0]]], dtype=torch.double) / 2.25
    torch.testing.assert_close(found, expected)


def test_bits_are_true_as_often_as_randomized_response_says():
    graphs = [from_networkx(nx.complete_graph(4)) for _ in range(2000)]
    for graph in graphs:
        graph.y = torch.tensor([0])
    pl.seed_everything(0, verbose=False)
    method, data = LocalPrototypes(), GraphSetDataModule(graphs)
    quiet_trainer(PrivacyAccountant(2.0, 0.0)).fit(method, data)
    (entry,) = method.ledger.entries
    assert (entry.mechanism, entry.epsilon, entry.relation) == ("pure", 2.0, "local_graph")
    counts = Counter(method.law(method.budget).reports_of(method.features).flatten().tolist())
    rate = math.exp(2) / (1 + math.exp(2))
    assert counts[1] / 2000 == pytest.approx(rate, abs=5 * math.sqrt(rate * (1 - rate) / 2000))
