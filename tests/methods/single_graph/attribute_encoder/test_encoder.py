"""AttributeEncoder: its ledger by hand, its noise, what it learns, resumes and restores."""

import math

import pytest
import torch
from opacus.accountants.utils import get_noise_multiplier
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods.single_graph.attribute_encoder import AttributeEncoder
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.nn.attribute_logits import degree_levels
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.attributed import AttributedDataModule, attributed_graph
from tests.training import quiet_trainer

DELTA = 1e-5
SMALL = {"rank": 6, "public_pairs": 64}


def fit(method, data=None, epsilon=2.0, checkpoint=None, **options):
    trainer = quiet_trainer(PrivacyAccountant(epsilon, DELTA), **options)
    data = AttributedDataModule(*attributed_graph()) if data is None else data
    trainer.fit(method, data, ckpt_path=checkpoint)
    return method


def auc(score, graph, seed=0):
    edges, num_nodes = undirected_edges(graph), graph.num_nodes
    pairs = torch.combinations(torch.arange(num_nodes))
    linked = torch.isin(pairs @ torch.tensor([num_nodes, 1]), edges @ torch.tensor([num_nodes, 1]))
    return link_prediction(score(pairs[linked]), score(pairs[~linked]))[0]


def test_the_ledger_is_the_list_written_by_hand():
    torch.manual_seed(0)
    method = fit(AttributeEncoder(**SMALL))
    entries = method.ledger.entries
    assert [entry.key for entry in entries] == [
        "num_edges",
        "ordered_degrees",
        "degrees",
        "attribute_gradient",
    ]
    assert [entry.proof for entry in entries] == [
        "edge_count_sensitivity",
        "degree_l1_sensitivity",
        "degree_l1_sensitivity",
        "edge_gradient_sensitivity",
    ]
    assert [entry.event.pure_epsilon for entry in entries[:3]] == pytest.approx([0.08, 0.08, 0.24])
    assert [entry.sensitivity for entry in entries] == [1, 2, 2, 1.0]
    steps = entries[3]
    assert (steps.event.mechanism, steps.event.sample_rate, steps.steps) == ("gaussian", 0.1, 200)
    assert all(entry.relation == Relation.EDGE for entry in entries)
    assert entries == method.plan(Budget(2.0, DELTA), 1)
    # Another accountant, and the degrees added to it instead of composed with it, needs more noise.
    separate = get_noise_multiplier(
        target_epsilon=1.6, target_delta=DELTA, sample_rate=0.1, steps=200, accountant="rdp"
    )
    assert 0.7 * separate < steps.event.noise_multiplier < separate
    assert not method.ledger.affords(*method.step_entries())
    assert "the node attributes, which were not computed from the edges" in method.assumptions


def test_the_noise_of_a_step_has_the_booked_scale():
    # Without an edge a noisy sum is noise alone.
    data = AttributedDataModule(make_graph(torch.empty(0, 2).long(), 30), attributed_graph(30)[1])
    method = AttributeEncoder(**SMALL, noise_multiplier=3.0, max_grad_norm=0.5, iterations=60)
    seen = []
    method.ledger.observer = lambda key, noisy: seen.append((key, noisy))
    torch.manual_seed(0)
    fit(method, data, epsilon=50.0)
    sums = torch.stack([noisy for key, noisy in seen if key == "attribute_gradient"])
    assert sums.shape == (60, 6 * 6 + 1)
    assert float(sums.std()) == pytest.approx(3.0 * 0.5, rel=0.06)  # 4 standard errors
    assert abs(float(sums.mean())) < 0.13


def test_it_learns_more_than_attributes_tell():
    # Half of the words are the same in two groups that have no links with each other.
    graph, attributes = attributed_graph()
    attributes = torch.cat([attributes, 2 * torch.rand(120, 40).round()], 1)
    data = AttributedDataModule(graph, attributes)
    torch.manual_seed(0)
    untrained = fit(AttributeEncoder(rank=20, iterations=0), data, epsilon=math.inf)
    torch.manual_seed(0)
    trained = fit(AttributeEncoder(rank=20), data, epsilon=math.inf)
    assert auc(trained.score, graph) > auc(untrained.score, graph) + 0.02
    # New nodes have mean degree levels.
    pairs = torch.tensor([[0, 6], [0, 1], [2, 8]])
    unseen = trained.score_attributes(attributes[pairs[:, 0]], attributes[pairs[:, 1]])
    rows, levels = trained.features(attributes)[pairs], torch.zeros(3, 2)
    torch.testing.assert_close(unseen, trained.averaged(rows, levels))


