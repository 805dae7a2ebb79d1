"""The budget book of the studio: what the command ``budget`` says, as values for pages."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.apps.studio.folder import STUDIO, own_folder
from lightning_dpg.apps.studio.inquiry import one_at_a_time
from lightning_dpg.budget_book import BOOK_VARIABLE
from lightning_dpg.entry_points import COMMANDS, find_entry
from lightning_dpg.errors import BookError
from lightning_dpg.run.commands.arguments import call

_FILE = Path("budget-book.db")
_PAGE = STUDIO / "budget.html"


def book_url(given: str | None) -> str:
    """Return the URL of the book; empty without one.

    Args:
        given: Option of the command; by default that of the environment, or the book in the folder.
    """
    url = given or os.environ.get(BOOK_VARIABLE) or ""
    return url or (f"sqlite:///{_FILE}" if _FILE.is_file() else "")


def data_sets(book: str) -> list[dict[str, Any]]:
    """Return the summary of each data set of a book; none without a book.

    Args:
        book: Its URL.
    """
    found: list[dict[str, Any]] = list(_budget("show", book)["datasets"]) if book else []
    return found


def register(
    answers: Answers, book: str, name: str, epsilon: str, delta: str, row_epsilon: str
) -> None:
    """Register data with a total of all their releases; a book is made only if that succeeds.

    Args:
        answers: Data, and what is protected.
        book: URL of the book; empty to make one.
        name: Name of the data in the book.
        epsilon: Total.
        delta: Total.
        row_epsilon: Total of the private columns, if there are any; empty for that of the relations.

    Raises:
        CommandError: If the book refuses it.
    """
    # A registration knows data by edges and ids alone: columns of persons are left out.
    data, *words = replace(answers, policy={}, names="").words_of_data()
    options = [
        w for w in words if not w.startswith("--data.") or w.startswith("--data.nodes.column=")
    ]
    relation = "node" if answers.secret == "person" else "edge"
    rows = [f"--row-epsilon={row_epsilon or epsilon}"] * answers.has_private_columns
    total = [f"--relation={relation}", f"--epsilon={epsilon}", f"--delta={delta or 0}"]
    scratch = own_folder() / "new-book.db"
    place = book or f"sqlite:///{scratch}"
    if not book:
        scratch.unlink(missing_ok=True)
        _budget("init", place)
    _budget("register", place, name, data, *options, *total, *rows)
    if not book:
        os.link(scratch, _FILE)  # never over another one
        scratch.unlink()


def further(book: str, name: str) -> list[dict[str, Any]]:
    """Return what is left of a total, in equal further releases.

    Args:
        book: URL of the book.
        name: Data set.
    """
    plans: list[dict[str, Any]] = list(_budget("plan", book, name)["plans"])
    return plans


def page(book: str) -> str:
    """Return the page of a book for an officer."""
    own_folder()
    _budget("html", book, f"--out={_PAGE}", "--overwrite")
    _PAGE.chmod(0o600)
    return _PAGE.read_text(encoding="utf-8")


def _budget(command: str, book: str, *words: str) -> dict[str, Any]:
    budget = find_entry(COMMANDS, "budget")
    if budget is None:
        raise BookError(
            "the budget book is not installed: leave out --book, or install lightning_dpg anew"
        )
    with one_at_a_time:
        return dict(call(budget, [command, *words, f"--book={book}"]).values or {})
