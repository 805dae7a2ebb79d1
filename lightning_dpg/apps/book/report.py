"""Summaries of the data sets of a book: numbers for programs and pages."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lightning_dpg.apps.book import totals
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.filter import Spending
from lightning_dpg.apps.book.grants import spent_by, states
from lightning_dpg.apps.book.log import Line
from lightning_dpg.apps.book.request import pure_left
from lightning_dpg.apps.book.sketch import same_edges, same_nodes
from lightning_dpg.apps.book.state import DataSet, Grant, Run, cost_of_runs, spendings
from lightning_dpg.apps.book.store import state_of
from lightning_dpg.apps.book.wording import node_text
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget, digits_up, rounded_up
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.meaning import epsilon_by_edges, group_budget, joint_budget

_NUMBERS_OF_EDGES = (1, 10)  # of a node, beside its private columns


class Content(NamedTuple):
    """Contents of a book on one total of a data set, at one moment.

    Attributes:
        dataset: The data set, as this total sees it.
        runs: Its runs, with their releases under the relation of this total.
        left: Largest epsilon of one more pure release.
        needs_grants: Whether only users with grants may spend on it.
        grants: Grants on this total.
        measurements: Lines of the log on measurements that read its data.
        same_edges: Other data sets that hold the same edges, under another relation.
        same_nodes: Other data sets on the same people, with other edges and another relation.
        others: Contents on the totals of further relations.
    """

    dataset: DataSet
    runs: Sequence[Run]
    left: float
    needs_grants: bool
    grants: Sequence[Grant]
    measurements: Sequence[Line] = ()
    same_edges: Sequence[DataSet] = ()
    same_nodes: Sequence[DataSet] = ()
    others: Sequence["Content"] = ()

    @property
    def each_total(self) -> list["Content"]:
        """The content on each total, first the one of the registration."""
        return [self, *self.others]


def read(book: Book, name: str) -> Content:
    """Read all about a data set; call it inside of a snapshot.

    Args:
        book: The book.
        name: Data set.
    """
    dataset, runs, grants = book.data_set(name), book.runs(name), book.grants(name)
    first, *others = (
        _on_total(dataset.for_relation(each), runs, grants) for each in dataset.relations
    )
    measurements = state_of(book.database).measurements
    return first._replace(
        measurements=[line for line in measurements if line.facts["dataset"] == name],
        same_edges=same_edges(book.database, name),
        same_nodes=same_nodes(book.database, name),
        others=[each._replace(runs=[run for run in each.runs if run.planned]) for each in others],
    )


def _on_total(dataset: DataSet, runs: Sequence[Run], grants: Sequence[Grant]) -> Content:
    """Content on one total: its own runs and grants, and what is left of it."""
    relation = dataset.relation
    left = 0.0 if dataset.closed else pure_left(dataset, cost_of_runs(runs, relation))
    return Content(
        dataset=dataset,
        runs=[run.for_relation(relation) for run in runs],
        left=left,
        needs_grants=bool(grants) or dataset.two_persons,
        grants=[grant for grant in grants if grant.relation is relation],
    )


def summary(book: Book, name: str) -> dict[str, Any]:
    """Summarize a data set as plain values; epsilons are at the delta of the total.

    * ``spent``: epsilon that all releases prove together.
    * ``reserved``: how much larger it would be with all reserved releases.
    * ``left``: largest epsilon of one more pure release; 0 on a closed data set.
    * ``conditional``: whether the guarantee of a run has a condition.
    * ``pure_sum``: sum of the epsilons of all releases, if all are pure.
    * ``same_edges``, ``same_nodes``: other data sets with these edges, or with more than half of the nodes.
      Their runs are in none of these numbers.
    * ``together``: epsilon of the private columns of a node and some of its edges, as one secret.
    * ``beside``: summaries of the totals of further relations, which are never added to this one.

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
    delta, relation = dataset.total.delta, dataset.relation
    released = cost_of_runs(runs, relation, is_released=True)
    spent, accountant = totals.spent_epsilon(released, delta)
    pure = totals.pure_sum(released)
    together = spent
    if any(run.is_open for run in runs):
        together = max(spent, totals.spent_epsilon(cost_of_runs(runs, relation), delta)[0])
    found = {
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
        "needs_grants": content.needs_grants,
        "same_edges": _named(content.same_edges),
        "same_nodes": _named(content.same_nodes),
        **_node(dataset, runs),
        **_by_edges(dataset, runs),
        "conditional": any(run.condition is not None for run in runs),
        "grants": _grants(content),
        "measurements": [_measurement(line) for line in content.measurements],
        "releases": [*map(_release, runs)],
        "beside": [summary_of(each) for each in content.others],
    }
    return found | {"together": _together(found)}


def _named(datasets: Sequence[DataSet]) -> list[dict[str, str]]:
    return [{"dataset": each.name, "relation": each.relation.value} for each in datasets]


def _together(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Epsilon of the private columns of a node and some of its edges as one secret.

    Neighbors of each total differ in one of both only. Both together are proved by the chain of
    :func:`lightning_dpg.privacy.meaning.joint_budget`.
    """
    if found["relation"] != Relation.EDGE:
        return []
    edge, *others = (_proved(each) for each in (found, *found["beside"]))
    return [
        {"edges": count, "epsilon": both.epsilon, "delta": both.delta}
        for rows in others
        for count in _NUMBERS_OF_EDGES
        if (both := joint_budget(group_budget(*edge, count), rows)).delta < 1
    ]


def _proved(found: dict[str, Any]) -> Budget:
    """What the releases on one total prove together; a pure epsilon holds at any delta."""
    is_pure = found["accountant"] == composition.PURE
    return Budget(found["spent"], 0.0 if is_pure else found["delta"])


def _node(dataset: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """Derived epsilon of all edges of a node, if the owner states their largest number."""
    if dataset.relation is not Relation.EDGE or dataset.max_degree is None:
        return {}
    epsilon = totals.node_level(
        released_entries(dataset, runs), dataset.total.delta, dataset.max_degree
    )
    value = float(digits_up(epsilon, 5)) if math.isfinite(epsilon) else "inf"
    text = node_text(value, dataset.max_degree, dataset.total.delta)
    return {"max_degree": dataset.max_degree, "node": value, "node_text": text}


def _by_edges(dataset: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """Bound on the edges of a record, and epsilon of smaller and larger numbers of edges."""
    if dataset.max_edges is None:
        return {}
    found = epsilon_by_edges(released_entries(dataset, runs), dataset.total.delta)
    of_number = {str(count): float(digits_up(each, 3)) for count, each in found.items() if each}
    return {"max_edges": dataset.max_edges, "epsilon_by_edges": of_number}


def released_entries(dataset: DataSet, runs: Sequence[Run]) -> list[LedgerEntry]:
    """Releases that were made from a data set, and what their runs owe.

    Args:
        dataset: The data set, as one total sees it.
        runs: Its runs.
    """
    families = spendings(runs, dataset.relation, is_released=True).values()
    return [entry for each in families for entry in each.with_owed_deltas]


def _grants(content: Content) -> list[dict[str, Any]]:
    """Grants, each with the cost of all runs of its user."""
    rows = []
    for grant, state in zip(content.grants, states(content.dataset, content.grants), strict=True):
        spent = spent_by(content.runs, grant.grantee, grant.relation)
        costs = [each.cost for each in spent.values()]
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


def _release(run: Run) -> dict[str, Any]:
    cost = Spending(run.budget, run.owed_entries, run.plan).cost
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
        "retracted": run.retracted,
        "condition": run.condition,
        "entries": [each.values for each in run.planned if each.booked],
    }
