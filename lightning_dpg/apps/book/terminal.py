"""Tables of the budget book for a terminal; plain text with whole numbers in a pipe."""

import math
import re
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lightning_dpg.apps.book.wording import (
    GRANT_COLUMNS,
    MARK,
    PART_COLUMNS,
    PLANNED,
    RUN_COLUMNS,
    by_edges_text,
    condition_note,
    grant_cells,
    grant_rule,
    left_text,
    part_cells,
    run_cells,
    same_edges_note,
    spent_text,
    together_text,
    upper_bounds,
)
from lightning_dpg.privacy.budget import digits_up

_BAR = 40
_SHORT_BAR = 10
_BLOCKS, _ASCII = "█▒░", "#+."
_STYLES = ("red", "yellow", "green")  # of what is spent, reserved and left
_WIDEST = 10_000  # of a pipe, where no line is folded
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def lines(summary: dict[str, Any]) -> list[str]:
    """Return the totals of a data set, their bar, and its runs, as lines for stdout.

    Args:
        summary: Summary of the data set.
    """
    console = _console()
    content = _account(summary, console)
    for beside in summary["beside"]:
        content += [plain(""), *_account(beside, console)]
    return _lines_on(console, content)


def _account(summary: dict[str, Any], console: Console) -> list[RenderableType]:
    """One total of a data set, its bar, and the runs that spend on it."""
    total, delta = summary["total"], summary["delta"]
    totals = [
        f"{summary['dataset']}: relation {summary['relation']}, record {summary['record']}",
        *([summary["words"]] if summary["words"] else []),
        f"total     epsilon {digits_up(total, 6)}, delta {digits_up(delta, 6)}",
        f"spent     {spent_text(summary)}",
        f"reserved  epsilon {digits_up(summary['reserved'], 6)}",
        f"left      {left_text(summary)}",
    ]
    bar = _bar(summary, _BAR, console).append(f" {summary['spent'] / total:.0%} spent")
    grants = [_grants(summary["grants"])] if summary["grants"] else []
    content: list[RenderableType] = [
        *map(plain, totals),
        bar,
        *map(plain, _notes(summary)),
        *grants,
    ]
    if not summary["releases"]:
        return [*content, plain("no releases")]
    runs = _runs(summary["releases"], console)
    return [*content, runs, *map(plain, condition_note(summary))]


def group_lines(summary: dict[str, Any], facts: Sequence[tuple[str, str]]) -> list[str]:
    """Return what a group of disjoint parts proves, and one table of its parts, as lines.

    Args:
        summary: Summary of the group.
        facts: Its facts by name.
    """
    parts = summary["parts"]
    kind = f"relation {summary['relation']}, record {summary['record']}"
    head = [f"{summary['group']}: {len(parts)} parts, {kind}"]
    table = _table(*PART_COLUMNS)
    for each in parts:
        table.add_row(*map(plain, part_cells(each)))
    _fold_only(table, "part", "words")
    before = [*head, *(f"{name:9} {text}" for name, text in facts)]
    after = [*_same_edges(parts), *condition_note(summary)]
    return _lines_on(_console(), [*map(plain, before), table, *map(plain, after)])


def all_lines(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Return one table of all data sets, as lines.

    Args:
        summaries: Summary of each data set.
    """
    console = _console()
    table = _table("data set", "relation", "total", "delta", "spent", "reserved", "left")
    table.add_column("")
    table.add_column("runs", justify="right", no_wrap=True)
    for each in [total for of_data in summaries for total in (of_data, *of_data["beside"])]:
        bar = _bar(each, _SHORT_BAR, console)
        name, *numbers, count, _ = part_cells(each)
        table.add_row(plain(name), each["relation"], *numbers, bar, count)
    _fold_only(table, "data set")
    after = ["epsilon at the delta of each; runs: budget show NAME", *_same_edges(summaries)]
    if any(each["conditional"] for each in summaries):
        after.append(f"{MARK} only if conditions hold, which budget show NAME tells")
    return _lines_on(console, [table, *map(plain, after)])


def table_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table whose first column may be folded, as lines.

    Args:
        names: Names of the columns.
        rows: Their cells.
    """
    table = _table(*names)
    for row in rows:
        table.add_row(*map(plain, row))
    _fold_only(table, names[0])
    return _lines_on(_console(), [table])


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


def plain(text: str) -> Text:
    """A text of a user as it is, without markup and without control characters."""
    return Text(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text))


