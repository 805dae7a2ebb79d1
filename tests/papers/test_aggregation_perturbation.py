"""GAP: its sums by hand, the paper's count, what trains when, and why its node level is not built."""

import math

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch.nn.functional import normalize

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.methods import AggregationPerturbation
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.release.statement import privacy_statement
from tests.closed_forms import gaussian_sigma
from tests.training import quiet_trainer

SMALL = {"rank": 16, "encoder_steps": 30, "classifier_steps": 30}
TRUTH = torch.arange(200) // 50  # of the built-in graph, which shows 20 classes of each community


def data_module(**settings):
    return EdgeListDataModule("planted_classes", nodes=Nodes(attributes="from_graph"), **settings)


def fitted(epsilon, observer=None, trainer=None, **settings):
    pl.seed_everything(0, verbose=False)
    module, data = AggregationPerturbation(**SMALL | settings), data_module()
    module.ledger.observer = observer
    trainer = trainer or quiet_trainer(PrivacyAccountant(epsilon, 1e-5))
    trainer.fit(module, data)
    return module, data.records


def dense(records):
    return torch.from_numpy(adjacency(records.graph).toarray()).double()


def encoded(module, records):
    """Rows of the encoder as it is at the end: the classifier's steps must not have changed it."""
    with torch.no_grad():
        return module.eval().encoder.encode(module.features(records.attributes)).double()


def test_sums_are_those_of_the_encoded_rows_with_noise_of_its_scale():
    seen = {}
    module, records = fitted(1.0, lambda key, noisy: seen.setdefault(key, noisy))
    rows, edges = encoded(module, records), dense(records)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(200).double())
    first, second = seen["neighbor_sums_1"], seen["neighbor_sums_2"]
    # Both hops have the same part of the budget, and one undirected edge moves each by the root of 2.
    scale = 2 * gaussian_sigma(1.0, 1e-5)
    for noise in (first - edges @ rows, second - edges @ normalize(first)):
        # Four standard deviations of the estimate of one.
        assert float(noise.std()) == pytest.approx(scale, rel=4 / (2 * noise.numel()) ** 0.5)
    assert torch.equal(module.sums, torch.cat([first, second], 1).float())


def test_without_noise_the_sums_are_exact_and_neighbors_tell_classes():
    module, records = fitted(math.inf)
    rows, edges = encoded(module, records), dense(records)
    first = edges @ rows
    expected = torch.cat([first, edges @ normalize(first)], 1)
    torch.testing.assert_close(module.sums.double(), expected, rtol=1e-5, atol=1e-5)
    unknown = module.known_labels() < 0
    right = [
        float((found.argmax(1) == TRUTH)[unknown].float().mean())
        for found in (module.node_posteriors(), module.predict_proba(records.attributes))
    ]
    assert right[0] > max(0.9, right[1] + 0.1)
    assert module.claimed_epsilon(1e-5) is None


@pytest.mark.parametrize(
    ("printed", "true"), [(0.25, 0.36), (0.5, 0.73), (1, 1.47), (2, 2.95), (4, 5.99)]
)
def test_the_authors_code_prints_less_than_an_undirected_edge_costs(printed, true):
    """Their noise for K hops has the multiplier sigma at a sensitivity of 1, and ours at sqrt(2)."""
    module = AggregationPerturbation(hops=2)
    sigma = gaussian_sigma(printed, 1e-5)
    least = next(
        epsilon
        for epsilon in np.arange(printed, 2 * printed, 1e-3)
        if gaussian_sigma(epsilon, 1e-5) <= sigma / math.sqrt(2)
    )
    assert least == pytest.approx(true, abs=0.006)
    budget = Budget(float(least), 1e-5)
    module.accept_budget(budget)
    for entry in module.plan(budget, 1):
        module.ledger.spend(entry)
    assert module.claimed_epsilon(1e-5) == pytest.approx(printed, rel=2e-3)


def test_a_statement_has_both_counts_and_says_which_one_is_proved():
    module, _ = fitted(1.47, encoder_steps=1, classifier_steps=1)
    statement = privacy_statement(module)
    assert (statement["mode"], statement["epsilon"]) == ("plain", 1.47)
    assert statement["claimed_epsilon"] == pytest.approx(1, abs=0.005)
    assert "(1.47, 1e-05)-DP (add/remove one undirected edge)" in statement["guarantee"]


def test_new_nodes_are_predicted_without_any_edge(tmp_path):
    short = {"rank": 4, "encoder_steps": 3, "classifier_steps": 3}
    release = dpg.fit(data_module(), AggregationPerturbation, epsilon=4.0, **short)
    again = dpg.open_release(release.save(tmp_path / "out"))
    new = np.eye(32)[:5]
    assert np.array_equal(again.predict_proba(new), release.predict_proba(new))
    assert np.array_equal(again.predict_proba(), release.predict_proba())
    with pytest.raises(CommandError, match="draws no graph"):
        again.sample()
    public, _ = fitted(1e-3, **short)  # all sums are noise
    other, _ = fitted(math.inf, **short)
    attributes = torch.from_numpy(new)
    assert torch.equal(public.predict_proba(attributes), other.predict_proba(attributes))
    assert not torch.equal(public.node_posteriors(), other.node_posteriors())


