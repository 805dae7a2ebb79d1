"""Types of the attributes that Lightning sets on a trainer without declaring them."""

from typing import Protocol, cast

from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.profilers import Profiler


class TypedTrainer(Protocol):
    """Attributes of a trainer of Lightning.

    Attributes:
        callbacks: Callbacks of the trainer, in the order of their calls.
        datamodule: The data module in use; None if loaders were passed to the trainer instead.
        fast_dev_run: Batches of a trial run, or whether there is one.
        overfit_batches: Batches, or the share of them, that each epoch repeats.
        profiler: Profiler of the run.
        reload_dataloaders_every_n_epochs: Epochs after which loaders are built anew; 0 for never.
    """

    callbacks: list[Callback]
    datamodule: object
    fast_dev_run: int | bool
    overfit_batches: int | float
    profiler: Profiler
    reload_dataloaders_every_n_epochs: int


def typed(trainer: Trainer) -> TypedTrainer:
    """Return the trainer itself, with types for the attributes that Lightning sets untyped."""
    return cast(TypedTrainer, trainer)
