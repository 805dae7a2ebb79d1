"""The log of a book: lines that are only appended, each with the hash of the one before."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from lightning_dpg.apps.book.database import Database
from lightning_dpg.errors import BookError

FIRST = "0" * 64
"""Hash that the first line names as the previous one."""

_SLACK = timedelta(minutes=5)  # by which clocks of several machines may differ


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
        return json.loads(self.body)

    @property
    def computed(self) -> str:
        """Hash that the line ought to have."""
        return _hash(self.line, self.time, self.kind, self.body, self.previous)


def append(database: Database, kind: str, facts: dict[str, Any]) -> Line:
    """Append a line; call it inside of a write.

    Raises:
        BookError: If the clock of this machine is minutes behind the last line.
    """
    last = database.rows("SELECT line, time, hash FROM book_log ORDER BY line DESC LIMIT 1")
    number, before, previous = last[0] if last else (0, "", FIRST)
    body = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    time = _now(before, database.url)
    line = Line(
        number + 1, time, kind, body, previous, _hash(number + 1, time, kind, body, previous)
    )
    database.rows("INSERT INTO book_log VALUES (?, ?, ?, ?, ?, ?)", *line)
    return line


def lines(database: Database, start: int = 1) -> list[Line]:
    """All lines from a number on."""
    rows = database.rows("SELECT * FROM book_log WHERE line >= ? ORDER BY line", start)
    return [Line(*row) for row in rows]


def lines_of(database: Database, kind: str) -> list[Line]:
    """All lines of a kind."""
    rows = database.rows("SELECT * FROM book_log WHERE kind = ? ORDER BY line", kind)
    return [Line(*row) for row in rows]


def broken(log: Iterable[Line], after: Line | None = None) -> Iterator[str]:
    """Say of each line that was changed, removed or inserted which one it is.

    Args:
        log: Lines.
        after: Line that they follow; by default they begin with the first one.
    """
    number, previous, time = (
        (0, FIRST, "") if after is None else (after.line, after.hash, after.time)
    )
    for line in log:
        if line.line != number + 1:
            yield f"line {number + 1}: removed (line {line.line} follows line {number})"
        elif line.hash != line.computed:
            yield (
                f"line {line.line}: its hash is not that of its content: it was changed, or a line "
                "was inserted at this place or just before"
            )
        elif line.previous != previous:
            yield f"line {line.line}: does not follow line {number}, which was changed or exchanged"
        elif line.time < time:
            yield f"line {line.line}: its time {line.time} is before that of line {number}"
        number, previous, time = line.line, line.hash, line.time


def _hash(line: int, time: str, kind: str, body: str, previous: str) -> str:
    text = json.dumps([line, time, kind, body, previous], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _now(before: str, url: str) -> str:
    """The time in UTC, never before that of the last line."""
    now = datetime.now(UTC)
    if before and now < datetime.fromisoformat(before) - _SLACK:
        raise BookError(
            f"{url}: the last line is of {before}, and the clock of this machine says "
            f"{now.isoformat(timespec='seconds')}\nset the clock"
        )
    return max(now.isoformat(timespec="microseconds"), before)
