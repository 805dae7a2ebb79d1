"""Budget of a run: handed to the ledger, checked before each step, and reported."""

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities import rank_zero_only
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.budget_book import NO_BOOK, names_book, reserve
from lightning_dpg.callbacks.nonprivate import withhold_nonprivate
from lightning_dpg.errors import BookError, Refusal
from lightning_dpg.interfaces import Account, Released, public_path
from lightning_dpg.outcome import note
from lightning_dpg.preflight import check_loaders, check_new, check_released, check_setup
from lightning_dpg.preflight.trainer import check_loader
from lightning_dpg.privacy.calibration import prove_steps
from lightning_dpg.privacy.events import Gaussian, Relation
from lightning_dpg.privacy.ledger import (
    JOURNAL,
    Budget,
    PrivacyLedger,
    journal_beside,
    open_journal,
    replay,
)
from lightning_dpg.privacy.paid_weights import mark
from lightning_dpg.release.card.sentences import say
from lightning_dpg.release.card.topics import ADDED_UP, LEFT_OUT, NOT_ADDED_UP
from lightning_dpg.release.checksums import digest
from lightning_dpg.release.recipe import is_shipped
from lightning_dpg.release.statement import full_sentence, privacy_statement
from lightning_dpg.run_folder import SUMS, release_in

LARGEST_EPSILON = 1e9
"""Largest finite budget: a larger one is a typing error, and noise is not drawn for it."""
UNASKED_DELTA = 1e-6
"""Delta at which a run without a budget is reported."""


