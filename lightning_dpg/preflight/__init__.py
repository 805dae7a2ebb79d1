"""Preflight: every check of a run between the command and the first private read, in order.

1. **Options**, before PyTorch is imported. ``run.configurations.find_configs`` reads the files of
   configurations, ``run.early_check.refuse_mistakes`` checks names, types and missing sections.
   Lightning's parser then checks them again, with the classes of a user.
2. **Settings**, before anything is built. ``PrivacyAccountant`` checks its budget, and
   :func:`check_settings` the settings of the trainer. ``run.checkpoints.check_resumed`` checks
   that a checkpoint is of this method and that its journal shows the steps after it.
   ``run.loggers.tracker_arguments`` refuses to upload checkpoints.
3. **Data**, when they are read and before the method is built: :func:`check_data`.
4. **Run**, when trainer and method are built: :func:`preflight` repeats 2 and 3 for the objects. It
   checks delta and the batches against the data, the steps of the trainer, the plan against the
   budgets of edges and of private columns, and callbacks, which must not choose by private figures.
5. **Set-up** by Lightning, when all processes run: :func:`check_setup` checks callbacks that a
   method has added, the group of processes, and the samples of a first loader. It warns of a
   doubtful budget and of what the trainer makes public, and repeats 4 for a run that has not passed it.
6. **Start**, when a checkpoint is loaded: :func:`check_new` refuses a second release by one object,
   ``ReleaseWriter`` what no release can hold. The accountant checks the journal again, opens it, and
   reserves the whole plan in the budget book.
7. **Loaders** that live: :func:`check_loaders`; their rate again in each epoch.

Nothing is booked, and no noise is drawn, before 6. A run that is refused has written nothing but
files in a folder of its own, which the command line and ``dpg.fit`` remove. These two call
:func:`preflight` once for each run, and so do ``compare`` and ``audit``, which fit by the command
line. :class:`~lightning_dpg.callbacks.PrivacyAccountant` calls the other functions, and
:func:`preflight` for a trainer of a user's own. Without an accountant a method refuses the trainer,
see :func:`~lightning_dpg.preflight.data.check_accountant`.
"""

import math

from pytorch_lightning import Trainer
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.interfaces import GraphRecords, KeepsBudget, Released, serves_records
from lightning_dpg.preflight.budget import (
    budget_warnings,
    check_delta,
    check_rows,
    row_budget_warnings,
    served,
)
from lightning_dpg.preflight.data import check_data
from lightning_dpg.preflight.trainer import (
    check_callbacks,
    check_equal_records,
    check_loader,
    check_processes,
    check_samples,
    check_schedulers,
    check_selection,
    check_settings,
    check_trainer,
    trainer_warnings,
)
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.paid_weights import is_marked

__all__ = [
    "check_data",
    "check_loaders",
    "check_new",
    "check_released",
    "check_settings",
    "check_setup",
    "preflight",
]

_MORE = "take a larger epsilon or graph, or ErdosRenyi for the number of edges alone"


def preflight(trainer: Trainer, method: Released, data: object, keeper: KeepsBudget) -> None:
    """Check a run whose objects are built, and hand its budget to the method.

    Args:
        trainer: A trainer, before or in ``fit``, or in a ``predict`` that reads graphs.
        method: What it is to train.
        data: The data module after its setup; None if loaders were passed to the trainer instead.
        keeper: Callback with the budget. :func:`check_setup` repeats none of these checks for the
            next run of this trainer and method.

    Raises:
        MisconfigurationException: If anything is refused. Nothing is booked then.
    """
    served = data if serves_records(data) else None
    method.accept_data(data)
    check_settings(
        min_epochs=trainer.min_epochs,
        min_steps=trainer.min_steps,
        strategy=type(trainer.strategy).__name__,
        precision=str(trainer.precision),
    )
    check_delta(
        keeper.budget,
        is_pure=method.capabilities.is_pure,
        num_edges=None if served is None else served.num_edges,
        num_pairs=None if served is None else served.num_pairs,
    )
    check_trainer(trainer, method)
    check_rows(
        type(method).__name__,
        keeper.row_budget,
        reads_private_columns=method.reads_private_columns,
        learns_labels=type(method).capabilities.learns_private_labels,
    )
    method.accept_budget(keeper.budget, max(trainer.max_steps, 1), keeper.row_budget)
    check_selection(trainer, method, min(_budgets(keeper)))
    if served is not None and not trainer.predicting:
        served.check_request(method.batch_request(), trainer.max_epochs)
    keeper.passed = trainer, method


