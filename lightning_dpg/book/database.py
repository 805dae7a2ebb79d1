"""Databases that can hold a budget book: an SQLite file, or PostgreSQL by URL.

Both get the same statements, with ``?`` for values. A write is one transaction, and writes of all
processes follow one another. The SQLite module is Python's own; PostgreSQL needs the extra ``book``.
"""

import contextlib
import importlib
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock, Timeout

from lightning_dpg.book.errors import BookError
from lightning_dpg.book.urls import FORMS, address, has_password, without_password
from lightning_dpg.book.writers import WriterNote, described, system_user

__all__ = ["WAIT", "BookError", "Database", "PostgreSQL", "SQLite", "connect", "has_password"]

WAIT = 60.0
"""Seconds that a process waits for the write of another one."""

_SCHEMES = ("postgresql", "postgres")
_NAME = 63  # characters that PostgreSQL keeps of the name of a program
_NO_PERMISSION = (
    "an owner gives permissions: python -m lightning_dpg budget grant --role spender --to USER"
)
_LOCK = 0x1DB6  # of writes; locks of runs have two keys, so that they never are this one


class _LockTimeout(BookError):
    """Another process has held the lock of writes for too long."""


class Database(ABC):
    """A database with serialized writes, and with locks that end with their process.

    Attributes:
        url: Where it is, without a password.
    """

    url: str

    @abstractmethod
    def user(self) -> str:
        """User who writes: of the system, or of the server, which no client can choose."""

    @abstractmethod
    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement with ``?`` for values, and return its rows."""

    @abstractmethod
    def write(self) -> AbstractContextManager[None]:
        """Begin a transaction that no other write overlaps, and end it with the context."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of the context see the same state, and let others write meanwhile."""

    @abstractmethod
    def tables(self) -> set[str]:
        """Names of the tables."""

    @abstractmethod
    def hold(self, run: int) -> bool:
        """Take the lock of a run until this process ends; return False if another one has it."""

    @abstractmethod
    def drop(self, run: int) -> None:
        """Give back the lock of a run."""

    @abstractmethod
    def check_place(self) -> None:
        """Refuse to go on if the database is no longer at its place; it costs next to nothing."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection and give back all locks."""


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
        self._note = WriterNote(path)
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
                path, timeout=WAIT, isolation_level=None, check_same_thread=False
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

    @contextmanager
    def write(self) -> Iterator[None]:
        """Begin a transaction that no other write overlaps, and end it with the context."""
        with self._transaction("BEGIN IMMEDIATE"):
            self._note.write()
            try:
                yield
            finally:
                self._note.clear()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of the context see the same state, and let others write meanwhile."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.rows(begin)
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def tables(self) -> set[str]:
        """Names of the tables."""
        return {
            name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        }

    def hold(self, run: int) -> bool:
        """Take the lock of a run until this process ends; return False if another one has it."""
        lock = FileLock(f"{self.path}.run-{run}.lock")
        try:
            lock.acquire(timeout=0)
        except (Timeout, PermissionError):  # a file of another user is that of a living run
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
        self._note.close()
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of an error of SQLite where it happened, and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "locked" in text:
                text = _locked(self._note.read())
            elif "readonly" in text or "unable to open" in text:
                text = f"{text}: a run has to write to the book and to its folder"
            elif "malformed" in text or "not a database" in text:
                text = (
                    f"{text}: the file is damaged, and nothing is spent on it; take its last backup"
                )
            raise BookError(f"{self.url}: {text}") from error


class PostgreSQL(Database):
    """A book on a server. Locks of runs are advisory locks of the connection.

    Args:
        url: Address; a password may be in it, and is never printed.
    """

    def __init__(self, url: str) -> None:
        parts = address(url)
        self.url = parts.shown
        self._driver = _driver()
        self._held: set[int] = set()
        options: dict[str, Any] = {
            "user": parts.user or os.environ.get("PGUSER") or system_user(),
            "host": parts.host,
            "port": parts.port,
            "database": parts.database,
            "password": parts.password or os.environ.get("PGPASSWORD"),
            "application_name": described(system_user())[-_NAME:],  # for those that wait
        }
        if parts.socket:
            options["unix_sock"] = f"{parts.socket}/.s.PGSQL.{parts.port}"
        with self._explained():
            self._connection = self._driver.connect(**options)
            self._connection.autocommit = True

    def user(self) -> str:
        """User that the server knows this session by."""
        ((name,),) = self.rows("SELECT session_user")
        return str(name)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement with ``?`` for values, and return its rows."""
        with self._explained():
            cursor = self._connection.cursor()
            cursor.execute(statement.replace("?", "%s"), values)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    @contextmanager
    def write(self) -> Iterator[None]:
        """Begin a transaction that no other write overlaps, and end it with the context."""
        with self._transaction("BEGIN"):
            self.rows(f"SET LOCAL lock_timeout = {int(WAIT * 1000)}")
            try:
                self.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
            except _LockTimeout:
                self.rows("ROLLBACK")
                raise BookError(f"{self.url}: {_locked(self._holder())}") from None
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of the context see the same state, and let others write meanwhile."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.rows(begin)
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            with contextlib.suppress(BookError):  # a lost connection has rolled back
                self.rows("ROLLBACK")
            raise

    def tables(self) -> set[str]:
        """Names of the tables."""
        found = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {name for (name,) in found}

    def hold(self, run: int) -> bool:
        """Take the lock of a run until this process ends; return False if another one has it."""
        if run in self._held:  # the server would give the lock to its holder once more
            return False
        ((is_free,),) = self.rows(f"SELECT pg_try_advisory_lock({_LOCK}, {run:d})")
        if is_free:
            self._held.add(run)
        return bool(is_free)

    def drop(self, run: int) -> None:
        """Give back the lock of a run."""
        if run in self._held:
            self._held.remove(run)
            self.rows(f"SELECT pg_advisory_unlock({_LOCK}, {run:d})")

    def check_place(self) -> None:
        """Do nothing: a server that has lost its database ends the connection."""

    def close(self) -> None:
        """Close the connection, which gives back all locks."""
        with contextlib.suppress(self._driver.Error, OSError):  # the server has closed it before
            self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of an error of the server where it happened, and never the password."""
        try:
            yield
        except (self._driver.Error, OSError) as error:
            said = error.args[0] if error.args else error
            text = said.get("M", said) if isinstance(said, dict) else said
            code = said.get("C") if isinstance(said, dict) else None
            if code == "55P03":
                raise _LockTimeout(f"{self.url}: {text}") from None
            if code == "42501":
                text = f"{text}\n{_NO_PERMISSION}"
            raise BookError(f"{self.url}: {text}") from None

    def _holder(self) -> str:
        """User, machine and process that hold the lock of writes, and since when if that is shown."""
        found = self.rows(
            "SELECT a.usename, a.application_name, a.xact_start AT TIME ZONE 'UTC' FROM pg_locks l "
            "JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
            f"AND l.objid = {_LOCK} AND l.objsubid = 1 AND a.datname = current_database()"
        )
        if not found:
            return "a process that has just ended"
        user, process, since = found[0]
        return f"{user} ({process})" + (f", since {since:%Y-%m-%d %H:%M:%S} UTC" if since else "")


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


def _locked(holder: str) -> str:
    return f"locked for {WAIT:g} seconds by {holder}\ntry again when it has ended"


def _driver() -> ModuleType:
    try:
        return importlib.import_module("pg8000.dbapi")
    except ModuleNotFoundError:
        raise BookError(
            'a book on PostgreSQL needs its driver: pip install "lightning_dpg[book]"'
        ) from None
