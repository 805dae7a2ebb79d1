"""The page of a budget book: totals, the spent curve, releases and what is left, on one page."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lightning_dpg.benchmark.charts import COLORS, REAL, Axis, Series, legend, line_chart
from lightning_dpg.benchmark.pages import FOLDER, NO_NETWORK, plural
from lightning_dpg.book.book import Book
from lightning_dpg.book.curve import Point, curve
from lightning_dpg.book.log import Line, lines
from lightning_dpg.book.partition import group_facts, grouped, parts_of
from lightning_dpg.book.report import Content, read, summarized
from lightning_dpg.book.rows import counted
from lightning_dpg.book.terminal import shares
from lightning_dpg.book.verification import faults
from lightning_dpg.book.wording import (
    GRANT_COLUMNS,
    MARK,
    condition_note,
    grant_cells,
    grant_rule,
    left_number,
    left_text,
    method_name,
    minute,
    upper_bounds,
)
from lightning_dpg.callbacks.statement import RELATIONS
from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.running.budget_plan import planned_rows

MOST_RUNS = 500
"""Largest number of runs in the table; the newest ones are shown."""

_PLACES = 1000
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


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


class Section(NamedTuple):
    """All about one data set, or about a group of disjoint parts.

    Attributes:
        name: Its name in the book.
        words: The owner's words.
        guarantee: What all releases together guarantee, in one sentence.
        facts: Totals by name.
        bar: Share of the total in percent, text and color of each part of the bar.
        notes: Sentences below the bar.
        chart: Curve of what was spent, and its legend; None of a group.
        tables: Tables below the curve.
    """

    name: str
    words: str
    guarantee: str
    facts: Sequence[tuple[str, str]]
    bar: Sequence[tuple[float, str, str]]
    notes: Sequence[str]
    chart: Markup | None
    tables: Sequence[Table]


def page(book: Book, names: Sequence[str], method: str | None = None) -> str:
    """Build the page as HTML.

    Args:
        book: The book.
        names: Data sets.
        method: Method whose further releases are planned; by default two kinds of releases.
    """
    now = datetime.now(UTC)
    with book.database.snapshot():
        log = lines(book.database)
        contents = [read(book, name) for name in names]
        groups = [parts for parts in _groups(contents) if _is_whole(book, parts)]
    sections = [_section(content, log, method, now) for content in contents]
    return (
        _environment()
        .get_template("budget.html.jinja")
        .render(
            style=Markup((FOLDER / "style.html").read_text(encoding="utf-8")),
            title=f"Budget of {names[0]}" if len(names) == 1 else "Budget book",
            url=book.url,
            written=_utc(now.isoformat()),
            sections=[*(_group(grouped(parts)) for parts in groups), *sections],
            num_lines=plural(len(log), "line"),
            last_hash=log[-1].hash if log else "",
            faults=faults(book.database),
            footer=NO_NETWORK,
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _groups(contents: Sequence[Content]) -> list[list[Content]]:
    """Parts on the page, by group."""
    groups: dict[str, list[Content]] = {}
    for content in contents:
        if content.known.part_of:
            groups.setdefault(content.known.part_of, []).append(content)
    return [*groups.values()]


def _is_whole(book: Book, parts: Sequence[Content]) -> bool:
    """Whether a group has no further parts, which would be missing in what is said of it."""
    return len(parts) == len(parts_of(book, parts[0].known.part_of))


def _group(found: dict[str, Any]) -> Section:
    rows = [
        (
            each["dataset"],
            *(digits_up(each[key], 6) for key in ("total", "delta", "spent", "reserved")),
            left_number(each),
            str(len(each["releases"])),
            each["words"],
        )
        for each in found["parts"]
    ]
    head = ("part", "total", "delta", "spent", "reserved", "left", "runs", "words")
    parts = Table("Parts", "Each part has a total and a filter of its own.", head, rows)
    spent = f"{_amounts(found)} for one {found['record']}, if the declaration holds."
    guarantee = f"All releases from all parts together are {spent}"
    if any(each["conditional"] for each in found["parts"]):
        guarantee += f" The conditions of the runs marked {MARK} have to hold, too."
    return Section(found["group"], "", guarantee, group_facts(found), [], [], None, [parts])


def _section(content: Content, log: Sequence[Line], method: str | None, now: datetime) -> Section:
    found = summarized(content)
    facts = [
        ("total", f"epsilon {digits_up(found['total'], 6)}, delta {digits_up(found['delta'], 6)}"),
        ("spent", f"epsilon {digits_up(found['spent'], 6)} ({found['accountant']})"),
        ("reserved", f"epsilon {digits_up(found['reserved'], 6)}"),
        ("left", left_text(found)),
    ]
    if "node" in found:
        facts.append(("node level", _node(found)))
    if found["part_of"]:
        facts.append(
            ("part of", f"{found['part_of']}, whose parts the owner declares to be disjoint")
        )
    if rule := grant_rule(found):
        facts.append(("grants", rule))
    points = curve(content.known, content.runs, log)
    return Section(
        name=content.known.name,
        words=found["words"],
        guarantee=_guarantee(found),
        facts=facts,
        bar=_bar(found),
        notes=[
            f"{note[0].upper()}{note[1:]}."
            for note in [*upper_bounds(found), *condition_note(found)]
        ],
        chart=_chart(found, points, now),
        tables=[
            _releases(found),
            *([_grants(found)] if found["grants"] else []),
            *([_measurements(found)] if found["measurements"] else []),
            *([] if found["closed"] else _plan(content, method)),
        ],
    )


def _guarantee(found: dict[str, Any]) -> str:
    if not found["spent"]:
        return "Nothing was released from these data yet."
    level, neighbors = RELATIONS[Relation(found["relation"])]
    marked = found["conditional"]
    return (
        f"All releases together are {level} {_amounts(found)} ({neighbors}), by the accountant "
        f"{found['accountant']}. One record is: {found['record']}. "
        "If later releases were chosen after earlier ones were seen, the total is proved."
        + (f" All of this holds if the conditions of the runs marked {MARK} do." if marked else "")
    )


def _node(found: dict[str, Any]) -> str:
    size = f"all edges of a node, {found['max_degree']} at most, as a group"
    node = found["node"]
    return f"no statement ({size})" if isinstance(node, str) else f"epsilon {node:.5g} ({size})"


def _bar(found: dict[str, Any]) -> list[tuple[float, str, str]]:
    names = ("spent", "reserved", "not spent")
    colors = (COLORS[1], COLORS[5], COLORS[2])
    percents = [100 * count / _PLACES for count in shares(found, _PLACES)]
    return [
        (percent, f"{name} {percent:.3g} %", color)
        for percent, name, color in zip(percents, names, colors, strict=True)
    ]


def _amounts(found: dict[str, Any]) -> str:
    return f"({digits_up(found['spent'], 6)}, {digits_up(found['delta'], 6)})-DP"


def _chart(found: dict[str, Any], points: Sequence[Point], now: datetime) -> Markup:
    """Steps of what was spent below the line of the total."""
    start = datetime.fromisoformat(points[0].time)
    span = max((now - start).total_seconds(), 1.0)
    unit, seconds = next(unit for unit in _UNITS if span >= 2 * unit[1] or unit[1] == 1)

    def since(time: datetime) -> float:
        return max((time - start).total_seconds(), 0.0) / seconds

    steps = [(0.0, 0.0)]
    for point in points[1:]:
        at = since(datetime.fromisoformat(point.time))
        steps += [(at, steps[-1][1]), (at, point.spent)]
    end = max(since(now), steps[-1][0])
    steps.append((end, steps[-1][1]))
    highest = max(found["total"], *(spent for _, spent in steps))
    series = [
        Series("spent", steps, COLORS[1]),
        Series("total", [(0.0, found["total"]), (end, found["total"])], REAL, is_dashed=True),
    ]
    title = f"Epsilon spent on {found['dataset']}, {found['spent']:.10g} of {found['total']:g}"
    axis = Axis(f"{unit} since {_utc(points[0].time)} UTC", low=0.0, high=end)
    chart = line_chart(series, title, axis, Axis("epsilon", high=1.05 * highest))
    return Markup(legend(series) + chart)  # both escape their texts


def _releases(found: dict[str, Any]) -> Table:
    runs = found["releases"][::-1]
    rows = [
        (
            str(run["run"]),
            _utc(run["opened"]),
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
        "Runs and their releases, the newest first. Times are in UTC.",
        ("run", "opened", "method", "epsilon", "delta", "state", "who", "folder", "digest"),
        rows,
        (f"{plural(more, 'earlier run')} not shown: see budget export.",) if more else (),
    )


def _grants(found: dict[str, Any]) -> Table:
    return Table(
        "Grants",
        "What each user may spend, and what all runs of the user count.",
        GRANT_COLUMNS,
        [grant_cells(grant) for grant in found["grants"]],
    )


def _measurements(found: dict[str, Any]) -> Table:
    made = found["measurements"][::-1]
    rows = [
        (
            each["command"],
            ", ".join(each["methods"]) or "-",
            ", ".join(f"{epsilon:g}" for epsilon in each["epsilons"]) or "-",
            each["who"].partition(",")[0],
            _utc(each["time"]),
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


def _plan(content: Content, method: str | None) -> list[Table]:
    """What is left buys, and the quality that was measured near its epsilons."""
    name, rows = content.known.name, planned_rows(content.known, counted(content.runs), method)
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
    asked = "" if method else f" For another method: budget plan {name} --method METHOD."
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


def _utc(time: str) -> str:
    return minute(time)