def _same_edges(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Say of each data set which runs on the same edges are not in its numbers."""
    return [f"{each['dataset']}: {note}" for each in summaries for note in same_edges_note(each)]


def _notes(summary: dict[str, Any]) -> list[str]:
    """Lines below the bar."""
    notes = [*same_edges_note(summary), *upper_bounds(summary)]
    if summary["part_of"]:
        notes.append(
            f"part of   {summary['part_of']}, whose parts the owner declares to be disjoint"
        )
    if "node" in summary:
        statement, condition, _ = summary["node_text"].partition(PLANNED)
        notes.append(f"node      {statement.rstrip()}")
        notes += [f"          {condition}"] if condition else []
    if by_edges := by_edges_text(summary):
        notes.append(f"edges     {by_edges}")
    if together := together_text(summary):
        notes.append(f"together  {together}")
    if count := len(summary["measurements"]):
        times = "once" if count == 1 else f"{count} times"
        notes.append(f"measured  {times}, on no total: budget history {summary['dataset']}")
    if rule := grant_rule(summary):
        notes.append(f"grants    {rule}")
    return notes


def _grants(grants: Sequence[dict[str, Any]]) -> Table:
    table = _table(*GRANT_COLUMNS)
    for grant in grants:
        table.add_row(*map(plain, grant_cells(grant)))
    _fold_only(table, "to", "by")
    return table


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:  # a program or a file reads whole lines
        console = Console(highlight=False, width=_WIDEST)
    return console


def _lines_on(console: Console, content: Sequence[RenderableType]) -> list[str]:
    """Return content as the lines of a console, with its colors if it is a terminal."""
    with console.capture() as capture:
        for each in content:
            console.print(each, soft_wrap=isinstance(each, Text))
    lines = capture.get().removesuffix("\n").split("\n")
    return lines if console.is_terminal else [line.rstrip(" ") for line in lines]


def _bar(summary: dict[str, Any], places: int, console: Console) -> Text:
    is_drawn = console.is_terminal and console.encoding.startswith("utf")
    bar = Text("" if is_drawn else "[")
    signs = _BLOCKS if is_drawn else _ASCII
    for count, sign, style in zip(shares(summary, places), signs, _STYLES, strict=True):
        bar.append(sign * count, style)
    if not is_drawn:
        bar.append("]")
    return bar


def _runs(releases: Sequence[dict[str, Any]], console: Console) -> Table:
    """Runs as a table; user and folder share a column where the terminal is narrow."""
    table, narrow = _table(*RUN_COLUMNS), _table(*RUN_COLUMNS[:-2], "who, folder")
    for each in releases:
        *cells, who, folder = map(plain, run_cells(each))
        table.add_row(*cells, who, folder)
        narrow.add_row(*cells, Text("\n").join([who, folder]))
    widths = _widths(table)
    if sum(widths) + 2 * len(widths) > console.width:
        table = narrow
    _fold_only(table, "method", "who, folder")
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _widths(table: Table) -> list[int]:
    """Width of each column with nothing folded."""
    return [
        max(cell_len(line) for cell in [column.header, *column.cells] for line in _lines(cell))
        for column in table.columns
    ]


def _lines(cell: RenderableType) -> list[str]:
    return str(cell).splitlines() or [""]


def _fold_only(table: Table, *folded: str) -> None:
    """Let a table fold the named columns only: no number is cut."""
    for column, width in zip(table.columns, _widths(table), strict=True):
        if column.header not in folded:
            column.min_width, column.no_wrap = width, True