class PrivacyAccountant(Callback):
    """Log the privacy spent and stop before delta at epsilon would exceed a budget.

    Each release is also written to ``ledger.jsonl`` in the run folder before it happens. A resumed
    run continues that file: steps after the last checkpoint stay booked.

    Args:
        epsilon: Budget; ``inf`` trains without a limit, for baselines that are not private.
        delta: Largest delta allowed at ``epsilon``; may be left out when ``epsilon`` is infinite. 0
            suffices for methods of pure epsilon, and Gaussian noise cannot meet it.
        lost_steps: Steps that a resumed run has made after its checkpoint was written, at most;
            they are booked when it goes on. None takes the number from the journal beside the
            checkpoint.
        upload_nonprivate: Whether trackers such as Weights & Biases get curves with the prefix
            ``nonprivate/``, which read the private graph without a guarantee.
        book: URL of the budget book of the data, which adds up all runs on them, such as
            ``sqlite:///book.db``; by default that of the environment variable
            ``LIGHTNING_DPG_BOOK``. ``none``, on the command line also ``--no-book``, leaves both
            out, and the model card says so.
        dataset: Name of the data in the book; by default they are recognized.
        row_epsilon: Budget of the private columns of one node, for a method that reads such columns.
            It has no delta: their reads are of pure epsilon.

    Attributes:
        account: Account of a run of which this one is a part; None takes the book.
        curve_names: Names of the figures that it logs, which are public.
    """

    curve_names = ("privacy/epsilon", "privacy/delta", "privacy/steps", "privacy/row_epsilon")

    def __init__(
        self,
        epsilon: float | Literal["inf"],
        delta: float | None = None,
        lost_steps: int | None = None,
        upload_nonprivate: bool = False,
        book: str | None = None,
        dataset: str | None = None,
        row_epsilon: float | Literal["inf"] | None = None,
    ) -> None:
        """Check and store the budgets.

        Raises:
            Refusal: If it is none.
        """
        self.epsilon = float(epsilon)
        self.delta = delta
        self.row_epsilon = None if row_epsilon is None else float(row_epsilon)
        _ = self.budget, self.row_budget
        self.lost_steps = lost_steps
        self.upload_nonprivate = upload_nonprivate
        self.book = book
        self.dataset = dataset
        self.account: Account | None = None
        self.passed: tuple[Trainer, Released] | None = None
        self._booked: Account | None = None
        self._statement: dict[str, Any] | None = None
        self.book_note: str | None = None

    @property
    def budget(self) -> Budget:
        """Budget, which can be set anew between runs.

        Raises:
            Refusal: If it is none.
        """
        _check_epsilon("privacy.epsilon", self.epsilon)
        if self.delta is None:
            if math.isfinite(self.epsilon):
                raise Refusal("privacy.delta is missing; it may be left out at epsilon .inf")
            return Budget(self.epsilon, UNASKED_DELTA)
        if not 0 <= self.delta < 1:
            raise Refusal(f"privacy.delta must lie in [0, 1), got {self.delta}")
        return Budget(self.epsilon, self.delta)

    @property
    def row_budget(self) -> Budget | None:
        """Budget of the private columns of one node, which can be set anew between runs.

        Its delta is 0: discrete Laplace noise and randomized response, which suit tables and labels,
        need none, and the cost of a person's columns with k relations stays a sum of two epsilons.

        Raises:
            Refusal: If it is none.
        """
        if self.row_epsilon is None:
            return None
        _check_epsilon("privacy.row_epsilon", self.row_epsilon)
        return Budget(self.row_epsilon, 0.0)

    @property
    def other_runs(self) -> str:
        """Whether other runs on the data are added up, for the model card."""
        if self._booked is not None:
            return ADDED_UP
        return LEFT_OUT if self.book == NO_BOOK else NOT_ADDED_UP

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Pass the preflight; keep curves of the private graph from trackers."""
        withhold_nonprivate(trainer, pl_module, upload=self.upload_nonprivate)
        check_setup(trainer, pl_module, self, stage)

    def check_journal(
        self, checkpoint: str | Path | None, ledger: PrivacyLedger, shown: dict[str, Any] | None
    ) -> None:
        """Refuse to resume from a checkpoint whose later steps are unknown.

        Args:
            checkpoint: Checkpoint of the resumed run, if any.
            ledger: Ledger of the checkpoint.
            shown: State of the ledger of the journal beside it, None without one.
        """
        if self.lost_steps is not None:
            if checkpoint is None or self.lost_steps < 0:
                raise MisconfigurationException(
                    f"privacy.lost_steps {self.lost_steps}: the setting applies only to a resumed run, "
                    "and must be 0 or more\nleave it out of a new run"
                )
            return
        # An empty ledger was written before the first release, or edited.
        is_pure = ledger.entries and not any(isinstance(e.event, Gaussian) for e in ledger.entries)
        loses = checkpoint is not None and not is_pure
        if loses and (shown is None or not ledger.is_part_of(shown)):
            raise MisconfigurationException(
                f"{checkpoint} has lost {JOURNAL} of its run, which knows of steps that were made "
                "after it was written\n"
                f"copy {JOURNAL} beside the checkpoint; if it is gone, set privacy.lost_steps to the "
                "number of such steps\nor to more: they are booked. 0 is true of a run that has ended"
            )

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Open the journal; book what a killed run released after its last checkpoint."""
        check_new(trainer, pl_module)
        self._statement, self.book_note = None, None
        ledger: PrivacyLedger = pl_module.ledger
        folder = trainer.log_dir  # asks all ranks
        previous = journal_beside(trainer.ckpt_path)
        # Rank 0 alone reads: it may continue this very file before another rank has opened it.
        state = replay(previous) if previous and trainer.is_global_zero else None
        state = trainer.strategy.broadcast(state)
        self.check_journal(trainer.ckpt_path, ledger, state)
        if state is not None:
            if not ledger.is_part_of(state):
                previous = None  # of another run: the lost steps are told
            booked = ledger.steps
            ledger.catch_up(state)
            rank_zero_only(note)(
                f"resuming: {ledger.steps} private steps booked, {ledger.steps - booked} of them "
                "after the checkpoint was written"
            )
        if trainer.is_global_zero:
            leaves_files = trainer.loggers or trainer.checkpoint_callback
            place = Path(folder) if leaves_files and folder else None
            ledger.journal = open_journal(place, previous)
        self._reserve(trainer, pl_module, previous)

    def on_predict_epoch_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Reserve the releases of graphs to predict, which have a new ledger."""
        if pl_module.capabilities.is_inductive:
            self._reserve(trainer, pl_module, None)

    def _reserve(self, trainer: Trainer, method: Released, previous: Path | None) -> None:
        """Reserve the whole plan in the budget book, if there is one; rank 0 alone writes there."""
        self._booked = self.account
        method.ledger.account = None if self.account is None else self.account.record
        if self.account is not None or not names_book(self.book, self.dataset):
            return
        steps = 1 if trainer.predicting else trainer.estimated_stepping_batches
        folder, refused = trainer.log_dir, ""  # asks all ranks
        if trainer.is_global_zero:
            try:
                self._booked = reserve(
                    self.book,
                    self.dataset,
                    trainer,
                    method,
                    steps,
                    self.lost_steps or 0,
                    previous,
                    folder,
                )
                method.ledger.account = self._booked.record
            except BookError as error:
                refused = str(error)
        if refused := trainer.strategy.broadcast(refused):  # all ranks end
            raise BookError(refused)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Return unused budget of a stopped run to the budget book."""
        if self._booked is not None:
            with contextlib.suppress(BookError):  # a later run finds it open, and its process ended
                self._booked.close("stopped")

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Return unused budget to the book, and print the remaining budget of the data."""
        folder = trainer.log_dir if stage == "fit" else None  # asks all ranks
        if self._booked is not None:
            sums = None if folder is None else release_in(Path(folder)) / SUMS
            release = digest(sums) if sums is not None and sums.is_file() else None
            if line := self._booked.close("ended", release):
                self.book_note = line
                print(line)
            pl_module.ledger.account = None  # type: ignore[union-attr]  # of a method

    def on_validation_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Refuse an untrained method, except in ``fit``."""
        check_released(trainer, pl_module)

    on_test_start = on_validation_start

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Check the live loaders; stop at once if a resumed run has spent its budget."""
        check_loaders(trainer, pl_module)
        for entry in pl_module.step_entries() if self.lost_steps else ():
            pl_module.ledger.book_lost(replace(entry, steps=self.lost_steps))
        rest = trainer.estimated_stepping_batches - trainer.global_step
        prove_steps(pl_module.ledger, pl_module.step_entries(), rest)
        self._look_ahead(trainer, pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Check the loaders again: a callback may have exchanged them."""
        check_loader(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the spent budget, and stop if it cannot pay another step."""
        ledger: PrivacyLedger = pl_module.ledger
        budget, rows = self.budget, self.row_budget
        figures = {
            "privacy/epsilon": ledger.epsilon(budget.delta),
            "privacy/delta": ledger.delta(budget.epsilon),
            "privacy/steps": float(ledger.steps),
        }
        if rows is not None:
            spent = ledger.epsilon(rows.delta, relation=Relation.ATTRIBUTES)
            figures["privacy/row_epsilon"] = spent
        pl_module.log_dict(figures, batch_size=1)
        if ledger.entries:
            mark(pl_module)
        self._look_ahead(trainer, pl_module)

    def on_fit_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Print the guarantee of the run."""
        statement = self.statement(pl_module)
        if trainer.is_global_zero:
            guaranteed = statement["epsilon"] != "inf"
            sentence = full_sentence(statement) if guaranteed else statement["guarantee"]
            if guaranteed and self._booked is None and self.book != NO_BOOK:
                self.book_note = (
                    "other runs on these data are not added up: there is no budget book "
                    "(python -m lightning_dpg budget --help)"
                )
                note(self.book_note)
            if guaranteed and not is_shipped(public_path(type(pl_module))):
                print(f"{public_path(type(pl_module))}: {say('product.not_shipped')}")
            print(f"guarantee: {sentence}" if guaranteed else f"no guarantee: {sentence[6:]}")

    def statement(self, method: Released) -> dict[str, Any]:
        """Return the statement of a run that has ended; all ranks call this together."""
        if self._statement is None:
            if method.ledger.budget is None:  # it was trained in a child process
                method.ledger.budget = self.budget
                if self.row_budget is not None:
                    method.ledger.beside[Relation.ATTRIBUTES] = self.row_budget
            self._statement = privacy_statement(method)
        return self._statement

    def _look_ahead(self, trainer: Trainer, method: Released) -> None:
        entries = method.step_entries()
        exhausted = not method.ledger.affords(*entries)
        if self._booked is not None:
            # A resumed run has lost steps: its budget may have room for these, and its plan has not.
            exhausted = exhausted or not self._booked.affords(entries)
        if trainer.strategy.reduce_boolean_decision(exhausted, all=False):
            trainer.should_stop = True


def _check_epsilon(setting: str, epsilon: float) -> None:
    """Refuse an epsilon that is no budget."""
    if not epsilon > 0:
        raise Refusal(f"{setting} must be positive, got {epsilon}")
    if LARGEST_EPSILON < epsilon < math.inf:
        raise Refusal(
            f"{setting} {epsilon:g} protects nothing: set it to {LARGEST_EPSILON:g} or "
            "less, or to .inf for a run without noise"
        )
