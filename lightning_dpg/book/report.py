"""Summaries of the data sets of a book: numbers for programs and pages."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lightning_dpg.book import totals
from lightning_dpg.book.book import Book
from lightning_dpg.book.conditions import Condition, conditions, in_any_case
from lightning_dpg.book.filter import Spending
from lightning_dpg.book.grants import Grant, spent_by, states
from lightning_dpg.book.log import Line, lines_of
from lightning_dpg.book.request import pure_left
from lightning_dpg.book.rows import DataSet, Run, counted, same_edges, spendings
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.events import Relation


class Content(NamedTuple):
    """What a book says of a data set at one moment.

    Attributes:
        known: The data set.
        runs: Its runs.
        left: Largest epsilon of one more pure release.
        grants: Its grants.
        measurements: Lines of the log on measurements that read its data.
        conditions: Conditions of the guarantees of runs, by the number of the run.
        same_edges: Other data sets that hold the same edges, under another relation.
    """

    known: DataSet
    runs: Sequence[Run]
    left: float
    grants: Sequence[Grant]
    measurements: Sequence[Line]
    conditions: Mapping[int, Condition]
    same_edges: Sequence[DataSet]


def read(book: Book, name: str) -> Content:
    """Read all about a data set; call it inside of a snapshot.

    Args:
        book: The book.
        name: Data set.
    """
    known = book.data_set(name)
    measurements = [
        line for line in lines_of(book.database, "measure") if line.facts["dataset"] == name
    ]
    runs = book.runs(name)
    left = 0.0 if known.closed else pure_left(known, counted(runs))
    found = conditions(book.database)
    same = same_edges(book.database, name)
    return Content(known, runs, left, book.grants(name), measurements, found, same)


def summary(book: Book, name: str) -> dict[str, Any]:
    """Total, spent, reserved and left of a data set, as plain values.

    Epsilons are at the delta of the total. ``spent`` is what all releases prove together; ``reserved``
    is what they would prove beyond it with all that is reserved; ``left`` is the largest epsilon of one
    more pure release that is let in: none on a closed data set. ``conditional`` says that the
    guarantee of a run has a condition; ``in_any_case`` is what all releases prove without it, if any.
    ``pure_sum`` is the sum of the epsilons of all releases, if all are of pure epsilon. ``same_edges``
    lists the other data sets that hold these edges, whose runs are in none of these numbers.

    Args:
        book: The book.
        name: Data set.
    """
    with book.database.snapshot():
        content = read(book, name)
    return summarized(content)


def summarized(content: Content) -> dict[str, Any]:
    """The summary of what was read from a book."""
    known, runs = content.known, content.runs
    delta = known.total.delta
    released = counted(runs, is_released=True)
    spent, accountant = totals.spent(released, delta)
    pure = totals.pure_sum(released)
    together = spent
    if any(run.is_open for run in runs):
        together = max(spent, totals.spent(counted(runs), delta)[0])
    return {
        "dataset": known.name,
        "relation": known.relation.value,
        "record": known.record,
        "words": known.words,
        "part_of": known.part_of,
        "delta": delta,
        "total": known.total.epsilon,
        "spent": rounded_up(spent, known.total.epsilon),
        "accountant": accountant,
        "pure_sum": rounded_up(pure, known.total.epsilon) if math.isfinite(pure) else None,
        "reserved": rounded_up(together - spent),
        "left": math.floor(content.left * 1e4) / 1e4,
        "closed": known.closed,
        "closed_by": known.closed_by,
        "two_persons": known.two_persons,
        "same_edges": [
            {"dataset": each.name, "relation": each.relation.value} for each in content.same_edges
        ],
        **_node(known, runs),
        **_conditional(content),
        "grants": _grants(content),
        "measurements": [_measurement(line) for line in content.measurements],
        "releases": [_release(run, content.conditions.get(run.number)) for run in runs],
    }


def _node(known: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """Derived epsilon of all edges of a node, if the owner states how many there are at most."""
    if known.relation is not Relation.EDGE or known.max_degree is None:
        return {}
    found = spendings(runs, is_released=True).values()
    entries = [entry for each in found for entry in each.counted]
    epsilon = totals.node_level(entries, known.total.delta, known.max_degree)
    stated = float(digits_up(epsilon, 5)) if math.isfinite(epsilon) else "inf"
    return {"max_degree": known.max_degree, "node": stated}


def _conditional(content: Content) -> dict[str, Any]:
    """Whether the numbers hold under conditions only, and the epsilon that holds without them."""
    if not any(run.number in content.conditions for run in content.runs):
        return {"conditional": False}
    epsilon = in_any_case(content.runs, content.conditions, content.known.total.delta)
    return {
        "conditional": True,
        "in_any_case": None if epsilon is None else rounded_up(epsilon),
    }


def _grants(content: Content) -> list[dict[str, Any]]:
    """Grants with what counts against them: all runs of their users, unless they were replaced."""
    found = []
    for grant, state in zip(content.grants, states(content.known, content.grants), strict=True):
        costs = [each.cost for each in spent_by(content.runs, grant.grantee).values()]
        found.append(
            {
                "number": grant.number,
                "to": grant.grantee,
                "epsilon": grant.budget.epsilon,
                "delta": grant.budget.delta,
                "spent_epsilon": math.fsum(cost.epsilon for cost in costs),
                "spent_delta": math.fsum(cost.delta for cost in costs),
                "state": state,
                "made": grant.made,
                "made_by": grant.made_by,
                "approved": grant.approved,
                "approved_by": grant.approved_by,
            }
        )
    return found


def _measurement(line: Line) -> dict[str, Any]:
    facts = line.facts
    return {
        "time": line.time,
        "command": facts["command"],
        "methods": facts["methods"],
        "epsilons": facts["epsilons"],
        "who": facts["who"],
    }


def _release(run: Run, condition: Condition | None) -> dict[str, Any]:
    cost = Spending(run.budget, run.counted, run.plan).cost
    return {
        "run": run.number,
        "outcome": run.outcome,
        "method": run.method,
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "opened": run.opened,
        "closed": run.closed,
        "who": run.who,
        "folder": run.folder,
        "settings": run.settings,
        "release": run.release,
        "condition": None if condition is None else condition.words,
        "in_any_case": None if condition is None else condition.in_any_case,
        "entries": [each.stated for each in run.planned if each.booked],
    }


def as_json(content: Any) -> str:
    """JSON of a summary; an infinite epsilon is the word ``inf``, because JSON has no such number.

    Args:
        content: Plain values, with lists and dictionaries of them.
    """
    return json.dumps(_strict(content), indent=2, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_strict(each) for each in value]
    return "inf" if value == math.inf else value
