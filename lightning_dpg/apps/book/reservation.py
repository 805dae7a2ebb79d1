"""A reserved run: it books each release before the release is made, and gives back the rest.

**Blocks.** A booking is a transaction that waits for the disk. So a run books steps ahead, in a block of
as many steps as half a second takes; slower steps are booked one by one. While a run goes on, the
book shows an upper bound: a step is made only if it is booked. When the run ends, the book keeps the
steps that were made.

**Killed runs keep their block.** The journal of a killed run often shows fewer steps than the book, but
the book counts. The journal belongs to the user who spends: a line can be lost with the power or cut
off by hand, and spent budget would be given back. At most one block is lost in this way.

**A run without its book stops.** Before each step it checks that the file of the book is in place, and
before each block that the book still has the last line of the run. Earlier steps are booked already.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.state import OPEN
from lightning_dpg.apps.book.store import append, state_of
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.events import LedgerEntry

BLOCK_SECONDS = 0.5
"""Seconds of steps that are booked together at most, and that a killed run loses."""


class Reservation:
    """The whole plan of a run, held until it is closed.

    Args:
        database: The book.
        run: Number of the run.
        plan: Releases that are reserved.
        booked: Number of booked steps of each.
        lost: Releases that an earlier run of the family has booked, and that no journal shows.

    Attributes:
        run: Number of the run.
        lost: Releases of the family that no journal shows.
    """

    def __init__(
        self,
        database: Database,
        run: int,
        plan: Sequence[LedgerEntry],
        booked: Sequence[int],
        lost: Sequence[LedgerEntry] = (),
    ) -> None:
        self.run = run
        self.lost = list(lost)
        self._database = database
        self._last = self._last_line()
        self._plan = list(plan)
        self._released = list(booked)
        self._booked = list(booked)
        self._blocks = [1] * len(plan)
        self._since = [0.0] * len(plan)  # when the last block of each was booked

    def book(self, *entries: LedgerEntry) -> None:
        """Book a release that is about to be made: one entry for each relation that it costs.

        All are booked in one transaction, or none.

        Raises:
            BookError: If it was not reserved, if the run was closed by another process, or if the
                book is gone or was replaced.
        """
        parts = self._parts(entries)
        self._database.check_place()
        if any(self._released[place] + steps > self._booked[place] for place, steps in parts):
            self._book_ahead(parts)
        for place, steps in parts:
            self._released[place] += steps

    @property
    def unreleased(self) -> list[LedgerEntry]:
        """Releases that are reserved and not made yet."""
        return [
            replace(entry, steps=entry.steps - released)
            for entry, released in zip(self._plan, self._released, strict=True)
            if entry.steps > released
        ]

    def affords(self, entries: Sequence[LedgerEntry]) -> bool:
        """Return whether one more release of each is reserved."""
        try:
            self._parts(entries)
        except BookError:
            return False
        return True

    def close(self, outcome: str, release: str | None = None) -> None:
        """Give back the releases that were not made.

        Args:
            outcome: ``ended`` or ``stopped``.
            release: Digest of the release, if there is one.
        """
        self._database.check_place()
        with self._database.write():
            if self._outcome() == OPEN:
                append(
                    self._database,
                    "close",
                    run=self.run,
                    outcome=outcome,
                    booked=self._released,
                    release=release,
                )
        self._database.drop(self.run)

    def _book_ahead(self, parts: Sequence[tuple[int, int]]) -> None:
        """Book a release, and a block of further steps like it."""
        now = time.monotonic()
        booked = list(self._booked)
        for place, steps in parts:
            taken = max(now - self._since[place], 1e-9)
            pace = int(self._blocks[place] * BLOCK_SECONDS / taken)
            # One quick step says little of the next: a block is twice the last one at most.
            self._blocks[place] = max(1, min(pace, 2 * self._blocks[place]))
            self._since[place] = now
            ahead = max(self._released[place] + max(steps, self._blocks[place]), booked[place])
            booked[place] = min(ahead, self._plan[place].steps)
        with self._database.write():
            if (outcome := self._outcome()) != OPEN:
                raise BookError(f"{self._database.url}: run {self.run} is closed ({outcome})")
            for place, _ in parts:
                if more := booked[place] - self._booked[place]:
                    append(self._database, "book", run=self.run, place=place, steps=more)
            last = self._last_line()
        self._booked, self._last = booked, last

    def _outcome(self) -> str:
        """State of the run in the book; refuse a book that does not hold its last line."""
        line, digest = self._last
        if self._database.rows("SELECT hash FROM book_log WHERE line = ?", line) != [(digest,)]:
            raise BookError(
                f"{self._database.url}: line {line} is gone, or is another one than run {self.run} saw\n"
                "the book was exchanged, as by a backup, and nothing more is released"
            )
        return state_of(self._database).run(self.run).outcome

    def _last_line(self) -> tuple[int, str]:
        """Number and hash of the last line that this run has seen."""
        last = state_of(self._database).last
        assert last is not None  # that of its reservation, or a later one
        return last.line, last.hash

    def _parts(self, entries: Sequence[LedgerEntry]) -> list[tuple[int, int]]:
        """Places of releases in the plan, and the steps that each takes."""
        taken: Counter[int] = Counter()
        for entry in entries:
            left = entry.steps
            for place, (planned, released) in enumerate(
                zip(self._plan, self._released, strict=True)
            ):
                is_same = (planned.relation, planned.event) == (entry.relation, entry.event)
                steps = min(left, planned.steps - released - taken[place]) if is_same else 0
                taken[place] += steps
                left -= steps
            if left:
                raise BookError(
                    f"{entry.name!r} is more than the run has reserved in the budget book, and was "
                    "not released\nplan() of the method has to list all that it spends"
                )
        return [(place, steps) for place, steps in taken.items() if steps]
