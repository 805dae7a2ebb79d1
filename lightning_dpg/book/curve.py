"""The spent epsilon of a data set over time, from the log of its book."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lightning_dpg.book import totals
from lightning_dpg.book.filter import Spending, Together
from lightning_dpg.book.log import Line
from lightning_dpg.book.projection import OPEN
from lightning_dpg.book.rows import DataSet, Planned, Run, spendings
from lightning_dpg.privacy.composition import costs
from lightning_dpg.privacy.events import Event, Relation

MOST_POINTS = 60
"""Largest number of points; a longer history is thinned evenly."""


class Point(NamedTuple):
    """Epsilon that all releases up to a time prove together.

    Attributes:
        time: A time of the log, in UTC.
        spent_epsilon: Epsilon at the delta of the total.
    """

    time: str
    spent: float


def curve(
    dataset: DataSet, runs: Sequence[Run], log: Iterable[Line], most: int = MOST_POINTS
) -> list[Point]:
    """Spent epsilon after each booking, beginning with the registration.

    Args:
        dataset: The data set, as one total sees it.
        runs: Its runs.
        log: Lines of the log.
        most: Largest number of points; the last one is always among them.
    """
    changes = [*_changes(log, {run.number for run in runs})]
    places = set(_thinned(len(changes), most - 1))
    past = _Past(runs, dataset.relation)
    points = [Point(dataset.created, 0.0)]
    for number, change in enumerate(changes):
        past.follow(change)
        if number in places:
            spent = totals.spent_epsilon(past.released(), dataset.total.delta)[0]
            points.append(Point(change.time, spent))
    return points


class _Change(NamedTuple):
    """Steps that a line of the log books: further ones at one place, or the sum at every place."""

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
    """Places of at most ``most`` out of ``count`` changes, always with the last one."""
    if count <= most:
        yield from range(count)
    else:
        yield from (count - 1 - (most - 1 - place) * count // most for place in range(most))


class _Past:
    """Releases up to a line of the log; each change is added to the state before it."""

    def __init__(self, runs: Sequence[Run], relation: Relation) -> None:
        self._relation = relation
        self._runs = {run.number: replace(run, outcome=OPEN) for run in runs}
        self._families: dict[int, list[int]] = {}
        for run in runs:
            self._families.setdefault(run.family, []).append(run.number)
        self._booked: dict[int, list[int]] = {run.number: [] for run in runs}
        self._steps: Counter[Event] = Counter()
        self._spent: dict[int, Spending] = {}
        self._changed: set[int] = set()

    def follow(self, change: _Change) -> None:
        """Go on by one change."""
        run, before = self._runs[change.run], self._booked[change.run]
        after = list(change.steps)
        if change.place is not None:
            after = [*before]
            after[change.place] += change.steps[0]
        self._booked[change.run] = after
        self._changed.add(run.family)

    def released(self) -> Together:
        """Cost of all releases up to now."""
        for family in self._changed:
            if family in self._spent:  # a run that ends gives back steps booked ahead
                self._steps.subtract(costs(self._spent.pop(family).counted))
            runs = [self._at(number) for number in self._families[family]]
            for each in spendings(runs, self._relation, is_released=True).values():
                self._spent[family] = each
                self._steps.update(costs(each.counted))
        self._changed.clear()
        amounts = [each.cost for each in self._spent.values()]
        epsilons, deltas = [cost.epsilon for cost in amounts], [cost.delta for cost in amounts]
        return Together(epsilons, deltas, +self._steps)

    def _at(self, number: int) -> Run:
        run, booked = self._runs[number], self._booked[number]
        planned = run.planned if booked else []  # else it is not reserved yet
        return replace(
            run, planned=[Planned(each.entry, booked[each.place], each.place) for each in planned]
        )
