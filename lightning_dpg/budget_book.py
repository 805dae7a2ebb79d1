"""The core's door to the budget book, an application that need not be installed.

Without it this module refuses settings that name a book.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning_dpg.entry_points import BOOK, find_entry
from lightning_dpg.errors import BookError

if TYPE_CHECKING:
    from pytorch_lightning import Trainer

    from lightning_dpg.interfaces import Account, Identity, Released
    from lightning_dpg.privacy.events import LedgerEntry

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
    remedy = f"leave out privacy.book, privacy.dataset and {BOOK_VARIABLE}"
    reserve_in_book = _of_book("reserve", remedy)
    account: Account = reserve_in_book(
        book, dataset, trainer, method, steps, lost_steps, previous, folder
    )
    return account


def reserve_at_once(
    book: str | None,
    dataset: str | None,
    content: Identity,
    method: str,
    entries: Sequence[LedgerEntry],
    folder: Path,
) -> Account:
    """Book a run of several parts before the first of them.

    Args:
        book: URL of the book; by default that of the environment.
        dataset: Name of the data set; by default it is recognized.
        content: Canonical content of the data (private).
        method: Name of the run.
        entries: Its whole cost, an entry for each relation; that of the data set is the first.
        folder: Folder of the run.

    Raises:
        BookError: If the book refuses it. Nothing is booked then.
    """
    reserve_in_book = _of_book("reserve_at_once", f"leave out --book and {BOOK_VARIABLE}")
    account: Account = reserve_in_book(book, dataset, content, method, entries, folder)
    return account


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
    log = _of_book("log_reading", f"leave out --book and {BOOK_VARIABLE}")
    log(book or os.environ[BOOK_VARIABLE], command, methods, epsilons, contents)


def _of_book(name: str, remedy: str) -> Any:
    """Return a function of the budget book."""
    function = find_entry(BOOK, name)
    if function is None:
        raise BookError(
            f"the budget book is not installed: {remedy}, or install lightning_dpg anew"
        )
    return function
