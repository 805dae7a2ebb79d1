"""A database that holds a budget book, whichever it is.

Each gets the same statements, with ``?`` for values. A write is one transaction, and writes of all
processes follow one another.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_dpg.apps.book.state import State

WAIT = 60.0
"""Seconds that a process waits for the write of another one."""


class Database(ABC):
    """A database with serialized writes, and with locks that end with their process.

    Attributes:
        url: Where it is, without a password.
        state: State after the lines that this process has read; None before the first one is read.
    """

    url: str
    state: "State | None" = None

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

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Begin a transaction by a statement; commit it, or roll it back if the context fails."""
        self.rows(begin)
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            self.state = None  # it may have followed lines that are rolled back
            self._roll_back()
            raise

    @abstractmethod
    def _roll_back(self) -> None:
        """Roll back a transaction that may have ended already."""

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


def locked(holder: str) -> str:
    """Say which process has held the lock of writes for too long.

    Args:
        holder: That process.
    """
    return f"locked for {WAIT:g} seconds by {holder}\ntry again when it has ended"
