"""Measurements that read private graphs: a book logs them, and counts them on no total."""

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.store import append
from lightning_dpg.apps.book.writers import described
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import Identity


class Measurement(NamedTuple):
    """A measurement: a comparison or an audit.

    Attributes:
        command: Its name.
        methods: Names of its methods.
        epsilons: Budgets of its fits or of the release.
    """

    command: str
    methods: list[str]
    epsilons: list[float]


def log_reading(
    url: str,
    command: str,
    methods: Sequence[str],
    epsilons: Sequence[float],
    contents: Iterable[Identity],
) -> None:
    """Log a measurement in a book, if it knows the data, and warn.

    Args:
        url: The book.
        command: Name of the measurement.
        methods: Names of its methods.
        epsilons: Budgets of its fits or of the release.
        contents: Canonical contents of the data (private).

    Raises:
        BookError: If the book cannot be read or written. Nothing was measured then.
    """
    measurement = Measurement(command, list(methods), list(epsilons))
    try:
        book = Book(url)
        try:
            names = log_measurement(book, measurement, contents)
        finally:
            book.close()
    except BookError as error:
        raise BookError(
            f'{error}\nor leave the book out: --no-book (in Python book="{NO_BOOK}")'
        ) from error
    for name in names:
        warnings.warn(
            f"{measurement.command} reads the private data {name!r}: its numbers are not private; "
            "the budget book has logged it, and counts it on no total",
            stacklevel=4,  # the caller of what measures
        )


def log_measurement(
    book: Book, measurement: Measurement, contents: Iterable[Identity]
) -> list[str]:
    """Append a line for each registered data set that is read; nothing is counted on its total.

    Args:
        book: The book.
        measurement: What is measured.
        contents: Canonical contents of the data (private).

    Returns:
        Names of the data sets.

    Raises:
        BookError: If the book was changed.
    """
    data = [book.fingerprint(content) for content in contents]
    names = sorted(
        {
            name
            for each in data
            for name in (*book.names_of(each.edges), *book.names_of_rows(each.rows))
        }
    )
    if not names:
        return []
    book.check()
    with book.database.write():
        user = book.database.user()
        facts = {"who": described(user), "user": user, **measurement._asdict()}
        for name in names:
            append(book.database, "measure", dataset=name, **facts)
    return names
