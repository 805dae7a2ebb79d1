"""Tables of the budget book as lines of text."""

import math
import re
from collections.abc import Sequence
from typing import Any

from lightning_dpg.apps.book.wording import (
    AMOUNTS,
    GRANT_COLUMNS,
    MARK,
    PART_COLUMNS,
    RUN_COLUMNS,
    condition_note,
    facts,
    grant_cells,
    part_cells,
    run_cells,
    same_edges_note,
    upper_bounds,
)
from lightning_dpg.tables import as_text

_BAR = 40
_SHORT_BAR = 10
_SIGNS = "#+."  # of what is spent, reserved and left
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def lines(summary: dict[str, Any]) -> list[str]:
    """Return the totals of a data set, their bar, and its runs, as lines for stdout.

    Args:
        summary: Summary of the data set.
    """
    content = _account(summary)
    for other in summary["beside"]:
        content += ["", *_account(other)]
    return content


def _account(summary: dict[str, Any]) -> list[str]:
    """One total of a data set, its bar, and the runs that spend on it."""
    found = _named(facts(summary))
    head = [
        f"{summary['dataset']}: relation {summary['relation']}, record {summary['record']}",
        *([summary["words"]] if summary["words"] else []),
    ]
    spent = summary["spent"] / summary["total"]
    content = [
        *map(plain, head),
        *found[:AMOUNTS],
        f"{_bar(summary, _BAR)} {spent:.0%} spent",
        *map(plain, [*same_edges_note(summary), *upper_bounds(summary)]),
        *found[AMOUNTS:],
    ]
    if summary["grants"]:
        content += table_lines(GRANT_COLUMNS, [*map(grant_cells, summary["grants"])])
    if not summary["releases"]:
        return [*content, "no releases"]
    runs = table_lines(RUN_COLUMNS, [*map(run_cells, summary["releases"])])
    return [*content, *runs, *map(plain, condition_note(summary))]


def group_lines(summary: dict[str, Any], found: Sequence[tuple[str, str]]) -> list[str]:
    """Return what a group of disjoint parts proves, and one table of its parts, as lines.

    Args:
        summary: Summary of the group.
        found: Its facts by name.
    """
    parts = summary["parts"]
    kind = f"relation {summary['relation']}, record {summary['record']}"
    return [
        plain(f"{summary['group']}: {len(parts)} parts, {kind}"),
        *_named(found),
        *table_lines(PART_COLUMNS, [*map(part_cells, parts)]),
        *map(plain, [*_same_edges(parts), *condition_note(summary)]),
    ]


def all_lines(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Return one table of all data sets, as lines.

    Args:
        summaries: Summary of each data set.
    """
    rows = []
    for each in [total for of_data in summaries for total in (of_data, *of_data["beside"])]:
        name, *numbers, count, _ = part_cells(each)
        rows.append([name, each["relation"], *numbers, _bar(each, _SHORT_BAR), count])
    head = ("data set", "relation", "total", "delta", "spent", "reserved", "left", "", "runs")
    after = ["epsilon at the delta of each; runs: budget show NAME", *_same_edges(summaries)]
    if any(each["conditional"] for each in summaries):
        after.append(f"{MARK} only if conditions hold, which budget show NAME tells")
    return [*table_lines(head, rows), *map(plain, after)]


def table_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines.

    Args:
        names: Names of the columns.
        rows: Their cells.
    """
    return as_text([names, *([*map(plain, row)] for row in rows)], range(len(names)))


def shares(summary: dict[str, Any], places: int) -> tuple[int, int, int]:
    """Places of a bar that are spent, reserved and left; the first two are rounded up.

    Args:
        summary: Summary of a data set.
        places: Number of places of the whole bar.
    """
    total = summary["total"]
    spent = min(places, math.ceil(summary["spent"] / total * places - 1e-9))
    held = min(places - spent, math.ceil(summary["reserved"] / total * places - 1e-9))
    return spent, held, places - spent - held


def plain(text: str) -> str:
    """A text of a user without control characters."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def _same_edges(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Say of each data set which runs on the same edges are not in its numbers."""
    return [f"{each['dataset']}: {note}" for each in summaries for note in same_edges_note(each)]


def _named(found: Sequence[tuple[str, str]]) -> list[str]:
    """Facts behind their names."""
    return [plain(f"{name:9} {text}") for name, text in found]


def _bar(summary: dict[str, Any], places: int) -> str:
    parts = zip(shares(summary, places), _SIGNS, strict=True)
    return f"[{''.join(sign * count for count, sign in parts)}]"
