"""Preflight: every check of a run between the command and the first private read, in order.

1. **Options**, before PyTorch is imported: ``running.settings.find_configs`` reads the files of
   configurations, ``running.early_check.refuse_mistakes`` checks names, types and missing sections.
   The parser of Lightning then checks everything again, also classes of a user.
2. **Settings**, before anything is built: ``PrivacyAccountant`` checks its budget, and
   :func:`check_settings` what the trainer must not be set to.
3. **Checkpoint** of a resumed run, before data are read: it is whole, holds a ledger, is of this
   method, and its journal shows the steps after it (``PrivacyAccountant.check_journal``).
4. **Data**, once they are read and before the method is built: :func:`check_data`.
5. **Run**, once trainer and method are built: :func:`preflight` looks at the steps of the trainer, at
   callbacks, at delta against the data, at the plan against the budget, and at the batches.
6. **Set-up** by Lightning, whose processes run now: :func:`check_setup` looks at callbacks that a
   method has added, at the processes, and at a first loader. It warns of a doubtful budget. A run
   that no command line has checked passes 2, 4 and 5 here.
7. **Start**, with the ledger of a checkpoint: :func:`check_new`; the files of the release can be
   written (``ReleaseWriter``); the journal is opened, and the book reserves the whole plan.
8. **Loaders** that live: :func:`check_loaders`, again in each epoch.

Nothing is booked, and no noise is drawn, before the end. A run that is refused before 7 has
written nothing, except into a folder of its own, which is removed. The command line, ``dpg.fit``,
``compare`` and ``audit`` call :func:`check_settings`, :func:`check_data` and :func:`preflight` once;
:class:`~lightning_dpg.callbacks.PrivacyAccountant` calls the others, and those three for a trainer
of a user's own. A method refuses a trainer without an accountant by itself.
"""

from pytorch_lightning import Trainer
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.interfaces import GraphRecords, KeepsBudget, Released, serves_records
from lightning_dpg.preflight.budget import budget_warnings, check_delta
from lightning_dpg.preflight.data import check_data, data_of
from lightning_dpg.preflight.trainer import (
    check_callbacks,
    check_equal_records,
    check_loader,
    check_processes,
    check_samples,
    check_selection,
    check_settings,
    check_trainer,
)

__all__ = [
    "check_data",
    "check_loaders",
    "check_new",
    "check_released",
    "check_settings",
    "check_setup",
    "preflight",
]


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
        is_pure=method.is_pure,
        num_edges=None if served is None else served.num_edges,
        num_pairs=None if served is None else served.num_pairs,
    )
    check_selection(trainer, keeper.budget)
    check_trainer(trainer, method)
    method.accept_budget(keeper.budget, max(trainer.max_steps, 1))
    if served is not None and not trainer.predicting:
        served.check_request(method.batch_request(), trainer.max_epochs)
    keeper.passed = trainer, method


def check_setup(trainer: Trainer, method: Released, keeper: KeepsBudget, stage: str) -> None:
    """Check a run that Lightning sets up, and what nobody has checked before.

    Args:
        trainer: Its trainer.
        method: Its method.
        keeper: Callback with the budget.
        stage: ``fit``, ``validate``, ``test`` or ``predict``.
    """
    data, passed = data_of(trainer), keeper.passed
    keeper.passed = None  # a later run of both is another one
    if stage in ("validate", "test") and data is not None:
        check_data(type(method), data)
    if stage != "fit" and not (stage == "predict" and method.is_inductive):
        return
    if passed == (trainer, method):
        check_processes(trainer)
        check_callbacks(trainer, method)
        check_selection(trainer, keeper.budget)
    else:
        preflight(trainer, method, data, keeper)
        keeper.passed = None
    if stage == "fit" and serves_records(data):
        records, request = data.records, method.batch_request()
        num_nodes = records.num_nodes if isinstance(records, GraphRecords) else None
        for line in budget_warnings(keeper.budget, method.relation, num_nodes):
            rank_zero_warn(line)
        if request.kind == "poisson" and method.adds_noise:
            check_samples(data.train_dataloader(), trainer, {request.sample_rate})


def check_new(trainer: Trainer, method: Released) -> None:
    """Refuse a second release by one object.

    Raises:
        MisconfigurationException: If it has released something, and the run does not go on from a
            checkpoint.
    """
    if method.ledger.entries and trainer.ckpt_path is None:
        raise MisconfigurationException(
            f"this {type(method).__name__} has been fitted already, and its ledger and weights "
            "belong to that release\nmake a new object for another one, or pass ckpt_path to "
            "fit to go on"
        )


def check_released(trainer: Trainer, method: Released) -> None:
    """Refuse to evaluate a method that has released nothing, except in ``fit``, which begins so.

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
