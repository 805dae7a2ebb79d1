"""Erdos-Renyi spends the budget once, and all sets of pairs are equally likely."""

import math

import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import ErdosRenyi
from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, Relation
from tests.training import quiet_trainer, release_edges


def trainer(folder, *callbacks):
    return quiet_trainer(*callbacks, default_root_dir=folder, enable_checkpointing=True)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A method fitted to 254 edges, and its checkpoint."""
    method, data = ErdosRenyi(num_nodes=77), EdgeListDataModule("les_miserables")
    fit = trainer(tmp_path_factory.mktemp("run"), PrivacyAccountant(2.0, 0.0))
    fit.fit(method, data)
    return method, fit


def test_one_step_spends_the_budget_on_the_number_of_edges(fitted):
    method, fit = fitted
    assert fit.global_step == 1
    assert method.ledger.entries == [
        LedgerEntry(
            key="num_edges",
            name="number of edges",
            relation=Relation.EDGE,
            sensitivity=1,
            proof="edge_count_sensitivity",
            event=Pure(2.0),
        )
    ]
    assert method.ledger.epsilon(0.0) == 2.0
    assert abs(int(method.num_edges) - 254) < 40  # scale 1/2: further off once in 10^34


def test_checkpoint_and_released_state_restore_it(fitted, tmp_path):
    method, fit = fitted
    checkpoint = fit.checkpoint_callback.best_model_path
    loaded = ErdosRenyi.load_from_checkpoint(checkpoint)
    fresh = ErdosRenyi(num_nodes=77)
    fresh.load_released_state(method.released_state())
    draws = [m.sample_edges(torch.Generator().manual_seed(3)) for m in (method, loaded, fresh)]
    assert torch.equal(draws[0], draws[1]) and torch.equal(draws[0], draws[2])
    assert len(draws[0]) == int(method.num_edges)
    # A resumed run has released already, and its budget has nothing left.
    resumed = ErdosRenyi(num_nodes=77)
    trainer(tmp_path, PrivacyAccountant(2.0, 0.0)).fit(
        resumed, EdgeListDataModule("les_miserables"), ckpt_path=checkpoint
    )
    assert resumed.ledger.entries == method.ledger.entries
    assert resumed.num_edges == method.num_edges


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


def test_a_budget_is_asked_for(tmp_path):
    method = ErdosRenyi(num_nodes=77)
    with pytest.raises(MisconfigurationException, match="has no PrivacyAccountant"):
        trainer(tmp_path).fit(method, EdgeListDataModule("les_miserables"))
    with pytest.raises(MisconfigurationException, match="needs a budget"):
        _ = method.budget
