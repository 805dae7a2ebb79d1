"""The log of a book: lines that are only appended, each with the hash of the one before."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from lightning_dpg.apps.book.database import Database
from lightning_dpg.errors import BookError

FIRST = "0" * 64
"""Hash that the first line names as the previous one."""

_SLACK = timedelta(minutes=5)  # by which clocks of several machines may differ
# A book of 10,000 lines is read at each reservation: these are twice as fast as dumps and loads.
_quoted = json.encoder.encode_basestring_ascii
_decode = json.JSONDecoder().decode


class Line(NamedTuple):
    """One line.

    Attributes:
        line: Its number, from 1 on.
        time: When it was written, in UTC.
        kind: Kind of event.
        body: Its facts, as JSON.
        previous: Hash of the line before.
        hash: Hash of all of these.
    """

    line: int
    time: str
    kind: str
    body: str
    previous: str
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the body."""
        facts: dict[str, Any] = _decode(self.body)
        return facts

    @property
    def computed(self) -> str:
        """Hash that the line ought to have."""
        texts = f"{_quoted(self.time)},{_quoted(self.kind)},{_quoted(self.body)}"
        content = f"[{self.line},{texts},{_quoted(self.previous)}]"
        return hashlib.sha256(content.encode()).hexdigest()

    def fault_after(self, last: "Line | None") -> str:
        """Say that the line was changed, or that a line before it was removed; empty if neither.

        Args:
            last: Line that it follows; None if it is the first one.
        """
        number, previous, time = (last.line, last.hash, last.time) if last else (0, FIRST, "")
        if self.line != number + 1:
            return f"line {number + 1}: removed (line {self.line} follows line {number})"
        if self.hash != self.computed:
            return (
                f"line {self.line}: its hash is not that of its content: it was changed, or a line "
                "was inserted at this place or just before"
            )
        if self.previous != previous:
            return (
                f"line {self.line}: does not follow line {number}, which was changed or exchanged"
            )
        if self.time < time:
            return f"line {self.line}: its time {self.time} is before that of line {number}"
        return ""


def lines(database: Database, start: int = 1) -> list[Line]:
    """All lines from a number on."""
    rows = database.rows("SELECT * FROM book_log WHERE line >= ? ORDER BY line", start)
    return [*map(Line._make, rows)]


def next_line(last: Line | None, kind: str, facts: dict[str, Any], url: str) -> Line:
    """The line that follows another one.

    Args:
        last: That line; None before the first one.
        kind: Kind of event.
        facts: Its facts.
        url: The book.

    Raises:
        BookError: If the clock of this machine is minutes behind the last line.
    """
    number, before, previous = (last.line, last.time, last.hash) if last else (0, "", FIRST)
    body = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    line = Line(number + 1, _now(before, url), kind, body, previous, "")
    return line._replace(hash=line.computed)


def _now(before: str, url: str) -> str:
    """The time in UTC, never before that of the last line."""
    now = datetime.now(UTC)
    if before and now < datetime.fromisoformat(before) - _SLACK:
        raise BookError(
            f"{url}: the last line is of {before}, and the clock of this machine says "
            f"{now.isoformat(timespec='seconds')}\nset the clock"
        )
    return max(now.isoformat(timespec="microseconds"), before)
