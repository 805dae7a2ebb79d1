"""NetGAN states that nothing is private, and learns from walks."""

import pytest
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import RandomWalkDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import NetGAN
from tests.training import quiet_trainer

SMALL = {"generator_dim": 20, "critic_dim": 16, "embedding_dim": 16, "num_samples": 3000}


def fit(epsilon, delta=None, **options):
    torch.manual_seed(0)
    module = NetGAN(77, walk_length=4, batch_size=32, **SMALL | options)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta))
    data = RandomWalkDataModule(batch_size=32, steps_per_epoch=6, val_fraction=0.1)
    trainer.fit(module, data)
    return module, trainer


def test_it_books_that_nothing_is_protected_and_logs_both_stopping_criteria():
    module, trainer = fit(float("inf"))
    assert [e.event.mechanism for e in module.ledger.entries] == ["non_private"]
    assert module.ledger.epsilon(1e-6) == float("inf")
    edges = len(trainer.datamodule.edges)
    assert len(undirected_edges(module.sample(torch.Generator().manual_seed(0)))) == edges
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert 0 <= logged["nonprivate/edge_overlap"] <= 1
    assert logged["nonprivate/val"] == pytest.approx(
        logged["nonprivate/val_auc"] + logged["nonprivate/val_ap"]
    )


def test_scores_are_expected_transitions_of_its_walks():
    module, _ = fit(float("inf"), num_samples=60_000)
    pairs = torch.combinations(torch.arange(77))
    score = module.score(pairs)
    walks = module._fakes(20_000, torch.Generator().manual_seed(1))
    ends = torch.stack([walks[:, :-1].flatten(), walks[:, 1:].flatten()]).sort(0).values
    counts = torch.zeros(77, 77).index_put_(tuple(ends), torch.tensor(1.0), accumulate=True)
    counted = counts[pairs[:, 0], pairs[:, 1]]
    # Poisson counts: the difference of count and expectation has the square root as its scale.
    assert ((counted - score) / (score + 1).sqrt()).square().mean() < 1.5
