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
from lightning_dpg.book.curve import Point, spent_curve
from lightning_dpg.book.log import lines
from lightning_dpg.book.report import summary
from lightning_dpg.book.terminal import shares
from lightning_dpg.book.verification import faults
from lightning_dpg.callbacks.statement import RELATIONS
from lightning_dpg.privacy.events import Relation
from lightning_dpg.running.budget_plan import Row, budget_plan

MOST_RUNS = 500
"""Largest number of runs in the table; the newest ones are shown."""

_PLACES = 1000
_MINUTE = slice(0, 16)
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
    """All about one data set.

    Attributes:
        name: Its name in the book.
        words: The owner's words.
        guarantee: What all releases together guarantee, in one sentence.
        facts: Totals by name.
        bar: Share of the total in percent, text and color of each part of the bar.
        chart: Curve of what was spent, and its legend.
        tables: Tables below the curve.
    """

    name: str
    words: str
    guarantee: str
    facts: Sequence[tuple[str, str]]
    bar: Sequence[tuple[float, str, str]]
    chart: Markup
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
    return (
        _environment()
        .get_template("budget.html.jinja")
        .render(
            style=Markup((FOLDER / "style.html").read_text(encoding="utf-8")),
            title=f"Budget of {names[0]}" if len(names) == 1 else "Budget book",
            url=book.url,
            written=_utc(now.isoformat()),
            sections=[_section(book, name, method, now) for name in names],
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


def _section(book: Book, name: str, method: str | None, now: datetime) -> Section:
    found = summary(book, name)
    facts = [
        ("total", f"epsilon {found['total']:g}, delta {found['delta']:g}"),
        ("spent", f"epsilon {found['spent']:g} ({found['accountant']})"),
        ("reserved", f"epsilon {found['reserved']:g}"),
        ("left", f"one pure release of epsilon {found['left']:g}"),
    ]
    if "node" in found:
        facts.append(("node level", _node(found)))
    return Section(
        name=name,
        words=found["words"],
        guarantee=_guarantee(found),
        facts=facts,
        bar=_bar(found),
        chart=_chart(found, spent_curve(book, name), now),
        tables=[_releases(found), _plan(budget_plan(book, name, method), name, method)],
    )


def _guarantee(found: dict[str, Any]) -> str:
    if not found["spent"]:
        return "Nothing was released from these data yet."
    level, neighbors = RELATIONS[Relation(found["relation"])]
    return (
        f"All releases together are {level} ({found['spent']:g}, {found['delta']:g})-DP "
        f"({neighbors}), by the accountant {found['accountant']}. One record is: {found['record']}."
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
    title = f"Epsilon spent on {found['dataset']}, {found['spent']:g} of {found['total']:g}"
    axis = Axis(f"{unit} since {_utc(points[0].time)} UTC", low=0.0, high=end)
    chart = line_chart(series, title, axis, Axis("epsilon", high=1.05 * highest))
    return Markup(legend(series) + chart)  # both escape their texts


def _releases(found: dict[str, Any]) -> Table:
    runs = found["releases"][::-1]
    rows = [
        (
            str(run["run"]),
            _utc(run["opened"]),
            run["method"],
            f"{run['epsilon']:g}",
            f"{run['delta']:g}",
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
        ("run", "reserved", "method", "epsilon", "delta", "state", "who", "folder", "digest"),
        rows,
        (f"{plural(more, 'earlier run')} not shown: see budget export.",) if more else (),
    )


def _plan(rows: Sequence[Row], name: str, method: str | None) -> Table:
    cells = [
        (
            str(row.share.releases),
            row.method,
            f"{row.share.budget.epsilon:g}" if row.share.budget.epsilon else "none",
            f"{row.share.budget.delta:g}",
            "-" if row.share.noise_multiplier is None else f"{row.share.noise_multiplier:.4g}",
            "-" if row.steps is None else str(row.steps),
        )
        for row in rows
    ]
    measured = dict.fromkeys(str(number) for row in rows for number in row.measured)
    asked = "" if method else f" For another method: budget plan {name} --method METHOD."
    return Table(
        "What is left buys",
        "Largest epsilon of each of several equal further releases that the filter of the book lets "
        "in. The noise is that of most Gaussian steps.",
        ("releases", "method", "epsilon each", "delta each", "noise multiplier", "steps"),
        cells,
        (
            f"A trained method stands with its shipped configuration.{asked}",
            *(f"Measured on public data: {line}" for line in measured),
        ),
    )


def _utc(time: str) -> str:
    return time[_MINUTE].replace("T", " ")
