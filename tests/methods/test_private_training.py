"""A DP-SGD method of less than 120 lines books, learns, resumes, and refuses."""

import inspect
import math
from functools import partial

import pytest
import torch
from opacus.accountants.utils import get_noise_multiplier
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.optim import Adam, Optimizer

from examples import edge_lstm
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.base import public_backward
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import clipped_gradient_sum
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.degrees import edge_count_sensitivity
from lightning_dpg.privacy.sensitivity.fitting import (
    client_update_sensitivity,
    edge_gradient_sensitivity,
)
from tests.entries import entry
from tests.training import quiet_trainer


class EdgeScorer(Synthesizer):
    """Inner products of node embeddings, learned from edges by DP-SGD.

    The term of an edge reads this edge alone; that of a random pair reads none and is free.

    Args:
        num_nodes: Number of nodes (public).
        num_edges: Number of edges (public).
        width: Width of the embeddings.
        noise_multiplier: Noise over ``max_grad_norm``, or ``auto``.
        max_grad_norm: Clipping norm of one edge's gradient.
        sample_rate: Probability with which a batch holds an edge.
    """

    def __init__(
        self,
        num_nodes: int,
        num_edges: int,
        width: int = 8,
        noise_multiplier: float | str = "auto",
        max_grad_norm: float = 1.0,
        sample_rate: float = 0.1,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.table = nn.Parameter(torch.randn(num_nodes, width) / width)
        self.dpsgd = PrivateTraining(
            "edge_gradient",
            "gradient of edges",
            edge_gradient_sensitivity,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            sample_rate=sample_rate,
        )

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """The steps and nothing else."""
        return self.dpsgd.planned(budget, steps)

    def on_fit_start(self) -> None:
        """Settle the noise."""
        super().on_fit_start()
        self.dpsgd.begin(self)

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step."""
        return [self.dpsgd.entry]

    def configure_optimizers(self) -> Optimizer:
        """Adam."""
        return Adam([self.table], 0.05)

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Pull the ends of edges together, and those of random pairs apart."""
        edges = self.dpsgd.drawn(batch)
        optimizer = self.optimizers()
        optimizer.zero_grad()
        parameters = {"table": self.table}
        size = self.hparams["sample_rate"] * self.hparams["num_edges"]
        self.dpsgd.backward(
            partial(clipped_gradient_sum, edge_loss, parameters),
            parameters,
            (edges,),
            ledger=self.ledger,
            noise=self.noise,
            expected_size=size,
        )
        pairs = torch.randint(len(self.table), (256, 2))
        public_backward(self, -logsigmoid(-self.score(pairs)).mean(), [self.table])
        optimizer.step()

    def score(self, pairs: Tensor) -> Tensor:
        """Inner products of pairs ``(P, 2)``."""
        return self.table[pairs].prod(1).sum(1)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """The likeliest pairs."""
        pairs = torch.combinations(torch.arange(len(self.table)))
        return pairs[self.score(pairs).topk(self.hparams["num_edges"]).indices]

    def released_state(self) -> dict[str, Tensor]:
        """The embeddings."""
        return {"table": self.table.detach()}


def edge_loss(parameters: dict[str, Tensor], edge: Tensor) -> Tensor:
    """Cross entropy of one edge."""
    return -logsigmoid(parameters["table"][edge].prod(0).sum())


def two_blocks(size=24):
    """Two complete blocks, their pairs, and which of them are linked."""
    pairs = torch.combinations(torch.arange(size))
    inside = pairs[:, 0] // (size // 2) == pairs[:, 1] // (size // 2)
    return make_graph(pairs[inside], size), pairs, inside


def fit(method=None, epsilon=4.0, delta=1e-4, checkpoint=None, max_epochs=3, **options):
    graph, _, inside = two_blocks()
    if method is None:
        torch.manual_seed(0)
        method = EdgeScorer(24, int(inside.sum()))
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta), max_epochs=max_epochs, **options)
    trainer.fit(method, EdgeListDataModule(graph), ckpt_path=checkpoint)
    return method


def test_the_method_is_short():
    source = inspect.getsource(EdgeScorer) + inspect.getsource(edge_loss)
    assert len(source.splitlines()) <= 120


def test_ledger_is_the_list_written_by_hand():
    method = fit()
    (read,) = method.ledger.entries
    expected = ("edge_gradient", "gaussian", 1.0, 0.1, 30)
    assert (
        read.key,
        read.event.mechanism,
        read.sensitivity,
        read.event.sample_rate,
        read.steps,
    ) == expected
    assert [read] == method.plan(Budget(4.0, 1e-4), 30)
    # Renyi DP, another accountant, asks for a little more.
    renyi = get_noise_multiplier(
        target_epsilon=4.0, target_delta=1e-4, sample_rate=0.1, steps=30, accountant="rdp"
    )
    assert 0.85 * renyi < read.event.noise_multiplier <= renyi
    assert not method.ledger.affords(*method.step_entries())


