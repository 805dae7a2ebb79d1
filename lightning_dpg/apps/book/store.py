"""The store of a book: its log, read into a state, and appended to.

The log is all that a book stores. Who opens a book reads all lines, hashes each of them, and folds them
into a state; after that, only new lines are read. :func:`faults`, which each reservation asks, begins at
the first line again: a line that was changed at any place is found before anything is spent. The table
``book_head`` names the last line, so that a log whose end was cut off is found, too.
"""

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.identity import key_digest
from lightning_dpg.apps.book.log import FIRST, Line, lines, next_line
from lightning_dpg.apps.book.postgresql import PostgreSQL
from lightning_dpg.apps.book.sqlite_file import SQLite
from lightning_dpg.apps.book.state import DataSet, State
from lightning_dpg.apps.book.urls import FORMS, without_password
from lightning_dpg.errors import BookError, nearest

VERSION = 3
"""Version of the tables of this program."""

HEAD = "CREATE TABLE book_head (line BIGINT NOT NULL, hash TEXT NOT NULL)"
"""Table of one row, which names the last line of the log."""

_TABLES = (
    "CREATE TABLE book_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE book_log (
        line BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    HEAD,
)
_SCHEMES = ("postgresql", "postgres")


def connect(url: str, *, is_new: bool = False) -> Database:
    """Open the database of a URL.

    Args:
        url: ``sqlite:///`` and a path, or ``postgresql://user@host/database``.
        is_new: Whether to make the file.

    Raises:
        BookError: If it cannot be opened. No message has a password.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and rest != "/":
        return SQLite(Path(rest[1:]).expanduser(), is_new=is_new)
    if scheme in _SCHEMES:
        return PostgreSQL(url)
    raise BookError(f"a book is a URL of the form {FORMS}, got {without_password(url)}")


def make(database: Database) -> None:
    """Make the tables of a new book; call it inside of a write."""
    for statement in _TABLES:
        database.rows(statement)
    database.rows("INSERT INTO book_head VALUES (0, ?)", FIRST)
    database.rows("INSERT INTO book_facts VALUES ('secret', ?)", secrets.token_hex(32))
    database.rows("INSERT INTO book_facts VALUES ('version', ?)", str(VERSION))


def secret(database: Database) -> str:
    """Key of a book, as hexadecimal digits.

    Raises:
        BookError: If there is none.
    """
    for (key,) in database.rows("SELECT value FROM book_facts WHERE name = 'secret'"):
        if re.fullmatch("[0-9a-f]{64}", key):
            return str(key)
    raise BookError(f"{database.url}: the key of the book is gone; take its last backup")


def version(database: Database) -> int:
    """Version of a book; 0 of an empty database.

    Raises:
        BookError: If it is newer than this program.
    """
    if "book_facts" not in database.tables():
        return 0
    rows = database.rows("SELECT value FROM book_facts WHERE name = 'version'")
    number = int(rows[0][0]) if rows else 0
    if number > VERSION:
        raise BookError(
            f"{database.url}: a book of version {number}, and this program knows versions up to "
            f"{VERSION}\ninstall a newer lightning_dpg"
        )
    return number


def state_of(database: Database) -> State:
    """State of a book now; only lines after the last one that was seen are read.

    A line that was changed before changes no decision here: :func:`faults` finds it.

    Raises:
        BookError: If the last line that was seen is gone, or is another one.
    """
    if database.state is None:
        database.state = State()
    state = database.state
    last = state.last
    new = lines(database, last.line if last else 1)
    if last and new[:1] != [last]:
        raise BookError(
            f"{database.url}: line {last.line} is gone, or is another one than before\n"
            "the book was exchanged, as by a backup, and nothing more is released"
        )
    for line in new[1:] if last else new:
        state.read(line)
    return state


def append(database: Database, kind: str, **facts: Any) -> Line:
    """Append a line and follow it; call it inside of a write.

    Raises:
        BookError: If the clock of this machine is minutes behind the last line.
        Refusal: If no such line can follow.
    """
    state = state_of(database)
    line = next_line(state.last, kind, facts, database.url)
    state.follow(line)
    database.rows("INSERT INTO book_log VALUES (?, ?, ?, ?, ?, ?)", *line)
    database.rows("UPDATE book_head SET line = ?, hash = ?", line.line, line.hash)
    return line


def faults(database: Database) -> list[str]:
    """Say which lines were changed, removed or inserted, from the first line on.

    If somebody rewrites all lines and the head, only a hash that was kept elsewhere shows it.

    Args:
        database: The book.
    """
    try:
        with database.snapshot():  # others may write meanwhile
            state, changes = faults_of_log(database)
            head = database.rows("SELECT line, hash FROM book_head")
    except BookError as error:
        return [f"line {_first_unreadable(database)}: cannot be read ({error})"]
    return changes or _faults_of_head(state, head)


def faults_of_log(database: Database) -> tuple[State, list[str]]:
    """Read a log from its first line on, and say which lines were changed.

    Call it inside of a snapshot or a write.

    Raises:
        BookError: If the log or the key of the book cannot be read.
    """
    database.state = None
    state, digest = state_of(database), key_digest(secret(database))
    # Data that the book no longer recognizes could be registered a second time.
    strange = [line for line, of_line in state.keys if of_line != digest]
    text = "line {}: registered under another key than that of the book"
    return state, state.faults or [*map(text.format, strange)]


def _faults_of_head(state: State, head: Sequence[tuple[Any, ...]]) -> list[str]:
    """Say that the log does not end where the head says."""
    line, digest = (state.last.line, state.last.hash) if state.last else (0, FIRST)
    if [*head] == [(line, digest)]:
        return []
    if len(head) == 1 and head[0][0] > line:
        return [f"line {line + 1}: removed, with all lines up to {head[0][0]}"]
    return [f"line {line}: is not the last line that was written by a run or an owner"]


def _first_unreadable(database: Database) -> int:
    """Number of the first line that a damaged file does not give back."""
    line = 0
    while True:
        try:
            if not database.rows("SELECT * FROM book_log WHERE line = ?", line + 1):
                return line + 1
        except BookError:
            return line + 1
        line += 1


def data_set(database: Database, name: str) -> DataSet:
    """A data set by its name.

    Raises:
        BookError: If the book has none of this name.
    """
    by_name = state_of(database).data_sets
    if name not in by_name:
        raise BookError(
            f"{database.url}: no data set {name!r}{nearest(name, by_name)}\n"
            f"registered: {', '.join(by_name) or 'none'}; see python -m lightning_dpg budget register"
        )
    return by_name[name]
