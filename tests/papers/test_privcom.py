"""PrivCom books its events, finds communities, and a resumed run pays nothing twice."""

import math

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.sparse.linalg import eigsh
from torch import nn

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import adjacency, undirected_edges
from lightning_dpg.methods import (
    KatzPrivCom,
    PrivCom,
    PrivComAsPublished,
    RandomizedResponsePrivCom,
)
from lightning_dpg.metrics.communities import normalized_mutual_information
from lightning_dpg.papers.zhang2020.power_method import Oja, orthonormal
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.release.statement import privacy_statement
from tests.training import quiet_trainer


def turned(matrix, rank, momentum, steps):
    generator = torch.Generator().manual_seed(0)
    basis = nn.Parameter(orthonormal(torch.randn(len(matrix), rank, generator=generator).double()))
    optimizer = Oja([basis], momentum)
    for _ in range(steps):
        basis.grad = matrix @ basis.detach()
        optimizer.step()
    return basis.detach(), optimizer


def with_values(values, seed=0):
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    return torch.from_numpy(vectors * values @ vectors.T), torch.from_numpy(vectors)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_finds_the_leading_eigenvectors_in_their_order(momentum):
    matrix, vectors = with_values(np.array([9.0, 6, 3, 1, 0.5, 0, -0.5, -1]))
    basis, _ = turned(matrix, 3, momentum, 100)
    assert (basis.T @ vectors[:, :3]).abs().numpy() == pytest.approx(np.eye(3), abs=1e-2)


def test_momentum_passes_over_an_eigenvalue_that_is_larger_but_negative():
    matrix, vectors = with_values(np.array([5.0, 1, 0, 0, 0, -6]))
    for momentum, place in ((0.0, 5), (0.9, 0)):
        basis, _ = turned(matrix, 1, momentum, 150)
        assert float(basis[:, 0] @ vectors[:, place]) ** 2 == pytest.approx(1, abs=1e-3)


def test_a_step_is_the_decomposition_of_the_mean_of_products():
    basis = nn.Parameter(torch.eye(4, 2).double())
    optimizer, total = Oja([basis], 0.5), np.zeros((4, 2))
    for seed in range(3):
        basis.grad = torch.randn(4, 2, generator=torch.Generator().manual_seed(seed)).double()
        total = 0.5 * total + basis.grad.numpy()
        optimizer.step()
        expected = np.linalg.cholesky(total.T @ total)  # R, whose diagonal is positive
        assert (basis.detach().numpy() @ expected.T) == pytest.approx(total)


def test_its_state_resumes():
    matrix, _ = with_values(np.array([9.0, 6, 3, 1]))
    whole, _ = turned(matrix, 2, 0.9, 7)
    part, optimizer = turned(matrix, 2, 0.9, 4)
    basis = nn.Parameter(part)
    again = Oja([basis], 0.9)
    again.load_state_dict(optimizer.state_dict())
    for _ in range(3):
        basis.grad = matrix @ basis.detach()
        again.step()
    assert torch.equal(basis.detach(), whole)


@pytest.mark.parametrize("momentum", [-0.1, 1.0])
def test_refuses_a_momentum_that_forgets_nothing(momentum):
    with pytest.raises(ValueError, match="momentum"):
        Oja([nn.Parameter(torch.eye(2))], momentum)


KARATE = from_networkx(nx.karate_club_graph())


def planted(sizes, inside, outside):
    table = np.full((len(sizes), len(sizes)), outside)
    np.fill_diagonal(table, inside)
    return from_networkx(nx.stochastic_block_model(sizes, table, seed=0))


def fit(graph, epsilon=8.0, delta=1e-5, max_epochs=1, run=None, make=PrivCom, **options):
    """Fit; ``run`` are a folder for checkpoints, one to resume from, and a callback."""
    folder, checkpoint, *callbacks = run or (None, None)
    if folder is not None:
        callbacks.append(ModelCheckpoint(every_n_train_steps=8))
    trainer = quiet_trainer(
        *callbacks,
        PrivacyAccountant(epsilon, delta),
        max_epochs=max_epochs,
        default_root_dir=folder,
        enable_checkpointing=folder is not None,
    )
    method = make(num_nodes=graph.num_nodes, **options)
    method._noise = NoiseSource(unsafe_seed=0)
    trainer.fit(method, EdgeListDataModule(graph), ckpt_path=checkpoint)
    return method


def booked(method):
    return [(e.name, e.event.mechanism, e.proof, e.steps) for e in method.ledger.entries]


def leading(graph, rank):
    return torch.from_numpy(eigsh(adjacency(graph), k=rank, which="LA")[1].copy())


def overlap(method, graph):
    rank = method.vectors.shape[1]
    return float((leading(graph, rank).T @ method.vectors.detach()).square().sum()) / rank


