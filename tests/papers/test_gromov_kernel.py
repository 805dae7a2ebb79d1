"""Discrepancies equal POT's, and a stopped run continues from its folder."""

import math

import networkx as nx
import numpy as np
import ot
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.methods import GromovKernel
from tests.training import quiet_trainer


def labelled(features):
    graphs = []
    for size in range(5, 10):
        for label, kind in enumerate((nx.path_graph, nx.cycle_graph)):
            graphs.append(from_networkx(kind(size)))
            graphs[-1].y = torch.tensor([label])
            if features:
                graphs[-1].x = torch.arange(2.0 * size).view(size, 2)
    return graphs


def fit(folder, graphs, **options):
    method = GromovKernel(**options)
    trainer = quiet_trainer(PrivacyAccountant(math.inf, 1e-5), default_root_dir=folder)
    trainer.fit(method, TUGraphDataModule(graphs))
    return method


def hops(graph):
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return np.array([[float(lengths[i][j]) for j in graph] for i in graph])


@pytest.mark.parametrize("fused", [False, True])
def test_discrepancies_are_those_of_pot(fused, tmp_path):
    method = fit(tmp_path, labelled(fused), fused=fused)
    path, cycle = hops(nx.path_graph(6)), hops(nx.cycle_graph(8))
    if fused:
        x, y = np.arange(12.0).reshape(6, 2), np.arange(16.0).reshape(8, 2)
        expected = ot.gromov.fused_gromov_wasserstein2(ot.dist(x, y), path, cycle)
    else:
        expected = ot.gromov.gromov_wasserstein2(path, cycle)
    assert float(method.discrepancies[2, 7]) == pytest.approx(expected, abs=1e-8)
    assert math.isinf(method.ledger.epsilon(1e-5))
    for kernel in method.kernels(method.embedding, method.sizes):
        assert np.linalg.eigvalsh(kernel).min() > -1e-9


def test_a_run_of_the_same_folder_knows_them(tmp_path, monkeypatch):
    first = fit(tmp_path, labelled(False))
    monkeypatch.setattr("lightning_dpg.papers.jin2022.gromov.gromov_discrepancy", None)
    assert torch.equal(fit(tmp_path, labelled(False)).discrepancies, first.discrepancies)


def test_fused_asks_for_features(tmp_path):
    with pytest.raises(MisconfigurationException, match="there are none"):
        fit(tmp_path, labelled(False), fused=True)
