"""Verification from the last verified line on, as each reservation does it.

A reservation decides by the tables. The tables must follow from two things: from the log as it was
when all of it was verified, and from the later lines. A *checkpoint* in the book keeps the number and
the hash of the last verified line, a digest of the runs that were closed then (they never change), and
all other rows. The next reservation hashes the later lines only, applies them to these rows, and
compares the result with the tables.

This finds a changed table, a log that was cut off, and a changed later line. It does not find a
changed **earlier** line, which changes no table: ``budget verify`` begins at the first line and finds
it. If a checkpoint does not fit, for whatever reason, the whole book is verified. The checkpoint is
sealed with the key of the book: a user who can write to the file but cannot read the key cannot forge
one. A user who can do both can rewrite the whole log as well.
"""

import contextlib
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import Line, broken
from lightning_dpg.apps.book.projection import OPEN
from lightning_dpg.apps.book.schema import secret
from lightning_dpg.apps.book.verification import (
    Contents,
    Row,
    contents,
    differences,
    faults,
    faults_of,
)
from lightning_dpg.errors import BookError

EVERY = 100
"""Lines from one checkpoint to the next at least; to write one is a transaction."""

_OF_RUNS = (
    "book_runs",
    "book_budgets",
    "book_entries",
)  # their first column is the number of the run


class Checkpoint(NamedTuple):
    """State of a book up to its last verified line.

    Attributes:
        line: Number of the last verified line.
        hash: Its hash.
        last_run: Largest number of a run then.
        open_runs: Numbers of the runs that were open.
        rows: Rows of each table but those of closed runs.
        closed: Digest of the rows of closed runs.
    """

    line: int
    hash: str
    last_run: int
    open_runs: list[int]
    rows: dict[str, list[Row]]
    closed: str

    def has_closed(self, table: str, row: Row) -> bool:
        """Return whether a row belongs to a run that was closed."""
        return table in _OF_RUNS and row[0] <= self.last_run and row[0] not in self.open_runs


def new_faults(database: Database) -> list[str]:
    """Faults of a book since the last checkpoint, or all if there is none that fits.

    Args:
        database: The book.
    """
    try:
        with database.snapshot():  # others may write meanwhile
            last = _last(database)
            current = contents(database, last.line if last else 1)
        if last and not _follows(last, current):
            last = None
            with database.snapshot():
                current = contents(database)
    except BookError:
        return faults(database)
    if last is None and (changes := faults_of(current)):
        return changes
    if current.log and current.log[-1].line >= (last.line if last else 0) + EVERY:
        with contextlib.suppress(
            BookError
        ):  # a user who may not write it verifies more the next time
            _keep(database, current)
    return []


def _follows(last: Checkpoint, current: Contents) -> bool:
    """Return whether later lines and the tables follow from a checkpoint."""
    if not current.log or not _is_verified(current.log[0], last):
        return False
    first, *later = current.log
    if any(broken(later, first)):
        return False
    closed = {
        table: {row for row in rows if last.has_closed(table, row)}
        for table, rows in current.tables.items()
    }
    if _digest(closed) != last.closed:
        return False
    others = {table: rows - closed[table] for table, rows in current.tables.items()}
    return not differences(later, last.rows, others)


def _is_verified(line: Line, last: Checkpoint) -> bool:
    return (line.line, line.hash, line.computed) == (last.line, last.hash, last.hash)


def _keep(database: Database, current: Contents) -> None:
    """Write the checkpoint of a verified book."""
    runs = current.tables["book_runs"]
    open_runs = sorted(row[0] for row in runs if OPEN in row)
    empty = Checkpoint(
        current.log[-1].line,
        current.log[-1].hash,
        max((row[0] for row in runs), default=0),
        open_runs,
        {},
        "",
    )
    closed = {
        table: {row for row in rows if empty.has_closed(table, row)}
        for table, rows in current.tables.items()
    }
    others = {
        table: sorted(rows - closed[table], key=str) for table, rows in current.tables.items()
    }
    state = json.dumps(empty._replace(rows=others, closed=_digest(closed)))
    with database.write():
        database.rows("DELETE FROM book_verified")
        database.rows("INSERT INTO book_verified VALUES (?, ?)", state, _seal(database, state))


def _last(database: Database) -> Checkpoint | None:
    """The checkpoint, if there is one with the seal of the book."""
    for state, seal in database.rows("SELECT state, seal FROM book_verified"):
        if hmac.compare_digest(seal, _seal(database, state)):
            line, hashed, last_run, open_runs, rows, closed = json.loads(state)
            by_table = {table: [tuple(row) for row in each] for table, each in rows.items()}
            return Checkpoint(line, hashed, last_run, open_runs, by_table, closed)
    return None


def _seal(database: Database, state: str) -> str:
    return hmac.new(
        bytes.fromhex(secret(database)), f"checkpoint {state}".encode(), hashlib.sha256
    ).hexdigest()


def _digest(tables: Mapping[str, Iterable[Row]]) -> str:
    ordered = [sorted(tables[table]) for table in _OF_RUNS]
    return hashlib.sha256(json.dumps(ordered).encode()).hexdigest()
