"""What a book says of a data set, as numbers for programs and as text for people."""

import math
from collections.abc import Sequence
from typing import Any

from lightning_dpg.book import totals
from lightning_dpg.book.book import Book
from lightning_dpg.book.filter import Spending
from lightning_dpg.book.rows import DataSet, Run, spendings
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.events import Relation

_BAR = 40
_DAY = slice(0, 16)  # of a time, up to the minute


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
        known, runs, left = book.data_set(name), book.runs(name), book.left(name)
    delta = known.total.delta
    spent, accountant = totals.spent(list(spendings(runs, is_released=True).values()), delta)
    together = spent
    if any(run.is_open for run in runs):
        together = max(spent, totals.spent(list(spendings(runs).values()), delta)[0])
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
        "left": math.floor(left * 1e4) / 1e4,
        **_node(known, runs),
        "releases": [_release(run) for run in runs],
    }


def text(found: dict[str, Any]) -> str:
    """The same as text for a terminal.

    Args:
        found: Summary of a data set.
    """
    total, delta = found["total"], found["delta"]
    lines = [
        f"{found['dataset']}: relation {found['relation']}, record {found['record']}",
        f"total     epsilon {total:g}, delta {delta:g}",
        f"spent     epsilon {found['spent']:g} ({found['accountant']})",
        f"reserved  epsilon {found['reserved']:g}",
        f"left      one pure release of epsilon {found['left']:g}",
        _bar(found["spent"] / total, found["reserved"] / total),
    ]
    if found["part_of"]:
        lines.append(f"part of   {found['part_of']}, whose parts the owner declares to be disjoint")
    if (node := found.get("node")) is not None:
        size = found["max_degree"]
        lines.append(
            f"node      epsilon {node:.5g}, delta {delta:g}: all edges of a node, {size} at most, as a group"
            if isinstance(node, float)
            else f"node      no statement at delta {delta:g} on the {size} edges of a node at most"
        )
    return "\n".join([*lines, *table(found["releases"])])


def table(releases: Sequence[dict[str, Any]]) -> list[str]:
    """Runs as lines of a table; none without runs."""
    if not releases:
        return ["no releases"]
    header = ("run", "reserved (UTC)", "state", "method", "epsilon", "delta", "who", "folder")
    rows = [
        (
            str(each["run"]),
            each["opened"][_DAY].replace("T", " "),
            each["outcome"],
            each["method"],
            f"{each['epsilon']:g}",
            f"{each['delta']:g}",
            each["who"].partition(",")[0],
            each["folder"] or "-",
        )
        for each in releases
    ]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]


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
        "entries": [entry.to_dict() for entry in run.booked],
    }


def _bar(spent: float, reserved: float) -> str:
    full = min(_BAR, math.ceil(spent * _BAR - 1e-9))
    held = min(_BAR - full, math.ceil(reserved * _BAR - 1e-9))
    return f"[{'#' * full}{'+' * held}{'.' * (_BAR - full - held)}] {spent:.0%} spent"
