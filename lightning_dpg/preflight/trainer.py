"""Checks of the trainer: each step must be the step that the ledger books."""

import hashlib
import math
from collections.abc import Sequence

import torch
import torch.distributed as dist
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    Callback,
    DeviceStatsMonitor,
    GradientAccumulationScheduler,
    LearningRateFinder,
    LearningRateMonitor,
    ModelPruning,
    SpikeDetection,
    StochasticWeightAveraging,
    ThroughputMonitor,
    Timer,
    WeightAveraging,
)
from pytorch_lightning.profilers import AdvancedProfiler, PyTorchProfiler
from pytorch_lightning.strategies.launchers import _MultiProcessingLauncher
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader

from lightning_dpg.interfaces import KeepsBudget, Released
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonSampler

PREFIX = "nonprivate/"
"""Of the names of figures that read the private graph and are not covered by the guarantee."""

_TRIALS = "makes trial steps on private data and then forgets that they were booked"
_WEIGHTS = "changes which parameters a step clips and noises"
_COPIES = "averages copies of the method, noise multipliers and ledger included"
_SIZES = "logs what tells the sizes of private batches"

REFUSED_CALLBACKS: dict[type[Callback], str] = {
    BatchSizeFinder: _TRIALS,
    LearningRateFinder: _TRIALS,
    BaseFinetuning: _WEIGHTS,
    ModelPruning: _WEIGHTS,
    StochasticWeightAveraging: _COPIES,
    WeightAveraging: _COPIES,
    GradientAccumulationScheduler: "adds up the gradients of several batches",
    SpikeDetection: "leaves out batches by their losses, which are private",
    DeviceStatsMonitor: _SIZES,
    ThroughputMonitor: _SIZES,
}
"""Built-in callbacks that a private method refuses, also as base classes, with the reasons."""


def check_settings(
    *, min_epochs: int | None, min_steps: int | None, strategy: str, precision: str
) -> None:
    """Refuse settings of a trainer that would void the guarantee or break private training.

    Args:
        min_epochs: Setting of the trainer.
        min_steps: Setting of the trainer.
        strategy: Name of the strategy or of its class.
        precision: Setting of the trainer.
    """
    if min_epochs or min_steps:
        raise MisconfigurationException(
            "trainer.min_epochs and trainer.min_steps would train on when the privacy budget "
            "is spent: remove them"
        )
    if strategy.rpartition(".")[2].lower().startswith(("fsdp", "deepspeed", "modelparallel")):
        raise MisconfigurationException(
            f"trainer.strategy {strategy} shards the parameters, but per-example gradients "
            "need them whole: set it to ddp"
        )
    if precision not in ("32-true", "32", "None"):
        raise MisconfigurationException(
            f"trainer.precision {precision}: gradients have to be clipped and noised in full "
            "precision, and releases are of 32 bits; set it to 32-true"
        )


def check_trainer(trainer: Trainer, method: Released) -> None:
    """Refuse settings and callbacks that would make a step differ from its booking.

    Args:
        trainer: A trainer, before or in ``fit``.
        method: What it is to train.

    Raises:
        MisconfigurationException: If there are any, or no step would be made at all.
    """
    for setting in ("max_epochs", "max_steps", "limit_train_batches"):
        # A row of `compare` may be untrained.
        is_untrained = setting == "max_steps" and method.capabilities.is_trained
        if getattr(trainer, setting) == 0 and not is_untrained:
            raise MisconfigurationException(
                f"trainer.{setting} 0 makes no step: there would be nothing to release\n"
                "set it to 1 or more, or leave it out"
            )
    _check_steps(trainer, method)
    check_processes(trainer)
    budgets = [each for each in typed(trainer).callbacks if isinstance(each, KeepsBudget)]
    if len(budgets) > 1:
        raise MisconfigurationException(
            "the trainer has two PrivacyAccountants, and the budget of the last would replace the "
            "other one\nkeep one of them"
        )
    if not method.capabilities.adds_noise:
        return
    is_endless = trainer.max_epochs == -1 and trainer.max_steps == -1
    if is_endless and method.hparams.get("noise_multiplier") == "auto":
        raise MisconfigurationException(
            "trainer.max_epochs -1 has no end, and noise_multiplier: auto needs the number of steps in "
            "advance: set max_epochs, or give a number as noise_multiplier"
        )
    for setting, why in _voiding_settings(trainer, method).items():
        raise MisconfigurationException(f"trainer.{setting} {why}: leave it out")
    check_callbacks(trainer, method)


def check_callbacks(trainer: Trainer, method: Released) -> None:
    """Refuse callbacks that would make a step differ from its booking."""
    for callback in typed(trainer).callbacks if method.capabilities.adds_noise else ():
        for refused, why in REFUSED_CALLBACKS.items():
            if isinstance(callback, refused):
                raise MisconfigurationException(f"{type(callback).__name__} {why}: remove it")


