"""Faults of a book: lines of its log that were changed, and tables that do not follow from it."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.identity import key_digest
from lightning_dpg.apps.book.log import Line, broken, lines
from lightning_dpg.apps.book.projection import add_steps, apply
from lightning_dpg.apps.book.schema import TABLES, migrate, secret
from lightning_dpg.apps.book.sqlite_file import SQLite
from lightning_dpg.errors import BookError

Row = tuple[Any, ...]


class Contents(NamedTuple):
    """Contents of a book at one moment.

    Attributes:
        log: Lines of the log, all or from one on.
        tables: Rows of each table.
        key: Key of the book.
    """

    log: list[Line]
    tables: dict[str, set[Row]]
    key: str


def faults(database: Database) -> list[str]:
    """Say which lines were changed, removed or inserted, and which rows of tables were.

    The tables are made anew from the log and compared. This also finds a log whose end was cut off.
    If somebody rewrites all lines and all tables, only a hash that was kept elsewhere shows it.

    Args:
        database: The book.
    """
    try:
        with database.snapshot():  # others may write meanwhile
            whole = contents(database)
    except BookError as error:
        return [f"line {_first_unreadable(database)}: cannot be read ({error})"]
    return faults_of(whole)


def faults_of(whole: Contents) -> list[str]:
    """Say which lines and rows of a whole book were changed.

    Args:
        whole: The book from its first line on.
    """
    if changes := list(broken(whole.log)):
        return changes
    return differences(whole.log, {}, whole.tables) or list(_under_another_key(whole))


def contents(database: Database, start: int = 1) -> Contents:
    """Lines from a number on, and all tables; call it inside of a snapshot."""
    tables = {table: set(database.rows(f"SELECT * FROM {table}")) for table in TABLES}
    return Contents(lines(database, start), tables, secret(database))


def differences(
    log: Sequence[Line], before: Mapping[str, Iterable[Row]], current: Mapping[str, set[Row]]
) -> list[str]:
    """Say which rows do not follow from lines, or which line cannot be read.

    Args:
        log: Lines.
        before: Rows of each table before them.
        current: Rows of each table now.
    """
    with tempfile.TemporaryDirectory() as folder:
        again = SQLite(Path(folder) / "again.db", is_new=True)
        again.rows("PRAGMA synchronous = OFF")
        migrate(again)
        with again.write():
            for table, rows in before.items():
                for row in rows:
                    again.rows(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
            unreadable = _replay(log, again)
        if unreadable:
            return [unreadable]
        derived = {table: set(again.rows(f"SELECT * FROM {table}")) for table in TABLES}
        again.close()
    return [
        fault for table in TABLES for fault in _differences(table, current[table], derived[table])
    ]


def _under_another_key(whole: Contents) -> Iterator[str]:
    """Say which data sets the book no longer recognizes; they could be registered a second time."""
    for line in whole.log:
        if line.kind == "register" and line.facts.get("key") != key_digest(whole.key):
            yield f"line {line.line}: registered under another key than that of the book"


def _replay(log: Sequence[Line], again: Database) -> str:
    """Make the tables anew; say which line cannot be read, if any."""
    steps: Counter[tuple[int, int]] = Counter()  # of successive bookings, which are most lines
    line = None
    try:
        for line in log:
            if line.kind == "book":
                facts = line.facts
                steps[facts["run"], facts["place"]] += facts["steps"]
                continue
            _add(steps, again)
            apply(again, line)
        _add(steps, again)
    except (KeyError, TypeError, ValueError, BookError) as error:
        return f"line {line.line if line else 1}: cannot be read ({error})"
    return ""


def _add(steps: Counter[tuple[int, int]], again: Database) -> None:
    for (run, place), count in steps.items():
        add_steps(again, run, place, count)
    steps.clear()


def _first_unreadable(database: Database) -> int:
    """Number of the first line that a damaged file does not give back."""
    line = 0
    while True:
        try:
            rows = database.rows("SELECT * FROM book_log WHERE line = ?", line + 1)
        except BookError:
            return line + 1
        if not rows:
            return line + 1
        line += 1


def _differences(table: str, current: set[Row], derived: set[Row]) -> list[str]:
    name = table.removeprefix("book_")
    return [
        f"table {name}: row {row[0]!r} "
        + ("does not follow from the log" if row in current else "is missing or was changed")
        for row in sorted(current ^ derived, key=str)
    ]
