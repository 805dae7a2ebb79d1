"""Lines on stderr that say how far a long command is."""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from lightning_dpg.outcome import note

Item = TypeVar("Item")


def at_terminal() -> bool:
    """Return whether a person reads stderr, and no cron mail or log collector."""
    return sys.stderr is not None and sys.stderr.isatty()


def duration(seconds: float) -> str:
    """Write a number of seconds in the unit that fits.

    Args:
        seconds: The number.
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def following(command: str, unit: str) -> Iterator["Progress"]:
    """Say after ten seconds, and then every minute, how far a command is.

    The lines are notes for people on stderr, at a terminal or not; ``--quiet`` leaves them out.

    Args:
        command: Name of the command.
        unit: What it works on, one after another, in the plural.

    >>> with following("audit", "fits") as progress:
    ...     squares = [number**2 for number in counted(range(3))]
    >>> squares, progress.line(90)
    ([0, 1, 4], 'audit: 2 min so far, 3 of 3 fits done')
    """
    progress, ended = Progress(command, unit), threading.Event()

    def speak() -> None:
        started, wait = time.monotonic(), 10
        while not ended.wait(wait):
            note(progress.line(time.monotonic() - started))
            wait = 60

    threading.Thread(target=speak, daemon=True).start()
    before = _CURRENT.set(progress)
    try:
        yield progress
    finally:
        _CURRENT.reset(before)
        ended.set()


def counted(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, and count those that are done if a command is followed.

    Args:
        items: What the command works on, one after another.
    """
    progress = _CURRENT.get()
    yield from items if progress is None else progress.of(items)


class Progress:
    """How far a command is."""

    def __init__(self, command: str, unit: str) -> None:
        self._command, self._unit = command, unit
        self._done = self._total = 0

    def of(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield the items, and count those that are done.

        Args:
            items: What the command works on, one after another.
        """
        self._total += len(items)
        for item in items:
            yield item
            self._done += 1

    def line(self, seconds: float) -> str:
        """Say what is done after a number of seconds, and the time left if it can be told.

        Args:
            seconds: Time since the start.
        """
        parts = [f"{self._command}: {duration(seconds)} so far"]
        if self._total > 1:
            parts.append(f"{self._done} of {self._total} {self._unit} done")
        if 0 < self._done < self._total:
            left = seconds / self._done * (self._total - self._done)
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)
"""Progress of the command that runs; in Python none is followed."""
