"""The spent epsilon of a data set over time, from the log of its book."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lightning_dpg.book import totals
from lightning_dpg.book.book import Book
from lightning_dpg.book.log import Line, lines
from lightning_dpg.book.projection import OPEN
from lightning_dpg.book.rows import DataSet, Planned, Run, spendings

MOST_POINTS = 60
"""Largest number of points; a longer history is thinned evenly."""


class Point(NamedTuple):
    """Epsilon that all releases up to a time prove together.

    Attributes:
        time: A time of the log, in UTC.
        spent: Epsilon at the delta of the total.
    """

    time: str
    spent: float


def spent_curve(book: Book, name: str, most: int = MOST_POINTS) -> list[Point]:
    """Spent epsilon after each booking, beginning with the registration.

    Args:
        book: The book.
        name: Data set.
        most: Largest number of points; the last one is always among them.
    """
    with book.database.snapshot():
        known, runs, log = book.data_set(name), book.runs(name), lines(book.database)
    return curve(known, runs, log, most)


def curve(
    known: DataSet, runs: Sequence[Run], log: Iterable[Line], most: int = MOST_POINTS
) -> list[Point]:
    """The same of what was read from a book.

    Args:
        known: The data set.
        runs: Its runs.
        log: Lines of the log.
        most: Largest number of points.
    """
    changes = [*_changes(log, {run.number for run in runs})]
    kept = set(_thinned(len(changes), most - 1))
    booked: dict[int, list[int]] = {run.number: [0] * len(run.planned) for run in runs}
    points = [Point(known.created, 0.0)]
    for number, change in enumerate(changes):
        steps = booked[change.run]
        if change.place is None:
            booked[change.run] = list(change.steps)
        else:
            steps[change.place] += change.steps[0]
        if number in kept:
            released = spendings(_at(runs, booked), is_released=True)
            spent = totals.spent(list(released.values()), known.total.delta)[0]
            points.append(Point(change.time, spent))
    return points


class _Change(NamedTuple):
    """Steps that a line of the log books: at one place more, or at all places in all."""

    time: str
    run: int
    place: int | None
    steps: Sequence[int]


def _changes(log: Iterable[Line], numbers: set[int]) -> Iterator[_Change]:
    for line in log:
        if line.kind not in ("reserve", "book", "close"):
            continue
        facts = line.facts
        if facts["run"] not in numbers:
            continue
        if line.kind == "book":
            yield _Change(line.time, facts["run"], facts["place"], [facts["steps"]])
        else:
            yield _Change(line.time, facts["run"], None, facts["booked"])


def _thinned(count: int, most: int) -> Iterator[int]:
    """Places of at most so many of some changes, the last one among them."""
    if count <= most:
        yield from range(count)
    else:
        yield from (count - 1 - (most - 1 - place) * count // most for place in range(most))


def _at(runs: Sequence[Run], booked: dict[int, list[int]]) -> list[Run]:
    """The runs as they were when so many steps were booked."""
    return [
        replace(
            run,
            outcome=OPEN,
            planned=[
                Planned(each.entry, steps)
                for each, steps in zip(run.planned, booked[run.number], strict=True)
            ],
        )
        for run in runs
    ]