class StopsAfter(pl.Callback):
    """Ends a run after its first epoch, and keeps a checkpoint."""

    def __init__(self, path):
        self.path = path

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.save_checkpoint(self.path)
        trainer.should_stop = True


@pytest.mark.parametrize("stopped_at", [3, 6], ids=["before the release", "after it"])
def test_a_resumed_run_releases_once(stopped_at, tmp_path):
    def run(*callbacks, **options):
        module = AggregationPerturbation(rank=4, encoder_steps=4, classifier_steps=5)
        accountant = PrivacyAccountant(1.0, 1e-5, lost_steps=0 if options else None)
        trainer = quiet_trainer(accountant, *callbacks, max_epochs=4)
        trainer.fit(module, data_module(steps_per_epoch=stopped_at), **options)
        return module, trainer.global_step

    stopped, _ = run(StopsAfter(tmp_path / "run.ckpt"))
    assert len(stopped.ledger.entries) == (2 if stopped_at > 4 else 0)
    module, steps = run(ckpt_path=tmp_path / "run.ckpt")
    assert steps == 9
    assert [entry.steps for entry in module.ledger.entries] == [1, 1]
    assert torch.equal(module.sums, stopped.sums) == (stopped_at > 4)
    assert len(module.node_posteriors()) == 200


def test_a_run_of_no_step_releases_an_untrained_method():
    trainer = quiet_trainer(PrivacyAccountant(1.0, 1e-5), max_steps=0)
    module, _ = fitted(1.0, trainer=trainer)
    assert len(module.ledger.entries) == 2
    assert module.node_posteriors().shape == (200, 4)


# Why the node level of the paper is not built. "BoundOutDegree" keeps D random neighbors of each node,
# to which it sends its row, and the noise is for a sensitivity of sqrt(D): without a node of D neighbors,
# D rows are 1 less. But the neighbors of this node, the hubs, then send to others in its place.

D = 4


def kept(neighbors, turn):
    """D of some neighbors: one of the equally likely choices of a node."""
    return [neighbors[(turn + k) % len(neighbors)] for k in range(min(D, len(neighbors)))]


def sampled_sums(graph, rows, turns):
    """Sums of the rows that each node receives, where each node keeps D of its neighbors."""
    sums = torch.zeros_like(rows)
    for node, neighbors in graph.items():
        for other in kept(neighbors, turns[node]):
            sums[other] += rows[node]
    return sums


def hubs_of_one_node(count):
    """Node 0, linked to hubs, each of which has D neighbors of its own."""
    graph = {0: list(range(1, count + 1))}
    for hub in graph[0]:
        leaves = [count + D * (hub - 1) + k for k in range(1, D + 1)]
        graph[hub] = [0, *leaves]
        graph |= {leaf: [hub] for leaf in leaves}
    return graph


def without_node_0(graph):
    return {node: [n for n in neighbors if n] for node, neighbors in graph.items() if node}


@pytest.mark.parametrize(("count", "moved"), [(10, 3.46), (40, 6.0), (160, 11.49)])
def test_the_papers_bound_on_degrees_does_not_bound_what_a_node_moves(count, moved):
    """A node that the sampling needs not change keeps its choice, which is best for the paper."""
    graph = hubs_of_one_node(count)
    rows = torch.zeros(len(graph), 1)
    rows[: count + 1] = 1.0
    # Of the choices of a hub, D in D + 1 have node 0. Hubs take them in turn.
    turns = {node: node % (D + 1) for node in graph}
    difference = sampled_sums(graph, rows, turns) - sampled_sums(without_node_0(graph), rows, turns)
    others = float(difference[1:].norm())
    assert others == pytest.approx(moved, abs=0.01)
    assert others == pytest.approx(math.sqrt(D * count / (D + 1) + D))
    assert others > 1.7 * math.sqrt(D)  # of which the paper's noise is a multiple


def test_no_coupling_of_the_papers_samples_saves_its_bound():
    """Even the means are farther apart, and no pair of samples has a smaller mean distance."""
    count = 160
    graph = hubs_of_one_node(count)
    rows = torch.zeros(len(graph), 1)
    rows[1 : count + 1] = 1.0
    means = []
    for one in (graph, without_node_0(graph)):
        # The choices of a hub are equally likely, so a mean over turns is that of all samples.
        each = [sampled_sums(one, rows, dict.fromkeys(one, turn)) for turn in range(D + 1)]
        means.append(torch.stack(each).mean(0))
    apart = float((means[0] - means[1])[1:].norm())
    assert apart == pytest.approx(math.sqrt(D * count) / (D + 1))
    assert apart > 2.5 * math.sqrt(D)
