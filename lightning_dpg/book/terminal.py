"""Tables of the budget book in a terminal; plain text with whole numbers in a pipe."""

import math
import re
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lightning_dpg.book.wording import (
    GRANT_COLUMNS,
    MARK,
    PART_COLUMNS,
    RUN_COLUMNS,
    condition_note,
    grant_cells,
    grant_rule,
    left_text,
    part_cells,
    run_cells,
    same_edges_note,
    spent_text,
    upper_bounds,
)
from lightning_dpg.privacy.budget import digits_up

_BAR = 40
_SHORT_BAR = 10
_BLOCKS, _ASCII = "█▒░", "#+."
_STYLES = ("red", "yellow", "green")  # of what is spent, reserved and left
_WIDEST = 10_000  # of a pipe, where no line is folded
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def show(summary: dict[str, Any]) -> None:
    """Print the totals of a data set, their bar, and its runs.

    Args:
        summary: Summary of the data set.
    """
    console = _console()
    total, delta = summary["total"], summary["delta"]
    lines = [
        f"{summary['dataset']}: relation {summary['relation']}, record {summary['record']}",
        *([summary["words"]] if summary["words"] else []),
        f"total     epsilon {digits_up(total, 6)}, delta {digits_up(delta, 6)}",
        f"spent     {spent_text(summary)}",
        f"reserved  epsilon {digits_up(summary['reserved'], 6)}",
        f"left      {left_text(summary)}",
    ]
    for line in lines:
        _print(console, plain(line))
    _print(console, _bar(summary, _BAR, console).append(f" {summary['spent'] / total:.0%} spent"))
    for line in _notes(summary):
        _print(console, plain(line))
    if summary["grants"]:
        _print(console, _grants(summary["grants"]))
    if not summary["releases"]:
        _print(console, plain("no releases"))
        return
    _print(console, _runs(summary["releases"], console))
    for line in condition_note(summary):
        _print(console, plain(line))


def show_group(summary: dict[str, Any], facts: Sequence[tuple[str, str]]) -> None:
    """Print what a group of disjoint parts proves, and one table of its parts.

    Args:
        summary: Summary of the group.
        facts: Its facts by name.
    """
    console = _console()
    parts = summary["parts"]
    kind = f"relation {summary['relation']}, record {summary['record']}"
    _print(console, plain(f"{summary['group']}: {len(parts)} parts, {kind}"))
    for name, text in facts:
        _print(console, plain(f"{name:9} {text}"))
    table = _table(*PART_COLUMNS)
    for each in parts:
        table.add_row(*map(plain, part_cells(each)))
    _fold_only(table, "part", "words")
    _print(console, table)
    for line in [*_same_edges(parts), *condition_note(summary)]:
        _print(console, plain(line))


def show_all(summaries: Sequence[dict[str, Any]]) -> None:
    """Print one table of all data sets.

    Args:
        summaries: Summary of each data set.
    """
    console = _console()
    table = _table("data set", "relation", "total", "delta", "spent", "reserved", "left")
    table.add_column("")
    table.add_column("runs", justify="right", no_wrap=True)
    for each in summaries:
        bar = _bar(each, _SHORT_BAR, console)
        name, *numbers, count, _ = part_cells(each)
        table.add_row(plain(name), each["relation"], *numbers, bar, count)
    _fold_only(table, "data set")
    _print(console, table)
    _print(console, plain("epsilon at the delta of each; runs: budget show NAME"))
    for line in _same_edges(summaries):
        _print(console, plain(line))
    _print_mark(console, summaries)


def show_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column may be folded.

    Args:
        names: Names of the columns.
        rows: Their cells.
    """
    table = _table(*names)
    for row in rows:
        table.add_row(*map(plain, row))
    _fold_only(table, names[0])
    _print(_console(), table)


def node_line(node: float | str, size: int, delta: float) -> str:
    """Say what the releases prove for all edges of a node.

    Args:
        node: Derived epsilon; a text if there is none.
        size: Largest number of edges of a node.
        delta: Delta of the statement.
    """
    if isinstance(node, str):
        return f"node      no statement at delta {delta:g} on the {size} edges of a node at most"
    budget = f"epsilon {digits_up(node, 5)}, delta {delta:g}"
    return f"node      {budget}: all edges of a node, {size} at most, as a group"


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


def _print_mark(console: Console, summaries: Sequence[dict[str, Any]]) -> None:
    """Explain the mark of data sets whose numbers hold under conditions."""
    if any(each["conditional"] for each in summaries):
        _print(console, plain(f"{MARK} only if conditions hold, which budget show NAME tells"))


def _notes(summary: dict[str, Any]) -> list[str]:
    """Lines below the bar."""
    notes = [*same_edges_note(summary), *upper_bounds(summary)]
    if summary["part_of"]:
        notes.append(
            f"part of   {summary['part_of']}, whose parts the owner declares to be disjoint"
        )
    if (node := summary.get("node")) is not None:
        notes.append(node_line(node, summary["max_degree"], summary["delta"]))
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


def _print(console: Console, content: RenderableType) -> None:
    if console.is_terminal:
        console.print(content, soft_wrap=isinstance(content, Text))
        return
    with console.capture() as capture:
        console.print(content, soft_wrap=isinstance(content, Text))
    print("\n".join(line.rstrip(" ") for line in capture.get().removesuffix("\n").split("\n")))


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
