"""Trainers for tests."""

from types import SimpleNamespace
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning import Callback
from torch import Tensor

from lightning_dpg.graph.edge_statistics import EdgeStatistics, GraphStatisticsSource
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.planning import by_key
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer


class BooksSteps(PrivateModule):
    """Books its entries of a step for each batch, and learns nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch: Any, batch_idx: int) -> None:
        self.ledger.spend(*self.step_entries())
        self.optimizers().step()


def gan_config(max_epochs: int = 1, **settings: Any) -> dict[str, Any]:
    """The configuration of a small DP-NetGAN with some settings, on the default graph."""
    sizes = {"embedding_dim": 8, "critic_dim": 8, "generator_dim": 8}
    few = {"num_samples": 100, "sample_rate": 0.25}
    quiet = {"enable_progress_bar": False, "enable_model_summary": False}
    return {
        "model": {"class_path": "DPNetGAN", "init_args": sizes | few | settings},
        "data": {"class_path": "EdgeListDataModule"},
        "trainer": {"max_epochs": max_epochs, "accelerator": "cpu"} | quiet,
        "privacy": {"epsilon": 8.0, "delta": 1e-4},
    }


def quiet_trainer(*callbacks: Callback, **options: Any) -> pl.Trainer:
    """A trainer of one epoch that says nothing and, unless ``options`` ask for it, leaves no file."""
    settings = {
        "max_epochs": 1,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,  # as the command line sets it
    }
    return pl.Trainer(callbacks=list(callbacks), **settings | options)


def release_edges(method: OneShotSynthesizer, edges: Tensor | GraphStatisticsSource) -> None:
    """Make the releases of a method from edges of shape ``(M, 2)``, or from their counts."""
    source = EdgeStatistics(edges, method.space) if isinstance(edges, Tensor) else edges
    method.release(source, by_key(method.plan(method.budget, 1)))


def asked(data: pl.LightningDataModule, sample_rate: float) -> Any:
    """A data module in the trainer of a method that asks for Poisson samples."""
    method = SimpleNamespace(batch_request=lambda: BatchRequest("poisson", sample_rate))
    trainer: Any = SimpleNamespace(global_rank=0, world_size=1, lightning_module=method)
    data.trainer = trainer
    return data
