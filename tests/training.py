"""Trainers for tests."""

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning import Callback


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
