"""The only module of the core that imports the budget book.

The package runs without the folder ``book/``. Then this module refuses settings that name a book, and
the command ``budget``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lightning_dpg.errors import BookError
from lightning_dpg.outcome import Outcome

if TYPE_CHECKING:
    from pytorch_lightning import Trainer

    from lightning_dpg.interfaces import Account, Identity, Released

BOOK_VARIABLE = "LIGHTNING_DPG_BOOK"
"""Variable that holds the URL of the book of all runs."""
NO_BOOK = "none"
"""Value of ``privacy.book`` that leaves the book of the environment out."""


def names_book(book: str | None, dataset: str | None = None) -> bool:
    """Whether settings or the environment name a book, or a data set of one.

    Args:
        book: ``privacy.book``.
        dataset: ``privacy.dataset``.
    """
    url = book or os.environ.get(BOOK_VARIABLE)
    return url != NO_BOOK and bool(url or dataset)


def reserve(
    book: str | None,
    dataset: str | None,
    trainer: Trainer,
    method: Released,
    steps: float,
    lost_steps: int,
    previous: Path | None,
    folder: str | None,
) -> Account:
    """Reserve the whole plan of a run in the budget book.

    Args:
        book: ``privacy.book``.
        dataset: ``privacy.dataset``.
        trainer: Trainer of the run.
        method: Method with its budget.
        steps: Private steps of the whole run.
        lost_steps: Steps of the run that this one continues which neither its ledger nor a journal
            shows. They are booked even if the total does not pay for them.
        previous: Journal of the run that this one continues, if any.
        folder: Folder of the run, if it has one.

    Raises:
        BookError: If the book refuses it. Nothing but the lost steps is booked then.
    """
    with _needed_by(f"leave out privacy.book, privacy.dataset and {BOOK_VARIABLE}"):
        # Start-up time: most runs have no book.
        from lightning_dpg.apps.book import booking
    return booking.reserve(book, dataset, trainer, method, steps, lost_steps, previous, folder)


def log_reading(
    command: str,
    methods: Sequence[str],
    epsilons: Sequence[float],
    contents: Iterable[Identity],
    book: str | None,
) -> None:
    """Log a measurement in the budget book, if there is one that knows the data, and warn.

    Args:
        command: Name of the measurement.
        methods: Names of its methods.
        epsilons: Budgets of its fits or of the release.
        contents: Canonical contents of the data (private); it is computed if there is a book.
        book: URL of the book; by default that of the environment. ``none`` leaves both out.

    Raises:
        BookError: If the book cannot be read or written. Nothing was measured then.
    """
    if not names_book(book):
        return
    with _needed_by(f"leave out --book and {BOOK_VARIABLE}"):
        # Start-up time: most measurements have no book.
        from lightning_dpg.apps.book import measurement
    measurement.log_reading(
        book or os.environ[BOOK_VARIABLE],
        measurement.Measurement(command, list(methods), list(epsilons)),
        contents,
    )


def run_command(args: list[str]) -> Outcome:
    """Run the command ``budget``.

    Args:
        args: Command line after ``budget``.
    """
    with _needed_by("the command budget needs it"):
        # Start-up time: the other commands do not need it.
        from lightning_dpg.apps.book.commands import budget
    return budget.run(args)


@contextlib.contextmanager
def _needed_by(remedy: str) -> Iterator[None]:
    """Say that the book is not installed, where an import does not find it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("lightning_dpg.apps.book"):
            raise
        raise BookError(
            f"the budget book (lightning_dpg.apps.book) is not installed: {remedy}"
        ) from error