def _budgets(keeper: KeepsBudget) -> list[Budget]:
    """Return the budgets of a run; the smallest one has the smallest epsilon."""
    return [keeper.budget, *([] if keeper.row_budget is None else [keeper.row_budget])]


def check_setup(trainer: Trainer, method: Released, keeper: KeepsBudget, stage: str) -> None:
    """Check a run that Lightning sets up, and make the checks that it has not passed yet.

    Args:
        trainer: Its trainer.
        method: Its method.
        keeper: Callback with the budget.
        stage: ``fit``, ``validate``, ``test`` or ``predict``.
    """
    data, passed = typed(trainer).datamodule, keeper.passed
    keeper.passed = None  # a later run of both is checked again
    if stage in ("validate", "test") and data is not None:
        check_data(type(method), data)
    if stage != "fit" and not (stage == "predict" and method.capabilities.is_inductive):
        return
    if passed == (trainer, method):
        check_processes(trainer)
        check_callbacks(trainer, method)
        check_selection(trainer, method, min(_budgets(keeper)))
    else:
        preflight(trainer, method, data, keeper)
        keeper.passed = None
    doubts = trainer_warnings(trainer) if math.isfinite(keeper.budget.epsilon) else []
    if stage == "fit" and serves_records(data):
        records, request = data.records, method.batch_request()
        num_nodes = records.num_nodes if isinstance(records, GraphRecords) else None
        doubts += budget_warnings(keeper.budget, method.relation, num_nodes)
        if not method.capabilities.is_trained:
            plan = method.plan(keeper.budget, 1)
            found = served(plan, keeper.budget.epsilon, num_nodes)
            doubts += [] if found.is_all else [f"{found.sentence}\n{_MORE}"]
        if keeper.row_budget is not None:
            doubts += row_budget_warnings(keeper.row_budget, num_nodes)
        if request.kind == "poisson" and method.capabilities.adds_noise:
            check_samples(data.train_dataloader(), trainer, {request.sample_rate})
    for line in doubts:
        rank_zero_warn(line)


def check_new(trainer: Trainer, method: Released) -> None:
    """Refuse a second release by one object, or one that begins with the weights of another release.

    Schedulers that follow private figures are refused, too.

    Raises:
        MisconfigurationException: If it holds weights that were paid for, its own or loaded ones, and
            the run does not go on from a checkpoint, or if it has such a scheduler.
    """
    if (method.ledger.entries or is_marked(method)) and trainer.ckpt_path is None:
        raise MisconfigurationException(
            f"this {type(method).__name__} has been fitted already, or has loaded the weights of a "
            "fit: its ledger belongs to that release\nmake a new object for another one, or pass "
            "ckpt_path to fit to go on\nload public weights into a network before you set it in the method"
        )
    if method.ledger.budget is not None:
        check_schedulers(trainer, method, method.ledger.budget)


def check_released(trainer: Trainer, method: Released) -> None:
    """Refuse to evaluate a method that has released nothing, except at the start of ``fit``.

    Raises:
        MisconfigurationException: If neither ``fit`` nor a checkpoint has filled its ledger.
    """
    if trainer.state.fn != TrainerFn.FITTING and not method.ledger.entries:
        raise MisconfigurationException(
            f"this {type(method).__name__} has released nothing that could be evaluated\n"
            "fit it first, or pass ckpt_path"
        )


def check_loaders(trainer: Trainer, method: Released) -> None:
    """Refuse loaders that draw at another rate, or in another process from other records.

    Args:
        trainer: A trainer that has set up its loaders.
        method: The method in training.
    """
    check_loader(trainer, method)
    check_equal_records(trainer.train_dataloader, trainer, method.step_entries())
