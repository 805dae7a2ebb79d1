"""Lines of the log on measurements that read the data and release nothing."""

from collections.abc import Iterable
from typing import NamedTuple

from lightning_dpg.book.book import Book
from lightning_dpg.book.projection import record
from lightning_dpg.book.writers import described
from lightning_dpg.interfaces import Identity


class Measurement(NamedTuple):
    """A measurement, such as a comparison, an audit or an attack.

    Attributes:
        command: Its name.
        methods: Names of its methods.
        epsilons: Budgets of its fits or of the release.
    """

    command: str
    methods: list[str]
    epsilons: list[float]


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
    edges = {book.fingerprint(content).edges for content in contents}
    known = sorted({name for each in edges for name in book.names_of(each)})
    if not known:
        return []
    book.check()
    with book.database.write():
        user = book.database.user()
        facts = {"who": described(user), "user": user, **measurement._asdict()}
        for name in known:
            record(book.database, "measure", dataset=name, **facts)
    return known
