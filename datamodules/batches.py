"""Batches that a method requests, for one graph and for a set of graphs."""

import math
from collections.abc import Iterator, Sequence, Sized
from itertools import repeat
from typing import TypeVar

from pytorch_lightning import Trainer
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lightning_dpg.errors import Refusal
from lightning_dpg.interfaces import BatchRequest, Records, RequestsBatches
from lightning_dpg.privacy.sampling import PoissonBatch, PoissonSampler

Batch = TypeVar("Batch")
_SAMPLE_RATE = 0.1  # where no method asks
_STEPS = {"all": 10, "walks": 100}  # per epoch, where nobody says how many


class Batches(Dataset[Batch]):
    """Dataset of ready batches; load them with ``batch_size=None``."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Store the batches."""
        self.batches = batches

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        """Return one batch unchanged."""
        return self.batches[index]


class AllRecords:
    """Loader whose batch in each step is the records object itself."""

    def __init__(self, records: Records, steps: int) -> None:
        """Store the records and the number of batches."""
        self.records = records
        self.steps = steps

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.steps

    def __iter__(self) -> Iterator[Records]:
        """Yield the same object in each step."""
        return repeat(self.records, self.steps)


class PoissonRecords(Dataset[PoissonBatch], Sized):
    """Protocol of records that are indexed once per batch, with a tensor of their numbers."""


TrainBatches = DataLoader[PoissonBatch] | DataLoader[Tensor] | AllRecords
"""What gives the batches of a training: Poisson samples, walks, or all records."""


def request_of(trainer: Trainer | None) -> BatchRequest:
    """Return the request of the method in training; without a method, Poisson samples.

    Args:
        trainer: The trainer of the data module, if it has one.
    """
    method = None if trainer is None else trainer.lightning_module
    if isinstance(method, RequestsBatches):
        return method.batch_request()
    return BatchRequest("poisson", _SAMPLE_RATE)


def number_of_steps(request: BatchRequest, own: int | None) -> int:
    """Return the number of batches of an epoch.

    Args:
        request: That of the method, which counts first.
        own: Setting of the data module, which can only divide the method's steps into epochs.
    """
    if request.steps_per_epoch is not None:
        return min(request.steps_per_epoch, own or request.steps_per_epoch)
    if own is not None:
        return own
    if request.kind == "poisson" or request.sample_rate < 1:
        # 1 / q of an exact share such as 1/49 can come out above the whole number.
        return math.ceil(1 / request.sample_rate - 1e-9)
    return _STEPS[request.kind]


def poisson_loader(
    records: PoissonRecords, sample_rate: float, steps: int, trainer: Trainer | None
) -> DataLoader[PoissonBatch]:
    """Return Poisson batches of records; each process gets its share of every batch."""
    rank, world_size = place(trainer)
    sampler = PoissonSampler(len(records), sample_rate, steps, rank=rank, world_size=world_size)
    return DataLoader(records, sampler=sampler, batch_size=None)


def place(trainer: Trainer | None) -> tuple[int, int]:
    """Return the rank of this process and the number of processes."""
    return (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)


def check_steps_per_epoch(steps_per_epoch: int | None) -> None:
    """Refuse a number of batches of a data module that makes none."""
    if steps_per_epoch is not None and steps_per_epoch < 1:
        raise Refusal(f"steps_per_epoch must be positive, got {steps_per_epoch}")


def check_enough_steps(
    request: BatchRequest, steps_per_epoch: int | None, max_epochs: int | None
) -> None:
    """Refuse settings that cut the steps of the method.

    Args:
        request: That of the method.
        steps_per_epoch: Setting of the data module.
        max_epochs: Setting of the trainer; -1 has no end.

    Raises:
        MisconfigurationException: If they make fewer steps than the method asks for.
    """
    steps = request.steps_per_epoch
    if steps is None or steps_per_epoch is None or max_epochs is None or max_epochs == -1:
        return
    if steps_per_epoch * max_epochs < steps:
        raise MisconfigurationException(
            f"the method makes {steps} steps, and data.init_args.steps_per_epoch "
            f"{steps_per_epoch} would cut them\nleave it out, and set the number in the method"
        )