def test_noise_of_the_products_has_its_standard_deviation():
    graph, scaled = planted([100, 100], 0.3, 0.02), []
    matrix = torch.from_numpy(adjacency(graph).toarray())

    class Observer(pl.Callback):
        def on_fit_start(self, trainer, pl_module):
            def observer(key, value):
                if key == "products":
                    shown = pl_module.shown_block()
                    longest = shown.norm(dim=1).sort().values[-2:].norm()
                    scaled.append((value - matrix @ shown).flatten() / longest)

            pl_module.ledger.observer = observer

    method = fit(graph, 1.0, iterations=60, run=(None, None, Observer()))
    scaled = torch.cat(scaled) / float(method.noise_multipliers[0])
    assert len(scaled) == 60 * 800
    assert float(scaled.std()) == pytest.approx(1, abs=0.01)
    assert abs(float(scaled.mean())) < 4 / len(scaled) ** 0.5


@pytest.mark.parametrize("make", [PrivCom, RandomizedResponsePrivCom])
def test_without_noise_it_has_the_eigenvectors_and_draws_the_communities(make):
    graph = planted([150, 100, 50], 0.4, 0.02)
    method = fit(graph, math.inf, None, make=make, rank=3)
    assert method.ledger.reasons
    assert overlap(method, graph) > 0.98
    assert int(method.num_edges) == graph.num_edges // 2
    sample = method.sample(torch.Generator().manual_seed(0))
    assert sample.num_edges == graph.num_edges
    block = np.repeat(np.arange(3), [150, 100, 50])
    inside = [block[e[:, 0]] == block[e[:, 1]] for e in map(undirected_edges, (graph, sample))]
    assert inside[1].mean() == pytest.approx(inside[0].mean(), abs=0.1)
    pairs = torch.tensor([[0, 1], [160, 170], [0, 160], [170, 290]])
    scores = method.score(pairs)
    assert scores[:2].min() > 2 * scores[2:].max()


@pytest.mark.parametrize(("make", "least"), [(PrivCom, 0.8), (RandomizedResponsePrivCom, 0.7)])
def test_planted_communities_are_found_within_a_small_budget(make, least):
    graph = planted([300, 300], 0.2, 0.02)
    method = fit(graph, 1.5, 1e-5, make=make, rank=2)
    assert overlap(method, graph) > least
    labels = (method.vectors.detach()[:, 1] > 0).numpy().astype(int)
    assert normalized_mutual_information(labels, np.repeat([0, 1], 300)) > 0.5


def test_rayleigh_values_tell_eigenvectors_from_noise():
    graph = planted([150, 150], 0.3, 0.02)
    method = fit(graph, 8.0, rank=6)
    values = method.signs * method.rows.square().sum(dim=0)
    true = eigsh(adjacency(graph), k=2, which="LA")[0]
    assert values[:2].numpy() == pytest.approx(true[::-1], rel=0.1)
    assert values[2:].abs().max() < 0.5 * values[1]


class Stop(pl.Callback):
    """Ends a run as the end of an epoch, or as a crash in the middle of one."""

    def __init__(self, step, crashes):
        self.step, self.crashes = step, crashes

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if pl_module.steps_made == self.step:
            trainer.should_stop = True
            if self.crashes:
                raise InterruptedError


KATZ = {"make": KatzPrivCom, "max_degree": 20}
PUBLISHED = {"make": PrivComAsPublished}


@pytest.mark.parametrize("options", [{}, KATZ, PUBLISHED])
def test_a_resumed_run_goes_on_and_pays_nothing_twice(tmp_path, options):
    stopped = fit(KARATE, run=(tmp_path, None, Stop(16, False)), **options)
    assert (int(stopped.steps_made), bool(stopped.is_released)) == (16, False)
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    resumed = fit(KARATE, run=(tmp_path / "2", checkpoint), **options)
    assert booked(resumed) == booked(fit(KARATE, **options))
    assert (int(resumed.steps_made), bool(resumed.is_released)) == (24, True)
    assert int(resumed.num_edges) == int(stopped.num_edges)
    # The momentum went on, too: it is a part of the checkpoint.
    saved = torch.load(checkpoint, weights_only=True)["optimizer_states"][0]["state"]
    assert bool(saved) == (options != PUBLISHED)


def test_what_a_killed_run_has_spent_after_its_checkpoint_is_not_spent_again(tmp_path):
    with pytest.raises(InterruptedError):
        fit(KARATE, run=(tmp_path, None, Stop(19, True)))
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    resumed = fit(KARATE, run=(tmp_path, checkpoint))
    # Of 24 steps 19 were made, 16 of which the checkpoint knows: five are left.
    assert int(resumed.steps_made) == 21
    assert [steps for *_, steps in booked(resumed)] == [1, 1, 1, 24, 1]
    assert bool(resumed.is_released)
    assert resumed.ledger.delta(8.0) <= 1e-5


