"""CELL learns communities, states that nothing is private, and refuses large graphs."""

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import CELL
from lightning_dpg.metrics.functional import edge_overlap, triangles
from tests.training import quiet_trainer


def fit(method, data, folder, epsilon, steps):
    trainer = quiet_trainer(
        PrivacyAccountant(epsilon, 1e-6),
        max_epochs=steps,
        default_root_dir=folder,
    )
    trainer.fit(method, data)
    return trainer


def test_it_learns_communities_and_says_that_nothing_is_private(tmp_path):
    pl.seed_everything(0)
    graph = nx.planted_partition_graph(5, 30, 0.3, 0.01, seed=0)
    data = EdgeListDataModule(graph)
    method = CELL(num_nodes=150, rank=5)
    trainer = fit(method, data, tmp_path, float("inf"), 40)
    assert trainer.global_step == 40
    assert method.ledger.reasons == ["training: CELL adds no noise"]
    sample = method.sample(torch.Generator().manual_seed(0))
    assert sample.num_edges == 2 * graph.number_of_edges()
    community = torch.arange(150) // 30
    rows, columns = sample.edge_index
    assert float((community[rows] == community[columns]).float().mean()) > 0.7  # .87 there
    assert triangles(sample) > 0.3 * sum(nx.triangles(graph).values()) / 3
    assert edge_overlap(sample, data.train_graph) < 0.9
    assert int(torch.bincount(rows, minlength=150).min()) > 0
    fresh = CELL(num_nodes=150, rank=5)
    fresh.load_released_state(method.released_state())
    again = fresh.sample(torch.Generator().manual_seed(0))
    assert torch.equal(again.edge_index, sample.edge_index)


def test_too_many_nodes_are_refused():
    with pytest.raises(MisconfigurationException, match="at most 6000, got 6001"):
        CELL(num_nodes=6001)
