"""Fits that leave no files and say nothing."""

import warnings

import pytorch_lightning as pl

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.cli.quiet import quiet


def fit_quietly(
    method: pl.LightningModule, data: pl.LightningDataModule, epsilon: float, delta: float
) -> None:
    """Fit one epoch within a budget, with noise of the operating system."""
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[PrivacyAccountant(epsilon, delta)],
        ).fit(method, data)