def public_curves(trainer: Trainer, method: Released) -> set[str]:
    """Return the names of logged figures that are public, because someone declares it.

    These are ``epoch``, ``step``, what ``LearningRateMonitor`` logs, and what method and callbacks
    declare as ``curve_names`` without the prefix ``nonprivate/``.

    Args:
        trainer: The trainer.
        method: The method in training.
    """
    names = {"epoch", "step"}
    for holder in (method, *typed(trainer).callbacks):
        declared = set(getattr(holder, "curve_names", ()))
        if isinstance(holder, LearningRateMonitor):
            declared = {*holder.lrs, *holder.last_momentum_values, *holder.last_weight_decay_values}
        # Lightning adds these where a figure is logged for steps and epochs.
        names |= {f"{name}{end}" for name in declared for end in ("", "_step", "_epoch")}
    return {name for name in names if not name.startswith(PREFIX)}


def check_selection(trainer: Trainer, method: Released, budget: Budget) -> None:
    """Refuse early stopping and weight selection by figures that no one declares public."""
    for callback in typed(trainer).callbacks if math.isfinite(budget.epsilon) else ():
        monitor = getattr(callback, "monitor", None)
        if monitor is not None and monitor not in public_curves(trainer, method):
            raise MisconfigurationException(
                f"{type(callback).__name__} would choose by {monitor}, which may read the private "
                f"graph without paying: remove it, or train without privacy (epsilon .inf)\n"
                f"curve_names of {type(method).__name__} declare the figures that are public"
            )


def check_schedulers(trainer: Trainer, method: Released, budget: Budget) -> None:
    """Refuse a learning rate that follows a figure of the private steps."""
    for config in trainer.lr_scheduler_configs if math.isfinite(budget.epsilon) else ():
        is_public = config.monitor in public_curves(trainer, method)
        if isinstance(config.scheduler, ReduceLROnPlateau) and not is_public:
            raise MisconfigurationException(
                "ReduceLROnPlateau would choose the learning rate by a figure that may read the "
                "private graph without paying\ntake a scheduler that follows the number of steps"
            )


def trainer_warnings(trainer: Trainer) -> list[str]:
    """Return what settings of a trainer spend, or make public, beside the plan."""
    lines = []
    if typed(trainer).fast_dev_run:
        lines.append(
            "trainer.fast_dev_run is no rehearsal: it reads the private graph, spends budget, and "
            "leaves no release, no checkpoint and no ledger.jsonl\nanother run on the data spends anew"
        )
    if any(isinstance(callback, Timer) for callback in typed(trainer).callbacks):
        lines.append(
            "trainer.max_time ends the run by the clock: the number of its steps, which is published, "
            "then tells how long private batches take, and no guarantee covers that\n"
            "set max_epochs or max_steps alone"
        )
    return lines


def check_processes(trainer: Trainer) -> None:
    """Refuse a process group of which the trainer knows nothing, and processes yet to be started.

    Sums run over the group: each of its processes would add a whole sum to the one that is noised.
    A run of the command line or of ``dpg.fit`` ends where it is checked. Of processes that a trainer
    starts by spawn or fork only a state dict comes back.
    """
    if not (dist.is_available() and dist.is_initialized()):
        if isinstance(trainer.strategy.launcher, _MultiProcessingLauncher):
            raise MisconfigurationException(
                "trainer.strategy trains in child processes, whose notes, interrupts and book lines "
                "would be lost here\nset it to ddp, or devices to 1; Trainer.fit of your own gets "
                "weights and ledger back,\nand open_release opens the release in its folder"
            )
        return
    if dist.get_world_size() != trainer.world_size:
        raise MisconfigurationException(
            f"torch.distributed has {dist.get_world_size()} processes, and the trainer "
            f"{trainer.world_size}: each record would be added once per process\n"
            "set trainer.strategy to ddp and trainer.devices to the number of processes"
        )


def _check_steps(trainer: Trainer, method: Released) -> None:
    """Refuse settings that cut the steps which a method says it makes."""
    steps = method.batch_request().steps_per_epoch
    if steps is None or typed(trainer).fast_dev_run:
        return
    share = trainer.limit_train_batches
    limits = {
        "max_steps": steps if trainer.max_steps == -1 else trainer.max_steps,
        "limit_train_batches": int(share * steps) if isinstance(share, float) else share,
    }
    for setting, limit in limits.items():
        if limit < steps and getattr(trainer, setting) != 0:
            raise MisconfigurationException(
                f"{type(method).__name__} makes {steps} steps, and trainer.{setting} {getattr(trainer, setting)} "
                "would cut them\nleave it out, and set the number in the method"
            )