def test_a_finished_run_is_not_run_again(tmp_path):
    whole = fit(KARATE, run=(tmp_path, None))
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    again = fit(KARATE, max_epochs=2, run=(tmp_path, checkpoint))
    assert booked(again) == booked(whole)
    assert torch.equal(again.vectors, whole.vectors)


def test_a_trainer_that_ends_before_the_last_step_is_refused_before_anything_is_spent():
    method = PrivCom(34, iterations=24)
    trainer = quiet_trainer(PrivacyAccountant(2.0, 1e-5), max_steps=5)
    with pytest.raises(MisconfigurationException, match="makes 24 steps"):
        trainer.fit(method, EdgeListDataModule(KARATE))
    assert not method.ledger.entries


def test_the_bound_on_degrees_is_stated_as_a_condition():
    method = fit(KARATE, 4.0, make=KatzPrivCom, max_degree=17)
    method._noise = NoiseSource()
    statement = privacy_statement(method)
    assert "restricted" in " ".join(statement["assumptions"])
    condition = "no node has more than 17 edges, in this graph and its neighbors"
    assert (statement["conditional"], statement["condition"]) == (True, condition)
    assert f"-DP if {condition} (add/remove one" in statement["guarantee"]


def test_a_node_of_more_than_max_degree_is_refused_before_anything_is_spent():
    method = KatzPrivCom(num_nodes=34, max_degree=16)
    data = EdgeListDataModule(KARATE)
    trainer = quiet_trainer(PrivacyAccountant(1.0, 1e-5))
    with pytest.raises(MisconfigurationException, match="max_degree 16") as error:
        trainer.fit(method, data)
    assert "17" not in str(error.value)  # its degree
    assert not method.ledger.entries


def test_with_hops_eigenvalues_are_those_of_the_adjacency_matrix():
    graph = planted([40, 40], 0.6, 0.05)
    degree = int(adjacency(graph).sum(axis=0).max())
    settings = {"rank": 2, "hops": 2, "max_degree": degree, "clip": 10.0, "iterations": 100}
    method = fit(graph, 1e6, 1e-5, make=KatzPrivCom, **settings)
    assert booked(method)[3:] == [
        ("products", "gaussian", "katz_sensitivity", 100),
        ("eigenvalues", "gaussian", "katz_sensitivity", 1),
    ]
    true = eigsh(adjacency(graph), k=2, which="LA")[0][::-1]
    assert method.rows.square().sum(dim=0).numpy() == pytest.approx(true, rel=0.05)
    assert overlap(method, graph) > 0.95


def test_as_published_it_is_private_and_prints_that_nothing_is_left():
    with pytest.warns(UserWarning, match="far below 1 noise alone decides"):
        method = fit(KARATE, 1.5, make=PrivComAsPublished, rank=10, hops=2, iterations=10)
    assert booked(method) == [
        ("products", "gaussian", "paper_sensitivity", 10),
        ("eigenvalues", "gaussian", "paper_sensitivity", 10),
    ]
    # Both spend equal parts of the budget by the textbook's formula.
    sigma = math.sqrt(2 * math.log(1.25 / (1e-5 / 20))) / (1.5 / 20)
    multipliers = [e.event.noise_multiplier for e in method.ledger.entries]
    assert multipliers == pytest.approx([sigma, sigma])
    assert method.claimed_epsilon(1e-5) == 1.5
    assert method.ledger.epsilon(1e-5) < 0.5  # the exact composition of so much noise
    assert any("exact number of edges" in text for text in method.assumptions)
    sample = method.sample(torch.Generator().manual_seed(0))
    assert 0 < sample.num_edges <= 2 * 78
    assert method.score(torch.tensor([[0, 1], [2, 3]])).isfinite().all()


def test_its_signal_to_noise_ratio_is_that_of_the_complete_graph():
    method = PrivComAsPublished(50, rank=3, hops=1)
    complete = (1 - np.eye(50)) * method.matrix.decay
    strongest = np.linalg.eigvalsh(complete + complete @ complete + complete @ complete @ complete)
    ratio = strongest.max() / (2.0 * (math.sqrt(50) + math.sqrt(3)))
    assert method.matrix.signal_to_noise(49, 50, 3, 2.0) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (PrivCom, {"rank": 0}, "rank must be"),
        (PrivCom, {"rank": 35}, "rank must be"),
        (PrivCom, {"num_nodes": None}, "num_nodes is needed"),
        (KatzPrivCom, {"max_degree": 0}, "max_degree"),
        (KatzPrivCom, {"max_degree": 5, "hops": 0}, "PrivCom has none"),
        (RandomizedResponsePrivCom, {"num_nodes": 100_001}, "at most 100000"),
    ],
)
def test_refuses_what_does_not_fit(make, options, message):
    with pytest.raises((ValueError, MisconfigurationException), match=message) as error:
        make(**{"num_nodes": 34} | options)
    assert len(str(error.value).splitlines()) <= 5
