"""How a run ended: what it has spent, where it lies, and how to go on."""

import math
import shlex
from collections.abc import Mapping
from typing import Any

from pytorch_lightning import Trainer

from lightning_dpg.cli.checkpoints import newest_checkpoint
from lightning_dpg.cli.run_folder import RunFolder
from lightning_dpg.privacy.ledger import PrivacyLedger


def early_end(
    trainer: Trainer, module: Any, folder: RunFolder, checkpoint: Mapping[str, Any]
) -> str | None:
    """Why a fit made fewer steps than it was asked for; None if it made them all.

    Args:
        trainer: Trainer that has ended.
        module: Method that it trained.
        folder: Folder of the run.
        checkpoint: Content of the checkpoint from which it went on; empty where there was none.
    """
    budget = module.ledger.budget
    is_spent = not module.ledger.affords(*module.step_entries())
    no_more = f"the budget (epsilon {budget.epsilon:g}, delta {budget.delta:g}) affords no more"
    done, planned = _steps(trainer)
    if checkpoint and done == _steps_before(checkpoint):
        why = no_more if is_spent else "its run had ended"
        saved = "" if folder.has_booked else "; nothing new was spent"
        return f"no step was made after the checkpoint: {why}{saved}"
    if is_spent and module.ledger.steps and (planned is None or done < planned):
        return f"stopped after {_of(done, planned)} steps: {no_more}"
    return None


def farewell(trainer: Trainer, ledger: PrivacyLedger, folder: RunFolder) -> list[str]:
    """What a fit that broke off has spent, where it lies, and the command that goes on.

    Args:
        trainer: Trainer that was stopped.
        ledger: Ledger of the method that it trained.
        folder: Folder of the run.
    """
    checkpoint = newest_checkpoint(folder.path / "checkpoints")
    config = folder.path / "config.yaml"
    command = ["python", "-m", "lightning_dpg", "fit", "--config", str(config), "--ckpt_path"]
    return [
        f"{_of(*_steps(trainer))} steps made; {_spent(ledger)}",
        f"run folder: {folder.path}",
        f"go on with: {shlex.join([*command, str(checkpoint)])}"
        if checkpoint
        else "there is no checkpoint to go on from: a new run spends anew",
    ]


def _steps(trainer: Trainer) -> tuple[int, int | None]:
    """Batches done, and those of the whole fit where their number is known."""
    loop = trainer.fit_loop
    batches, epochs = loop.max_batches, loop.max_epochs
    done = int(loop.epoch_loop.batch_progress.total.completed)
    if epochs is None or epochs < 0 or math.isinf(batches):
        return done, None
    return done, int(batches * epochs)


def _steps_before(checkpoint: Mapping[str, Any]) -> int:
    """Batches done when a checkpoint was written."""
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    return int(progress["total"]["completed"])


def _of(done: int, planned: int | None) -> str:
    return f"{done}" if planned is None else f"{done} of {planned}"


def _spent(ledger: PrivacyLedger) -> str:
    budget = ledger.budget
    if budget is None or math.isinf(budget.epsilon):
        return "spent without a budget"
    epsilon = math.ceil(ledger.epsilon(budget.delta) * 1e3) / 1e3  # never below what is proved
    return f"spent for good: epsilon {epsilon:g} of {budget.epsilon:g}, delta {budget.delta:g}"
