"""Messages at the end of a run: spent budget, folder, and how to continue."""

import math
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from pytorch_lightning import Trainer

from lightning_dpg.errors import CommandError, explain, is_interrupt
from lightning_dpg.interfaces import Released
from lightning_dpg.outcome import INTERRUPTED
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.run.checkpoints import newest_checkpoint
from lightning_dpg.run.loggers import close_trackers
from lightning_dpg.run.run_folder import RunFolder


def early_end(
    trainer: Trainer, module: Released, folder: RunFolder, checkpoint: Mapping[str, Any]
) -> str | None:
    """Explain why a fit made fewer steps than requested; None if it made all steps.

    Args:
        trainer: Trainer after the fit.
        module: Method of the fit.
        folder: Folder of the run.
        checkpoint: Content of the checkpoint at the start; empty without one.
    """
    done, _ = _steps(trainer)
    if checkpoint and done == _steps_before(checkpoint):
        why = _no_more(module.ledger) if _is_spent(module) else "its run had ended"
        saved = "" if folder.has_booked else "; nothing new was spent"
        return f"no step was made after the checkpoint: {why}{saved}"
    return spent_too_early(trainer, module)


def spent_too_early(trainer: Trainer, module: Released) -> str | None:
    """Explain why the budget has ended a fit; None if it has not.

    Args:
        trainer: Trainer after the fit.
        module: Method of the fit.
    """
    done, planned = _steps(trainer)
    if _is_spent(module) and module.ledger.steps and (planned is None or done < planned):
        return f"stopped after {_of(done, planned)} steps: {_no_more(module.ledger)}"
    return None


def end_early(
    error: BaseException,
    command: str,
    trainer: Trainer | None,
    module: Released | None,
    folder: RunFolder,
) -> None:
    """Report the spent budget of an interrupted run; remove the folder of a run that has not begun.

    Args:
        error: What has ended the run; a fault of the program gets the report as a note.
        command: Subcommand.
        trainer: Stopped trainer, if there is one already.
        module: Its method.
        folder: Folder of the run.

    Raises:
        SystemExit: After Ctrl-C.
        CommandError: With the message of the error and the report.
    """
    if trainer is not None:
        close_trackers(trainer)
    folder.remove_unused()
    if trainer is None or module is None or command != "fit":
        return
    if not (folder.has_booked and trainer.is_global_zero):
        return
    lines = interruption_report(trainer, module, folder)
    if is_interrupt(error):
        print("\n".join(["\ninterrupted", *lines]), file=sys.stderr)
        raise SystemExit(INTERRUPTED) from error
    text = explain(error, folder.path) if isinstance(error, Exception) else None
    if text is not None:
        raise CommandError("\n".join([*text.splitlines()[:2], *lines])) from error
    error.add_note("\n".join(lines))  # of a fault of the program: they end its traceback


def interruption_report(trainer: Trainer, module: Released, folder: RunFolder) -> list[str]:
    """Report the spent budget of an interrupted fit, its folder, and the command that continues.

    Args:
        trainer: Stopped trainer.
        module: Method of the fit.
        folder: Folder of the run.
    """
    checkpoint = newest_checkpoint(folder.path / "checkpoints")
    config = folder.path / "config.yaml"
    command = ["python", "-m", "lightning_dpg", "fit", "--config", str(config), "--ckpt_path"]
    return [
        f"{_of(*_steps(trainer))} steps made; {spent_so_far(module)}",
        f"run folder: {folder.path}",
        f"go on with: {shlex.join([*command, str(checkpoint)])}"
        if checkpoint
        else "there is no checkpoint to go on from: a new run spends anew",
    ]


def _steps(trainer: Trainer) -> tuple[int, int | None]:
    """Return the number of finished batches, and of all batches of the fit if known."""
    loop = trainer.fit_loop
    batches, epochs = loop.max_batches, loop.max_epochs
    done = int(loop.epoch_loop.batch_progress.total.completed)
    if epochs is None or epochs < 0 or math.isinf(batches):
        return done, None
    return done, int(batches * epochs)


def _steps_before(checkpoint: Mapping[str, Any]) -> int:
    """Return the number of finished batches at the time of a checkpoint."""
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    return int(progress["total"]["completed"])


def _of(done: int, planned: int | None) -> str:
    return f"{done}" if planned is None else f"{done} of {planned}"


def spent_so_far(module: Released) -> str:
    """State what an interrupted fit has spent, and under which condition this holds.

    Args:
        module: Method of the fit.
    """
    ledger, condition = module.ledger, module.condition()
    budget = ledger.budget
    if budget is None or math.isinf(budget.epsilon):
        return f"spent without a budget{_spent_on_rows(ledger)}"
    epsilon = math.ceil(ledger.epsilon(budget.delta) * 1e3) / 1e3  # never below the proved epsilon
    cost = f"epsilon {epsilon:.15g} of {budget.epsilon:g}, delta {budget.delta:g}"
    cost += _spent_on_rows(ledger)
    return f"spent for good: {cost}" + (f", if {condition}" if condition else "")


def _spent_on_rows(ledger: PrivacyLedger) -> str:
    budget = ledger.beside.get(Relation.ATTRIBUTES)
    if budget is None or math.isinf(budget.epsilon):
        return ""
    epsilon = math.ceil(ledger.epsilon(budget.delta, relation=Relation.ATTRIBUTES) * 1e3) / 1e3
    return f"; of private columns epsilon {epsilon:.15g} of {budget.epsilon:g}"


def _is_spent(module: Released) -> bool:
    return not module.ledger.affords(*module.step_entries())


def _no_more(ledger: PrivacyLedger) -> str:
    budget = ledger.budget
    assert budget is not None  # set before the fit
    rows = ledger.beside.get(Relation.ATTRIBUTES)
    of_rows = "" if rows is None else f", row_epsilon {rows.epsilon:g}"
    return (
        f"the budget (epsilon {budget.epsilon:g}, delta {budget.delta:g}{of_rows}) affords no more"
    )