def test_the_example_books_what_is_written_by_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "edge-level (3.99" in str(edge_lstm.release())
    method = fit(edge_lstm.EdgeLSTM(24, 132), max_epochs=1)
    (read,) = method.ledger.entries
    assert (read.key, read.proof) == ("edge_gradient", "edge_gradient_sensitivity")
    assert (read.event.mechanism, read.sensitivity, read.record) == (
        "gaussian",
        1.0,
        "undirected edge",
    )
    assert (read.event.sample_rate, read.steps) == (0.1, 10)
    renyi = get_noise_multiplier(
        target_epsilon=4.0, target_delta=1e-4, sample_rate=0.1, steps=10, accountant="rdp"
    )
    assert 0.85 * renyi < read.event.noise_multiplier <= renyi
    assert not {name for name in vars(method.network.out) if "sample" in name}


def test_it_learns():
    _, pairs, inside = two_blocks()
    method = fit(epsilon=math.inf, delta=None, max_epochs=5)
    assert method.ledger.reasons
    scores = method.score(pairs)
    assert (scores[inside][:, None] > scores[~inside]).float().mean() > 0.9


def test_it_resumes_with_the_noise_that_was_settled(tmp_path):
    options = {"default_root_dir": tmp_path, "enable_checkpointing": True}
    first = fit(max_epochs=2, **options)
    checkpoint = first.trainer.checkpoint_callback.best_model_path
    second = fit(checkpoint=checkpoint, max_epochs=3, epsilon=8.0, **options)
    assert [entry.steps for entry in second.ledger.entries] == [30]
    assert second.dpsgd.noise_multiplier == first.dpsgd.noise_multiplier
    third = EdgeScorer(24, 132, noise_multiplier=5.0)
    # The journal in the folder knows of the ten steps of the second run.
    with pytest.raises(Refusal, match="30 steps had noise_multiplier"):
        fit(third, checkpoint=checkpoint, max_epochs=3, epsilon=8.0, **options)
    assert [entry.steps for entry in third.ledger.entries] == [30]


def test_a_number_as_noise_ends_the_run_where_the_budget_does():
    method = EdgeScorer(24, 132, noise_multiplier=1.0)
    (planned,) = method.plan(Budget(2.0, 1e-4), 500)
    fit(method, epsilon=2.0, max_epochs=50)
    assert 0 < method.ledger.steps == planned.steps < 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_multiplier": 0.05}, "does not pay for"),
        ({"noise_multiplier": 0.0}, "noise_multiplier: 0 protects nothing"),
    ],
)
def test_it_refuses_and_books_nothing(options, message):
    method = EdgeScorer(24, 132, **options)
    with pytest.raises(MisconfigurationException, match=message):
        fit(method)
    assert not method.ledger.entries


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_multiplier": -1.0}, "auto, or 0 or more, got -1"),
        ({"noise_multiplier": float("nan")}, "auto, or 0 or more, got nan"),
        ({"max_grad_norm": 0.0}, "max_grad_norm must be positive"),
        ({"sample_rate": 0.0}, r"must lie in \(0, 1\], got 0"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EdgeScorer(24, 132, **options)


def test_batches_of_another_rate_are_refused():
    with pytest.raises(ValueError, match=r"drawn at 0\.2, booked at 0\.1"):
        EdgeScorer(24, 132).training_step(PoissonBatch(torch.zeros(0, 2).long(), 0.2), 0)


def federated(noise_multiplier="auto"):
    """Rounds of federated averaging: clipped updates times a weight of at most a quarter."""
    return PrivateTraining(
        "client_updates",
        "sum of client updates",
        client_update_sensitivity,
        0.25,
        noise_multiplier=noise_multiplier,
        max_grad_norm=2.0,
        relation=Relation.LOCAL_GRAPH,
    )


def test_noise_follows_the_sensitivity_and_not_the_clipping_norm():
    rounds, ledger = federated(3.0), PrivacyLedger(Relation.LOCAL_GRAPH)
    rounds.noise_multiplier.fill_(3.0)
    weights = nn.Parameter(torch.zeros(20_000))
    asked = []

    def clipped_sum(updates, norm):
        asked.append((len(updates), norm))
        return {"weights": torch.full((20_000,), 1e-4 * len(updates), dtype=torch.double)}

    noise = NoiseSource(unsafe_seed=1)
    rounds.backward(
        clipped_sum,
        {"weights": weights},
        torch.zeros(5, 20_000),
        ledger=ledger,
        noise=noise,
        expected_size=1.0,
    )
    # The trial: 4 made-up updates, none, and each alone. Then the step.
    assert asked == [(count, 2.0) for count in (4, 0, 1, 1, 1, 1, 5)]
    # 2 S w = 1 is the sensitivity, so that 3 is the standard deviation.
    assert float(weights.grad.std()) == pytest.approx(3.0, rel=0.03)
    (read,) = ledger.entries
    assert (read.sensitivity, read.event.noise_multiplier, read.record) == (
        1.0,
        3.0,
        rounds.entry.record,
    )


def test_other_releases_are_paid_for_beside_the_rounds():
    budget = Budget(2.0, 1e-5)
    count = entry(
        "pure",
        name="count",
        relation=Relation.LOCAL_GRAPH,
        sensitivity=edge_count_sensitivity(),
        proof="edge_count_sensitivity",
        epsilon=1.5,
    )
    (alone,), (beside,) = (federated().planned(budget, 8, other) for other in ([], [count]))
    assert alone.steps == beside.steps == 8
    assert beside.event.noise_multiplier > 1.5 * alone.event.noise_multiplier
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
    ledger.budget = budget
    assert ledger.affords(count, beside)
    assert federated().planned(budget, 0) == []
