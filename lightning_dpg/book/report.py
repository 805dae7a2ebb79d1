"""Summaries of the data sets of a book: numbers for programs and pages."""

import math
from collections.abc import Sequence
from typing import Any

from lightning_dpg.book import totals
from lightning_dpg.book.book import Book
from lightning_dpg.book.filter import Spending
from lightning_dpg.book.request import pure_left
from lightning_dpg.book.rows import DataSet, Run, counted
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.events import Relation


def summary(book: Book, name: str) -> dict[str, Any]:
    """Total, spent, reserved and left of a data set, as plain values.

    Epsilons are at the delta of the total. ``spent`` is what all releases prove together; ``reserved``
    is what they would prove beyond it with all that is reserved; ``left`` is the largest epsilon of one
    more pure release that is let in.

    Args:
        book: The book.
        name: Data set.
    """
    with book.database.snapshot():
        known, runs = book.data_set(name), book.runs(name)
    return summarized(known, runs)


def summarized(known: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """The summary of what was read from a book.

    Args:
        known: The data set.
        runs: Its runs.
    """
    delta, whole = known.total.delta, counted(runs)
    spent, accountant = totals.spent(counted(runs, is_released=True), delta)
    together = spent
    if any(run.is_open for run in runs):
        together = max(spent, totals.spent(whole, delta)[0])
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
        "reserved": rounded_up(together - spent),
        "left": math.floor(pure_left(known, whole) * 1e4) / 1e4,
        **_node(known, runs),
        "releases": [_release(run) for run in runs],
    }


def _node(known: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """Derived epsilon of all edges of a node, if the owner states how many there are at most."""
    if known.relation is not Relation.EDGE or known.max_degree is None:
        return {}
    entries = [entry for run in runs for entry in run.booked]
    epsilon = totals.node_level(entries, known.total.delta, known.max_degree)
    stated = float(digits_up(epsilon, 5)) if math.isfinite(epsilon) else "inf"
    return {"max_degree": known.max_degree, "node": stated}


def _release(run: Run) -> dict[str, Any]:
    cost = Spending(run.budget, run.counted).cost
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
        "entries": [each.stated for each in run.planned if each.booked],
    }
