"""Faults of a book: lines of its log that were changed, and tables that do not follow from it."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from lightning_dpg.book.database import BookError, Database, SQLite
from lightning_dpg.book.log import Line, broken, lines
from lightning_dpg.book.projection import add_steps, apply
from lightning_dpg.book.schema import TABLES, migrate

Row = tuple[Any, ...]


def faults(database: Database) -> list[str]:
    """Say which lines were changed, removed or inserted, and which rows of tables were.

    Tables are made anew from the log and compared, so that a log that was cut off at its end is found
    by the tables. Somebody who rewrites all lines and all tables is found by a hash of a line that was
    kept elsewhere only.

    Args:
        database: The book.
    """
    try:
        with database.snapshot():  # others may write meanwhile
            log = lines(database)
            stated = [set(database.rows(f"SELECT * FROM {table}")) for table in TABLES]
    except BookError as error:
        return [f"line {_first_unreadable(database)}: cannot be read ({error})"]
    if found := list(broken(log)):
        return found
    with tempfile.TemporaryDirectory() as folder:
        again = SQLite(Path(folder) / "again.db", is_new=True)
        again.rows("PRAGMA synchronous = OFF")
        migrate(again)
        with again.write():
            unreadable = _replay(log, again)
        if unreadable:
            return [unreadable]
        derived = [set(again.rows(f"SELECT * FROM {table}")) for table in TABLES]
        again.close()
    return [
        fault
        for table, now, made in zip(TABLES, stated, derived, strict=True)
        for fault in _differences(table, now, made)
    ]


def _replay(log: list[Line], again: Database) -> str:
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
            found = database.rows("SELECT * FROM book_log WHERE line = ?", line + 1)
        except BookError:
            return line + 1
        if not found:
            return line + 1
        line += 1


def _differences(table: str, stated: set[Row], derived: set[Row]) -> list[str]:
    name = table.removeprefix("book_")
    return [
        f"table {name}: row {row[0]!r} "
        + ("does not follow from the log" if row in stated else "is missing or was changed")
        for row in sorted(stated ^ derived, key=str)
    ]
