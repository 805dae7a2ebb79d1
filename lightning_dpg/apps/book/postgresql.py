"""A budget book on a PostgreSQL server, and roles of its users; its driver comes with the extra ``book``."""

import contextlib
import importlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

from lightning_dpg.apps.book import database
from lightning_dpg.apps.book.database import Database, locked
from lightning_dpg.apps.book.urls import address
from lightning_dpg.apps.book.writers import described, system_user
from lightning_dpg.errors import BookError

_NAME = 63  # characters that PostgreSQL keeps of the name of a program
_NO_PERMISSION = (
    "an owner gives permissions: python -m lightning_dpg budget grant --role spender --to USER"
)
_LOCK = 0x1DB6  # of writes; locks of runs have two keys, so that they never are this one
_OF_BOOK = "hashoid('book_log'::regclass)"  # first key: schemas of one database hold several books

_PERMISSIONS = {
    "spender": ("INSERT ON book_log", "UPDATE ON book_head"),
    "owner": ("INSERT ON book_log", "INSERT, UPDATE ON book_head"),
}
"""Permissions of each role beside those to read. Only owners may insert into the table of the head, by
which the policy of the log knows them."""
_POLICIES = (
    "ALTER TABLE book_log ENABLE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS book_read ON book_log",
    "CREATE POLICY book_read ON book_log FOR SELECT USING (true)",
    "DROP POLICY IF EXISTS book_append ON book_log",
    # Lines that book and close belong to a run, whose line of reservation names the user.
    """CREATE POLICY book_append ON book_log FOR INSERT WITH CHECK (
        kind IN ('book', 'close') OR body::json->>'user' = session_user
        AND (kind IN ('reserve', 'measure') OR has_table_privilege('book_head', 'INSERT')))""",
)


class _LockTimeout(BookError):
    """Another process has held the lock of writes for too long."""


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
        # A snapshot, as of stricter levels, would be older than the lock that a write waits for.
        with self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED"):
            self.rows(f"SET LOCAL lock_timeout = {int(database.WAIT * 1000)}")
            try:
                self.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
            except _LockTimeout:
                self.rows("ROLLBACK")
                raise BookError(f"{self.url}: {locked(self._holder())}") from None
            yield

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of the context see the same state, and let others write meanwhile."""
        return self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _roll_back(self) -> None:
        with contextlib.suppress(BookError):  # a lost connection has rolled back
            self.rows("ROLLBACK")

    def tables(self) -> set[str]:
        """Names of the tables."""
        rows = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {name for (name,) in rows}

    def hold(self, run: int) -> bool:
        """Take the lock of a run until this process ends; return False if another one has it."""
        if run in self._held:  # the server would give the lock to its holder once more
            return False
        ((is_free,),) = self.rows(f"SELECT pg_try_advisory_lock({_OF_BOOK}, {run:d})")
        if is_free:
            self._held.add(run)
        return bool(is_free)

    def drop(self, run: int) -> None:
        """Give back the lock of a run."""
        if run in self._held:
            self._held.remove(run)
            self.rows(f"SELECT pg_advisory_unlock({_OF_BOOK}, {run:d})")

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
            details = error.args[0] if error.args else error
            text = details.get("M", details) if isinstance(details, dict) else details
            if str(text).startswith("Can't create a connection"):
                text = "no server answers there: check host and port, or start it"
            code = details.get("C") if isinstance(details, dict) else None
            if code == "55P03":
                raise _LockTimeout(f"{self.url}: {text}") from None
            if code == "42501":
                text = f"{text}\n{_NO_PERMISSION}"
            raise BookError(f"{self.url}: {text}") from None

    def _holder(self) -> str:
        """User, machine and process that hold the lock of writes, and since when if that is shown."""
        rows = self.rows(
            "SELECT a.usename, a.application_name, a.xact_start AT TIME ZONE 'UTC' FROM pg_locks l "
            "JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
            f"AND l.objid = {_LOCK} AND l.objsubid = 1 AND a.datname = current_database()"
        )
        if not rows:
            return "a process that has just ended"
        user, process, since = rows[0]
        return f"{user} ({process})" + (f", since {since:%Y-%m-%d %H:%M:%S} UTC" if since else "")


def give_role(database: Database, role: str, user: str) -> None:
    """Let a user of the server spend on a book, or own it.

    Args:
        database: The book, opened by the user who made it.
        role: ``spender`` or ``owner``.
        user: User of the server.

    Raises:
        BookError: If the server refuses it, or if the book is a file.
    """
    if role not in _PERMISSIONS:
        raise BookError(f"a role is one of {', '.join(_PERMISSIONS)}, got {role!r}")
    if not isinstance(database, PostgreSQL):
        raise BookError(
            f"{database.url}: roles are permissions of PostgreSQL, and a file has none\n"
            "make the book with a token of its owner: budget init --token FILE"
        )
    name = user.replace('"', '""')
    permissions = ("SELECT ON book_facts, book_head, book_log", *_PERMISSIONS[role])
    with database.write():
        for statement in (*_POLICIES, *(f'GRANT {each} TO "{name}"' for each in permissions)):
            database.rows(statement)


def _driver() -> ModuleType:
    try:
        return importlib.import_module("pg8000.dbapi")
    except ModuleNotFoundError:
        raise BookError(
            'a book on PostgreSQL needs its driver: pip install "lightning_dpg[book]"'
        ) from None