def _voiding_settings(trainer: Trainer, method: Released) -> dict[str, str]:
    """Return settings with wrong values, and their effects."""
    wraps = trainer._accelerator_connector.use_distributed_sampler and trainer.world_size > 1
    one_batch = "reads the same few records in every step, and the ledger books fresh samples"
    profiler = typed(trainer).profiler
    facts = {
        "overfit_batches": (typed(trainer).overfit_batches, one_batch),
        "accumulate_grad_batches": (
            trainer.accumulate_grad_batches != 1,
            "adds up the gradients of several batches",
        ),
        "gradient_clip_val": (
            trainer.gradient_clip_val,
            "clips what is noised already: the clip that counts is max_grad_norm of the method",
        ),
        "reload_dataloaders_every_n_epochs": (
            typed(trainer).reload_dataloaders_every_n_epochs,
            "exchanges the sampler whose rate is booked",
        ),
        "detect_anomaly": (
            trainer._detect_anomaly or torch.is_anomaly_enabled(),
            "ends a run by what is private: one record can make a gradient that is no number",
        ),
        f"profiler {type(profiler).__name__}": (
            isinstance(profiler, AdvancedProfiler | PyTorchProfiler),
            "writes shapes or numbers of calls, which tell the sizes of private batches",
        ),
        "use_distributed_sampler true": (
            wraps and method.batch_request().kind == "poisson",
            "wraps the Poisson sampler, so that one record can be in the batches of two processes",
        ),
    }
    return {setting: why for setting, (is_set, why) in facts.items() if is_set}


def check_sampler(loader: object, trainer: Trainer) -> PoissonSampler:
    """Refuse a loader whose batches are not fresh Poisson samples.

    Args:
        loader: What gives the batches.
        trainer: The trainer that they are for.

    Returns:
        The loader's sampler.

    Raises:
        MisconfigurationException: If they are not such samples, or those of another process.
    """
    sampler = loader.sampler if isinstance(loader, DataLoader) else None
    # Lightning makes loaders of its own; what is derived from ours can draw in any way.
    if type(loader) is not DataLoader or type(sampler) is not PoissonSampler:
        kind = type(loader if sampler is None else sampler).__name__
        raise MisconfigurationException(
            f"batches come from {kind}, but Poisson samples are booked\n"
            "take EdgeListDataModule, or a DataLoader with PoissonSampler and batch_size=None"
        )
    place = trainer.global_rank, trainer.world_size
    if loader.batch_size is not None or (sampler.rank, sampler.world_size) != place:
        raise MisconfigurationException(
            f"batches are of process {sampler.rank} of {sampler.world_size}, batch_size "
            f"{loader.batch_size}, but process {place[0]} of {place[1]} needs its share of each draw "
            "as it is: pass batch_size=None, rank and world_size"
        )
    # The message ends in logs, and the number of records is private.
    if sampler.num_records != len(loader.dataset):  # type: ignore[arg-type]
        raise MisconfigurationException(
            "the sampler draws from another number of records than the loader's data set has\n"
            "a rate is booked for all records: pass PoissonSampler their number"
        )
    if not sampler.is_secret:
        raise MisconfigurationException(
            "the sampler draws with a known seed, and a rate is booked for secret draws\n"
            "leave noise of PoissonSampler out"
        )
    return sampler


def check_loader(trainer: Trainer, method: Released) -> None:
    """Refuse a live train loader that does not draw at the rate of the booked steps.

    Args:
        trainer: A trainer that has set up its loaders.
        method: The method in training.

    Raises:
        MisconfigurationException: If a step costs less than what the loader draws.
    """
    rates = {entry.event.sample_rate for entry in method.step_entries()}
    if not rates or (rates == {1.0} and method.batch_request().kind == "all"):
        return  # no step is booked, or each reads all records whatever the batch holds
    check_rate(check_sampler(trainer.train_dataloader, trainer), rates)


def check_samples(loader: object, trainer: Trainer, rates: set[float]) -> None:
    """Refuse batches that are no Poisson samples at one rate, or not of the same records.

    Args:
        loader: What gives the batches of this process.
        trainer: The trainer that they are for.
        rates: The rate that is booked.
    """
    check_rate(check_sampler(loader, trainer), rates)
    check_equal_records(loader, trainer)


def check_equal_records(
    loader: object, trainer: Trainer, booked: Sequence[LedgerEntry] = ()
) -> None:
    """Refuse processes that have read different records, or that book different steps.

    Each process takes its share of a draw by the numbers of the records. Where these differ, the
    batches of two processes can hold one record, which then moves the sum twice as far.

    Args:
        loader: What gives the batches of this process.
        trainer: The trainer that they are for.
        booked: What this process books.
    """
    if trainer.world_size == 1 or not isinstance(loader, DataLoader):
        return
    edges = getattr(loader.dataset, "edges", None)
    number = len(loader.dataset)  # type: ignore[arg-type]
    content = edges.cpu().numpy().tobytes() if isinstance(edges, Tensor) else b""
    text = repr((number, list(booked))).encode()
    digest = hashlib.sha256(text + content).hexdigest()
    is_equal = trainer.strategy.broadcast(digest) == digest
    if not trainer.strategy.reduce_boolean_decision(is_equal):  # all processes end
        raise MisconfigurationException(
            "the processes have read different data, or have different settings: one record could "
            "be in the batches of two\ngive all of them the same files and the same configuration"
        )


def check_rate(sampler: PoissonSampler, rates: set[float]) -> None:
    """Refuse a sampler that does not draw at the one rate that is booked."""
    if rates != {sampler.sample_rate}:
        booked = ", ".join(f"{rate:g}" for rate in sorted(rates))
        raise MisconfigurationException(
            f"batches are drawn at the rate {sampler.sample_rate:g}, and booked at {booked}\n"
            "set sample_rate of the method only, and do not change it in a run"
        )
