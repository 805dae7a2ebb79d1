"""Tables of the page of a budget book: releases, grants, measurements and what is left."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from lightning_dpg.benchmark.pages import plural
from lightning_dpg.book.report import Content
from lightning_dpg.book.rows import counted
from lightning_dpg.book.wording import GRANT_COLUMNS, grant_cells, method_name, minute
from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.running.budget_plan import Row, planned_rows, used_methods

MOST_RUNS = 500
"""Largest number of runs in the table; the newest ones are shown."""


class Table(NamedTuple):
    """A table of the page.

    Attributes:
        title: Heading above it.
        caption: What it holds.
        head: Names of the columns.
        rows: Texts of the cells.
        notes: Sentences below it.
    """

    title: str
    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


def released_runs(found: dict[str, Any]) -> Table:
    """Runs and their releases, the newest first, at most :data:`MOST_RUNS`."""
    runs = found["releases"][::-1]
    rows = [
        (
            str(run["run"]),
            minute(run["opened"]),
            method_name(run),
            digits_up(run["epsilon"], 6),
            digits_up(run["delta"], 6),
            run["outcome"],
            run["who"].partition(",")[0],
            run["folder"] or "-",
            run["release"] or "-",
        )
        for run in runs[:MOST_RUNS]
    ]
    more = len(runs) - len(rows)
    return Table(
        "Releases",
        "Runs and their releases, the newest first. Times are in UTC. The digest is the SHA-256 of "
        "the file SHA256SUMS in the folder of the release, which holds those of its other files.",
        ("run", "opened", "method", "epsilon", "delta", "state", "who", "folder", "digest"),
        rows,
        (f"{plural(more, 'earlier run')} not shown: see budget export.",) if more else (),
    )


def grants(found: dict[str, Any]) -> Table:
    """Each user's grant, and the runs that count on it."""
    return Table(
        "Grants",
        "What each user may spend, and what all runs of the user count.",
        GRANT_COLUMNS,
        [grant_cells(grant) for grant in found["grants"]],
    )


def measurements(found: dict[str, Any]) -> Table:
    """Measurements that read the data, the newest first, at most :data:`MOST_RUNS`."""
    made = found["measurements"][::-1]
    rows = [
        (
            each["command"],
            ", ".join(each["methods"]) or "-",
            ", ".join(f"{epsilon:g}" for epsilon in each["epsilons"]) or "-",
            each["who"].partition(",")[0],
            minute(each["time"]),
        )
        for each in made[:MOST_RUNS]
    ]
    more = len(made) - len(rows)
    return Table(
        "Measurements that read the data and are on no total",
        "Their numbers are not private, and stay with the owner. Times are in UTC.",
        ("command", "methods", "epsilons", "who", "time"),
        rows,
        (f"{plural(more, 'earlier measurement')} not shown: see budget history.",) if more else (),
    )


def left_over(content: Content, method: str | None) -> list[Table]:
    """Further releases that fit into the total, and the quality that was measured near their epsilons.

    They are of the methods that were used on these data, or else of the usual two kinds, of which the
    second is left out where nothing of it is let in. Of each kind, the smallest number of releases
    that is not let in is the last row.

    Args:
        content: What the book says of the data set.
        method: Method to plan in place of these.
    """
    known = content.known
    used = [method] if method else used_methods(known, content.runs)
    rows: list[Row] = []
    for _, kind in groupby(
        planned_rows(known, counted(content.runs), used), lambda row: row.method
    ):
        of_kind = [*kind]
        let_in = [row for row in of_kind if row.share.budget.epsilon]
        if let_in or used or not rows:
            rows += of_kind[: len(let_in) + 1]
    cells = [
        (
            str(row.share.releases),
            row.method,
            digits_up(row.share.budget.epsilon, 6) if row.share.budget.epsilon else "none",
            digits_up(row.share.budget.delta, 6),
            "-" if (noise := row.share.noise_multiplier) is None else digits_down(noise, 4),
            "-" if row.steps is None else str(row.steps),
        )
        for row in rows
    ]
    measured = dict.fromkeys(number for row in rows for number in row.measured)
    grants = ("Grants can let in less.",) if content.grants or content.known.two_persons else ()
    asked = "" if method else f" For another method: budget plan {known.name} --method METHOD."
    plan = Table(
        "What is left buys",
        "Largest epsilon of each of several equal further releases that the filter of the book lets "
        "in. The noise is that of most Gaussian steps.",
        ("releases", "method", "epsilon each", "delta each", "noise multiplier", "steps"),
        cells,
        (
            f"A trained method stands with its shipped configuration.{asked}",
            *grants,
        ),
    )
    near = [
        (
            number.query or "-",
            f"{number.value} ± {number.deviation}" if number.deviation else number.value,
            f"{number.epsilon:g}",
            number.caption,
            number.study,
        )
        for number in measured
    ]
    head = ("measured", "value", "epsilon", "table", "study")
    caption = "Numbers on public graphs at the measured epsilons next to these, from results/."
    return [plan, *([Table("Measured quality", caption, head, near)] if near else [])]