def test_the_released_weights_are_means_of_the_second_half():
    method, weights = AttributeEncoder(**SMALL, iterations=10), []
    step = method.training_step

    def followed(batch, batch_idx):
        step(batch, batch_idx)
        weights.append(method.model.weight.detach().clone())

    method.training_step = followed
    fit(method)
    assert len(weights) == 10
    torch.testing.assert_close(
        method.averaged.module.weight.detach(), torch.stack(weights[5:]).mean(0)
    )


def test_a_release_scores_and_draws_as_the_method_does():
    torch.manual_seed(0)
    method = fit(AttributeEncoder(**SMALL, iterations=5))
    restored = AttributeEncoder(num_nodes=120, **SMALL)
    restored.load_released_state(method.released_state())
    pairs = torch.combinations(torch.arange(120))
    torch.testing.assert_close(restored.score(pairs), method.score(pairs))
    drawn = [m.sample_edges(torch.Generator().manual_seed(3)) for m in (method, restored)]
    assert torch.equal(*drawn)
    assert len(drawn[0]) == int(method.num_edges)
    found = torch.bincount(drawn[0].flatten(), minlength=120)
    assert torch.corrcoef(torch.stack([found, method.degrees]).double())[0, 1] > 0.8


def test_a_resumed_run_goes_on_with_its_rows_degrees_and_noise(tmp_path):
    data = AttributedDataModule(*attributed_graph(), steps_per_epoch=5)
    keep = ModelCheckpoint(tmp_path / "kept", "{epoch}", save_top_k=-1)
    whole = AttributeEncoder(**SMALL, iterations=20)
    trainer = quiet_trainer(
        PrivacyAccountant(2.0, DELTA),
        keep,
        max_epochs=4,
        enable_checkpointing=True,
        default_root_dir=tmp_path / "first",
    )
    trainer.fit(whole, data)
    resumed = AttributeEncoder(**SMALL, iterations=20)
    # Without the journal of the first run, which booked the later steps as well.
    accountant = PrivacyAccountant(2.0, DELTA, lost_steps=0)
    trainer = quiet_trainer(accountant, max_epochs=4)
    trainer.fit(resumed, data, ckpt_path=tmp_path / "kept" / "epoch=1.ckpt")
    assert resumed.ledger.entries == whole.ledger.entries
    assert resumed.ledger.steps == 20
    assert torch.equal(resumed.degrees, whole.degrees)
    assert torch.equal(resumed.rows, whole.rows)
    assert int(resumed.averaged.n_averaged) == 10


def test_no_step_spends_on_the_degrees_alone_and_scores_by_cosines_and_degrees():
    method = fit(AttributeEncoder(**SMALL, iterations=0))
    keys = ["num_edges", "ordered_degrees", "degrees"]
    assert [entry.key for entry in method.ledger.entries] == keys
    assert method.ledger.entries == method.plan(Budget(2.0, DELTA), 1)
    pairs = torch.combinations(torch.arange(120))
    cosines, levels = method.rows[pairs].prod(1).sum(1), degree_levels(method.degrees)[pairs].sum(1)
    torch.testing.assert_close(method.score(pairs), 8 * cosines + levels / 2 - 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degree_share": 1.0}, r"degree_share must be in \(0, 1\)"),
        ({"iterations": -1}, "iterations must be 0 or more"),
        ({"rank": 0}, "rank must be 1 or more"),
    ],
)
def test_it_refuses_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AttributeEncoder(**settings)


def test_it_refuses_data_without_attributes():
    method = AttributeEncoder(**SMALL)
    with pytest.raises(MisconfigurationException, match="ttribute"):
        fit(method, EdgeListDataModule(attributed_graph()[0]))
    assert not method.ledger.entries
