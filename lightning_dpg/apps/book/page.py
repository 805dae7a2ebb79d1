"""The page of a budget book: totals and releases, on one page."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.partition import group_facts, group_summary_of, parts_of
from lightning_dpg.apps.book.report import Content, read, summary_of
from lightning_dpg.apps.book.store import faults, state_of
from lightning_dpg.apps.book.terminal import shares
from lightning_dpg.apps.book.wording import (
    GRANT_COLUMNS,
    MARK,
    PART_COLUMNS,
    RUN_COLUMNS,
    condition_note,
    facts,
    grant_cells,
    minute,
    name_of_total,
    part_cells,
    run_cells,
    same_edges_note,
    upper_bounds,
)
from lightning_dpg.metrics.figures import COLORS
from lightning_dpg.pages.page import Table, plural, render
from lightning_dpg.privacy.budget import digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.release.statement import RELATIONS

MOST_RUNS = 500
"""Largest number of runs in the table; the newest ones are shown."""
_PLACES = 1000


class Section(NamedTuple):
    """All about one data set, or about a group of disjoint parts.

    Attributes:
        name: Its name in the book.
        words: The owner's words.
        guarantee: Guarantee of all releases together, in one sentence.
        facts: Totals by name.
        bar: Share of the total in percent, text and color of each part of the bar.
        notes: Sentences below the bar.
        tables: Tables below the notes.
    """

    name: str
    words: str
    guarantee: str
    facts: Sequence[tuple[str, str]]
    bar: Sequence[tuple[float, str, str]]
    notes: Sequence[str]
    tables: Sequence[Table]


def page(book: Book, names: Sequence[str]) -> str:
    """Build the page as HTML.

    Args:
        book: The book.
        names: Data sets.
    """
    with book.database.snapshot():
        last = state_of(book.database).last
        contents = [read(book, name) for name in names]
        groups = [parts for parts in _groups(contents) if _is_whole(book, parts)]
    sections = [_section(part) for content in contents for part in content.each_total]
    parts = {
        "title": f"Budget of {names[0]}" if len(names) == 1 else "Budget book",
        "url": book.url,
        "written": minute(datetime.now(UTC).isoformat()),
        "sections": [*(_group(group_summary_of(parts)) for parts in groups), *sections],
        "num_lines": plural(last.line if last else 0, "line"),
        "last_hash": last.hash if last else "",
        "faults": faults(book.database),
    }
    return render("budget", parts, Path(__file__).parent)


def _groups(contents: Sequence[Content]) -> list[list[Content]]:
    """Parts on the page, by group."""
    groups: dict[str, list[Content]] = {}
    for content in contents:
        if content.dataset.part_of:
            groups.setdefault(content.dataset.part_of, []).append(content)
    return [*groups.values()]


def _is_whole(book: Book, parts: Sequence[Content]) -> bool:
    """Return whether all parts of a group are here: a statement on the group needs all of them."""
    return len(parts) == len(parts_of(book, parts[0].dataset.part_of))


def _group(summary: dict[str, Any]) -> Section:
    caption = "Each part has a total and a filter of its own."
    parts = Table("Parts", caption, PART_COLUMNS, [*map(part_cells, summary["parts"])])
    spent = f"{_amounts(summary)} for one {summary['record']}, if the declaration holds."
    guarantee = f"All releases from all parts together are {spent}"
    if summary["conditional"]:
        guarantee += f" The conditions of the runs marked {MARK} have to hold, too."
    same = [
        f"{each['dataset']}: {note}" for each in summary["parts"] for note in same_edges_note(each)
    ]
    notes = [f"{note}." for note in [*same, *condition_note(summary)]]
    return Section(summary["group"], "", guarantee, group_facts(summary), [], notes, [parts])


def _section(content: Content) -> Section:
    summary = summary_of(content)
    return Section(
        name=name_of_total(summary),
        words=summary["words"],
        guarantee=_guarantee(summary),
        facts=facts(summary),
        bar=_bar(summary),
        notes=[
            f"{note[0].upper()}{note[1:]}."
            for note in [*upper_bounds(summary), *condition_note(summary)]
        ],
        tables=[
            _released_runs(summary),
            *([_grants(summary)] if summary["grants"] else []),
            *([_measurements(summary)] if summary["measurements"] else []),
        ],
    )


def _guarantee(summary: dict[str, Any]) -> str:
    same = "".join(f" {note[0].upper()}{note[1:]}." for note in same_edges_note(summary))
    if not summary["spent"]:
        return f"Nothing was released on this total yet.{same}"
    level, neighbors = RELATIONS[Relation(summary["relation"])]
    marked = summary["conditional"]
    return (
        f"All releases on this total together are {level} {_amounts(summary)} ({neighbors}), by the "
        f"accountant {summary['accountant']}. One record is: {summary['record']}.{same} "
        "If later releases were chosen after earlier ones were seen, the total is proved."
        + (f" All of this holds if the conditions of the runs marked {MARK} do." if marked else "")
    )


def _bar(summary: dict[str, Any]) -> list[tuple[float, str, str]]:
    names = ("spent", "reserved", "not spent")
    colors = (COLORS[1], COLORS[5], COLORS[2])
    percents = [100 * count / _PLACES for count in shares(summary, _PLACES)]
    return [
        (percent, f"{name} {percent:.3g} %", color)
        for percent, name, color in zip(percents, names, colors, strict=True)
    ]


def _amounts(summary: dict[str, Any]) -> str:
    return f"({digits_up(summary['spent'], 6)}, {digits_up(summary['delta'], 6)})-DP"


def _released_runs(summary: dict[str, Any]) -> Table:
    """Runs and their releases, the newest first, at most :data:`MOST_RUNS`."""
    runs = summary["releases"][::-1]
    rows = [(*run_cells(run), run["release"] or "-") for run in runs[:MOST_RUNS]]
    more = len(runs) - len(rows)
    return Table(
        "Releases",
        "Runs and their releases, the newest first. The digest is the SHA-256 of "
        "the file SHA256SUMS in the folder of the release, which holds those of its other files.",
        (*RUN_COLUMNS, "digest"),
        rows,
        (f"{plural(more, 'earlier run')} not shown: see budget export.",) if more else (),
    )


def _grants(summary: dict[str, Any]) -> Table:
    """Each user's grant, and the runs that count on it."""
    return Table(
        "Grants",
        "What each user may spend, and what all runs of the user count.",
        GRANT_COLUMNS,
        [grant_cells(grant) for grant in summary["grants"]],
    )


def _measurements(summary: dict[str, Any]) -> Table:
    """Measurements that read the data, the newest first, at most :data:`MOST_RUNS`."""
    measurements = summary["measurements"][::-1]
    rows = [
        (
            each["command"],
            ", ".join(each["methods"]) or "-",
            ", ".join(f"{epsilon:g}" for epsilon in each["epsilons"]) or "-",
            each["who"].partition(",")[0],
            minute(each["time"]),
        )
        for each in measurements[:MOST_RUNS]
    ]
    more = len(measurements) - len(rows)
    return Table(
        "Measurements that read the data and are on no total",
        "Their numbers are not private, and stay with the owner. Times are in UTC.",
        ("command", "methods", "epsilons", "who", "time"),
        rows,
        (f"{plural(more, 'earlier measurement')} not shown: see budget history.",) if more else (),
    )
