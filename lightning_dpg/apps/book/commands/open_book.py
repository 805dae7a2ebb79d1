"""The open budget book of a subcommand of ``budget``."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightning_dpg.budget_book import BOOK_VARIABLE
from lightning_dpg.errors import CommandError

if TYPE_CHECKING:
    from lightning_dpg.apps.book.book import Book


@contextlib.contextmanager
def open_book(
    book: str | None, token: Path | None = None, *, is_new: bool = False
) -> Iterator["Book"]:
    """Open a book, and close it in the end.

    Args:
        book: URL of the book, sqlite:///book.db or postgresql://user@host/database; by default
            ``$LIGHTNING_DPG_BOOK``.
        token: File with the owner's token.
        is_new: Whether to make it.

    Raises:
        CommandError: If there is no URL.
    """
    url = book or os.environ.get(BOOK_VARIABLE)
    if not url:
        raise CommandError(f"no book: give --book URL, or set {BOOK_VARIABLE}")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.apps.book.book import Book

    with contextlib.closing(Book(url, is_new=is_new, token=token)) as place:
        yield place
