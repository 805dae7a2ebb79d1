"""Chung-Lu releases degrees only."""

import math

import networkx as nx
import pytest
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import ErdosRenyi
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.privacy.ledger import Budget
from tests.graphs import edges_of
from tests.training import quiet_trainer, release_edges


def test_a_further_epoch_of_a_resumed_run_releases_nothing_again(tmp_path):
    runs = []
    for epochs in (1, 2):
        trainer = quiet_trainer(
            PrivacyAccountant(2.0, 0.0),
            max_epochs=epochs,
            default_root_dir=tmp_path,
            enable_checkpointing=True,
        )
        runs.append(ErdosRenyi(num_nodes=77))
        (checkpoint,) = list(tmp_path.rglob("*.ckpt")) or [None]
        trainer.fit(runs[-1], EdgeListDataModule("les_miserables"), ckpt_path=checkpoint)
    assert trainer.global_step == 2
    assert runs[0].ledger.entries == runs[1].ledger.entries
    assert runs[0].num_edges == runs[1].num_edges


def test_all_sets_of_pairs_are_equally_likely():
    method = ErdosRenyi(num_nodes=4)
    method.num_edges.fill_(2)
    generator = torch.Generator().manual_seed(0)
    seen = [str(method.sample_edges(generator).tolist()) for _ in range(1500)]
    counts = [seen.count(graph) for graph in set(seen)]
    assert len(counts) == 15  # pairs of the six pairs
    assert max(counts) < 150 and min(counts) > 60  # 100 each, sd 9.7


@pytest.mark.parametrize("epsilon", [1e-6, math.inf])
def test_any_budget_leaves_a_possible_number_of_edges(epsilon):
    method = ErdosRenyi(num_nodes=5)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, torch.tensor([[0, 1], [2, 3]]))
    assert 0 <= int(method.num_edges) <= 10
    assert epsilon < 1 or int(method.num_edges) == 2
    assert method.score(torch.tensor([[0, 1], [1, 2]])).tolist() == [0, 0]


def released(graph, epsilon, **options):
    method = ChungLu(graph.number_of_nodes(), **options)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, edges_of(graph))
    return method


def draw(method, seed=0):
    return method.sample_edges(torch.Generator().manual_seed(seed))


def test_expected_degrees_are_met_without_noise():
    graph = nx.barabasi_albert_graph(200, 3, seed=0)
    method = released(graph, math.inf)
    runs = 20
    mean = sum(torch.bincount(draw(method, s).flatten(), minlength=200) for s in range(runs)) / runs
    true = torch.tensor([d for _, d in graph.degree()])
    assert len(draw(method)) == graph.number_of_edges()
    # Fewer than one in a thousand Poisson means lie further off.
    assert ((mean - true).abs() < 4 * (true / runs).sqrt() + 0.1).all()


def test_score_is_the_product_of_degrees():
    method = released(nx.star_graph(5), math.inf)
    assert method.score(torch.tensor([[0, 1], [1, 2]])).tolist() == [5, 1]
