"""Tables of the budget book for a terminal; plain text with whole numbers in a pipe."""

import math
import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

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
    for other in summary["beside"]:
        content += [plain(""), *_account(other, console)]
    return _lines_on(console, content)


def _account(summary: dict[str, Any], console: Console) -> list[RenderableType]:
    """One total of a data set, its bar, and the runs that spend on it."""
    found = facts(summary)
    head = [
        f"{summary['dataset']}: relation {summary['relation']}, record {summary['record']}",
        *([summary["words"]] if summary["words"] else []),
        *_named(found[:AMOUNTS], console),
    ]
    spent = summary["spent"] / summary["total"]
    notes = [*same_edges_note(summary), *upper_bounds(summary)]
    content: list[RenderableType] = [
        *map(plain, head),
        _bar(summary, _BAR, console).append(f" {spent:.0%} spent"),
        *map(plain, [*notes, *_named(found[AMOUNTS:], console)]),
        *([_grants(summary["grants"])] if summary["grants"] else []),
    ]
    if not summary["releases"]:
        return [*content, plain("no releases")]
    runs = _runs(summary["releases"], console)
    return [*content, runs, *map(plain, condition_note(summary))]


def group_lines(summary: dict[str, Any], found: Sequence[tuple[str, str]]) -> list[str]:
    """Return what a group of disjoint parts proves, and one table of its parts, as lines.

    Args:
        summary: Summary of the group.
        found: Its facts by name.
    """
    parts = summary["parts"]
    kind = f"relation {summary['relation']}, record {summary['record']}"
    head = [f"{summary['group']}: {len(parts)} parts, {kind}"]
    table = _table(*PART_COLUMNS)
    for each in parts:
        table.add_row(*map(plain, part_cells(each)))
    _fold_only(table, "part", "words")
    console = _console()
    before = [*head, *_named(found, console)]
    after = [*_same_edges(parts), *condition_note(summary)]
    return _lines_on(console, [*map(plain, before), table, *map(plain, after)])


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


def _named(found: Sequence[tuple[str, str]], console: Console) -> list[str]:
    """Facts behind their names, folded where a terminal is narrow."""
    return [
        line
        for name, text in found
        for line in wrap(
            text, console.width, initial_indent=f"{name:9} ", subsequent_indent=" " * 10
        )
    ]


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
