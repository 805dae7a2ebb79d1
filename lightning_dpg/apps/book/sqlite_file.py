"""A budget book in one SQLite file, by the module of Python."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lightning_dpg.apps.book import database
from lightning_dpg.apps.book.database import Database, locked
from lightning_dpg.apps.book.writers import system_user
from lightning_dpg.errors import BookError


class SQLite(Database):
    """A book in one file. Locks of runs are files beside it.

    Args:
        path: The file.
        is_new: Whether to make it; otherwise it has to exist.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self.url = f"sqlite:///{path}"
        self.path = path
        self._locks: dict[int, FileLock] = {}
        if not is_new and not path.is_file():
            raise BookError(
                f"{path}: no such book\nmake one: python -m lightning_dpg budget init --book {self.url}"
            )
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # the book is as private as the data
        with self._explained():
            # Statements begin and end transactions themselves.
            self._connection = sqlite3.connect(
                path, timeout=database.WAIT, isolation_level=None, check_same_thread=False
            )
            if is_new:  # the file keeps it, and setting it waits for nobody
                self.rows("PRAGMA journal_mode = WAL")
            self.rows("PRAGMA synchronous = FULL")  # a booking outlasts a power failure
            self._file = path.stat()

    def user(self) -> str:
        """User that the system runs this process as."""
        return system_user()

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement with ``?`` for values, and return its rows."""
        with self._explained():
            return self._connection.execute(statement, values).fetchall()

    def write(self) -> AbstractContextManager[None]:
        """Begin a transaction that no other write overlaps, and end it with the context."""
        return self._transaction("BEGIN IMMEDIATE")

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of the context see the same state, and let others write meanwhile."""
        return self._transaction("BEGIN")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()

    def tables(self) -> set[str]:
        """Names of the tables."""
        return {
            name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        }

    def hold(self, run: int) -> bool:
        """Take the lock of a run until this process ends; return False if another one has it."""
        # Whoever may write to the book may find out that the run of another user was killed.
        mode = self._file.st_mode & 0o666 | 0o600
        lock = FileLock(f"{self.path}.run-{run}.lock", mode=mode)
        try:
            lock.acquire(timeout=0)
        except (Timeout, PermissionError):
            return False
        self._locks[run] = lock
        return True

    def drop(self, run: int) -> None:
        """Give back the lock of a run."""
        if run in self._locks:
            lock = self._locks.pop(run)
            Path(lock.lock_file).unlink(missing_ok=True)  # before others can take it
            lock.release()

    def check_place(self) -> None:
        """Refuse to go on if another file is at the path, or none: writes would go nowhere."""
        try:
            is_there = os.path.samestat(self.path.stat(), self._file)
        except FileNotFoundError:
            is_there = False
        if not is_there:
            raise BookError(
                f"{self.path}: the book was removed or exchanged while it was in use\n"
                "nothing more is released; put the file back and look at it with budget verify"
            )

    def close(self) -> None:
        """Close the connection and give back all locks."""
        for run in list(self._locks):
            self.drop(run)
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of an error of SQLite where it happened, and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "locked" in text:
                text = locked("another program")
            elif "readonly" in text or "unable to open" in text:
                text = f"{text}: a run has to write to the book and to its folder"
            elif "malformed" in text or "not a database" in text:
                text = (
                    f"{text}: the file is damaged, and nothing is spent on it; take its last backup"
                )
            raise BookError(f"{self.url}: {text}") from error
