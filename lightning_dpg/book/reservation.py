"""A reserved run: it books each release before it is made, and gives back the rest at its end."""

from collections.abc import Sequence

from lightning_dpg.book.database import BookError, Database
from lightning_dpg.book.projection import OPEN, record
from lightning_dpg.privacy.events import LedgerEntry


class Reservation:
    """The whole plan of a run, held until it is closed.

    Args:
        database: The book.
        run: Number of the run.
        plan: Releases that are reserved.
        booked: How many steps of each are booked.
        unseen: Releases that a run which this one continues has booked, and that no journal shows.

    Attributes:
        run: Number of the run.
        unseen: The same.
    """

    def __init__(
        self,
        database: Database,
        run: int,
        plan: Sequence[LedgerEntry],
        booked: Sequence[int],
        unseen: Sequence[LedgerEntry] = (),
    ) -> None:
        self.run = run
        self.unseen = list(unseen)
        self._database = database
        self._plan = list(plan)
        self._booked = list(booked)

    def book(self, entry: LedgerEntry) -> None:
        """Book a release that is about to be made.

        Raises:
            BookError: If it was not reserved, or if the run was closed by somebody else.
        """
        parts = self._parts(entry)
        with self._database.write():
            ((outcome,),) = self._database.rows(
                "SELECT outcome FROM book_runs WHERE run = ?", self.run
            )
            if outcome != OPEN:
                raise BookError(f"{self._database.url}: run {self.run} is closed ({outcome})")
            for place, steps in parts:
                record(self._database, "book", run=self.run, place=place, steps=steps)
        for place, steps in parts:
            self._booked[place] += steps

    def affords(self, entries: Sequence[LedgerEntry]) -> bool:
        """Whether one more release of each is reserved; a plan has different ones."""
        try:
            for entry in entries:
                self._parts(entry)
        except BookError:
            return False
        return True

    def close(self, outcome: str, release: str | None = None) -> None:
        """Give back what was not booked.

        Args:
            outcome: ``ended`` or ``stopped``.
            release: Digest of the release, if there is one.
        """
        with self._database.write():
            ((now,),) = self._database.rows("SELECT outcome FROM book_runs WHERE run = ?", self.run)
            if now == OPEN:
                record(
                    self._database,
                    "close",
                    run=self.run,
                    outcome=outcome,
                    booked=self._booked,
                    release=release,
                )
        self._database.drop(self.run)

    def _parts(self, entry: LedgerEntry) -> list[tuple[int, int]]:
        """Places of a release in the plan, and the steps that each takes."""
        left, parts = entry.steps, []
        for place, (planned, booked) in enumerate(zip(self._plan, self._booked, strict=True)):
            steps = min(left, planned.steps - booked) if planned.event == entry.event else 0
            if steps > 0:
                parts.append((place, steps))
                left -= steps
        if left:
            raise BookError(
                f"{entry.name!r} is more than the run has reserved in the budget book, and was not "
                "released\nplan() of the method has to list all that it spends"
            )
        return parts
