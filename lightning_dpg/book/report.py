"""Summaries of the data sets of a book: numbers for programs and pages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lightning_dpg.book import totals
from lightning_dpg.book.book import Book
from lightning_dpg.book.conditions import Condition, conditions, unconditional_epsilon
from lightning_dpg.book.filter import Spending
from lightning_dpg.book.grants import Grant, spent_by, states
from lightning_dpg.book.log import Line, lines_of
from lightning_dpg.book.request import pure_left
from lightning_dpg.book.rows import DataSet, Run, counted, same_edges, spendings
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.events import Relation


class Content(NamedTuple):
    """Contents of a book on one data set, at one moment.

    Attributes:
        dataset: The data set.
        runs: Its runs.
        left: Largest epsilon of one more pure release.
        grants: Its grants.
        measurements: Lines of the log on measurements that read its data.
        conditions: Conditions of the guarantees of runs, by the number of the run.
        same_edges: Other data sets that hold the same edges, under another relation.
    """

    dataset: DataSet
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
    dataset = book.data_set(name)
    measurements = [
        line for line in lines_of(book.database, "measure") if line.facts["dataset"] == name
    ]
    runs = book.runs(name)
    left = 0.0 if dataset.closed else pure_left(dataset, counted(runs))
    by_run = conditions(book.database)
    same = same_edges(book.database, name)
    return Content(dataset, runs, left, book.grants(name), measurements, by_run, same)


def summary(book: Book, name: str) -> dict[str, Any]:
    """Summarize a data set as plain values; epsilons are at the delta of the total.

    * ``spent``: epsilon that all releases prove together.
    * ``reserved``: how much larger it would be with all reserved releases.
    * ``left``: largest epsilon of one more pure release; 0 on a closed data set.
    * ``conditional``: whether the guarantee of a run has a condition.
    * ``in_any_case``: epsilon that all releases prove without the conditions, if any.
    * ``pure_sum``: sum of the epsilons of all releases, if all are pure.
    * ``same_edges``: other data sets with these edges. Their runs are in none of these numbers.

    Args:
        book: The book.
        name: Data set.
    """
    with book.database.snapshot():
        content = read(book, name)
    return summary_of(content)


def summary_of(content: Content) -> dict[str, Any]:
    """Summarize a data set as :func:`summary` does, from contents that were read before."""
    dataset, runs = content.dataset, content.runs
    delta = dataset.total.delta
    released = counted(runs, is_released=True)
    spent, accountant = totals.spent_epsilon(released, delta)
    pure = totals.pure_sum(released)
    together = spent
    if any(run.is_open for run in runs):
        together = max(spent, totals.spent_epsilon(counted(runs), delta)[0])
    return {
        "dataset": dataset.name,
        "relation": dataset.relation.value,
        "record": dataset.record,
        "words": dataset.words,
        "part_of": dataset.part_of,
        "delta": delta,
        "total": dataset.total.epsilon,
        "spent": rounded_up(spent, dataset.total.epsilon),
        "accountant": accountant,
        "pure_sum": rounded_up(pure, dataset.total.epsilon) if math.isfinite(pure) else None,
        "reserved": rounded_up(together - spent),
        "left": math.floor(content.left * 1e4) / 1e4,
        "closed": dataset.closed,
        "closed_by": dataset.closed_by,
        "two_persons": dataset.two_persons,
        "same_edges": [
            {"dataset": each.name, "relation": each.relation.value} for each in content.same_edges
        ],
        **_node(dataset, runs),
        **_conditional(content),
        "grants": _grants(content),
        "measurements": [_measurement(line) for line in content.measurements],
        "releases": [_release(run, content.conditions.get(run.number)) for run in runs],
    }


def _node(dataset: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """Derived epsilon of all edges of a node, if the owner states their largest number."""
    if dataset.relation is not Relation.EDGE or dataset.max_degree is None:
        return {}
    families = spendings(runs, is_released=True).values()
    entries = [entry for each in families for entry in each.counted]
    epsilon = totals.node_level(entries, dataset.total.delta, dataset.max_degree)
    value = float(digits_up(epsilon, 5)) if math.isfinite(epsilon) else "inf"
    return {"max_degree": dataset.max_degree, "node": value}


def _conditional(content: Content) -> dict[str, Any]:
    """Say whether the numbers need conditions, and the epsilon that holds without them."""
    if not any(run.number in content.conditions for run in content.runs):
        return {"conditional": False}
    epsilon = unconditional_epsilon(content.runs, content.conditions, content.dataset.total.delta)
    return {
        "conditional": True,
        "in_any_case": None if epsilon is None else rounded_up(epsilon),
    }


def _grants(content: Content) -> list[dict[str, Any]]:
    """Grants, each with the cost of all runs of its user."""
    rows = []
    for grant, state in zip(content.grants, states(content.dataset, content.grants), strict=True):
        costs = [each.cost for each in spent_by(content.runs, grant.grantee).values()]
        rows.append(
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
    return rows


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
        "in_any_case": None if condition is None else condition.unconditional_epsilon,
        "entries": [each.values for each in run.planned if each.booked],
    }
