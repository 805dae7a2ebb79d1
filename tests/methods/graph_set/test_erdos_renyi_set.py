"""Erdos-Renyi on sets spends the budget once, and all sets of pairs are equally likely."""

import math

import networkx as nx
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.datamodules.subgraph import SubgraphDataModule
from lightning_dpg.methods.graph_set.erdos_renyi_set import ErdosRenyiSet
from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import LedgerEntry, Relation
from tests.training import quiet_trainer

GRAPHS = [nx.gnm_random_graph(12, 30, seed=1), nx.path_graph(9), nx.complete_graph(5)]


def fit(folder, method, data, epsilon, **kwargs):
    trainer = quiet_trainer(
        *([] if epsilon is None else [PrivacyAccountant(epsilon, 0.0)]),
        default_root_dir=folder,
        enable_checkpointing=True,
    )
    trainer.fit(method, data, **kwargs)
    return trainer


def test_one_step_spends_the_budget_on_the_numbers_of_edges(tmp_path):
    method = ErdosRenyiSet()
    trainer = fit(tmp_path, method, GraphSetDataModule(GRAPHS), 2.0)
    assert trainer.global_step == 1
    entry = LedgerEntry(
        key="num_edges_per_graph",
        name="number of edges of each graph",
        relation=Relation.EDGE,
        sensitivity=1,
        proof="edges_per_graph_sensitivity",
        event=Pure(2.0),
    )
    assert method.ledger.entries == [entry]
    # A resumed run has released already, and its budget has nothing left.
    resumed = ErdosRenyiSet()
    checkpoint = trainer.checkpoint_callback.best_model_path
    fit(tmp_path, resumed, GraphSetDataModule(GRAPHS), 2.0, ckpt_path=checkpoint)
    assert resumed.ledger.entries == [entry]
    assert torch.equal(resumed.num_edges, method.num_edges)


def test_without_noise_the_numbers_of_edges_are_right(tmp_path):
    method = ErdosRenyiSet()
    fit(tmp_path, method, GraphSetDataModule(GRAPHS), math.inf)
    drawn = method.sample_set(torch.Generator().manual_seed(0))
    assert [graph.num_edges // 2 for graph in drawn] == [30, 8, 10]
    assert [graph.num_nodes for graph in drawn] == [12, 9, 5]


def test_all_sets_of_pairs_are_equally_likely():
    method, generator = ErdosRenyiSet(), torch.Generator().manual_seed(0)
    seen = [str(method.draw(4, 2, generator).tolist()) for _ in range(1500)]
    counts = [seen.count(graph) for graph in set(seen)]
    assert len(counts) == 15  # pairs of the six pairs
    assert max(counts) < 150 and min(counts) > 60  # 100 each, sd 9.7


def test_edges_that_occur_often_cost_more_noise(tmp_path):
    method = ErdosRenyiSet()
    fit(tmp_path, method, SubgraphDataModule(size=40, max_occurrences=4), 3.0)
    assert [(e.sensitivity, e.event.epsilon) for e in method.ledger.entries] == [(4, 3.0)]


def test_a_budget_is_asked_for(tmp_path):
    with pytest.raises(MisconfigurationException, match="has no PrivacyAccountant"):
        fit(tmp_path, ErdosRenyiSet(), GraphSetDataModule(GRAPHS), None)
