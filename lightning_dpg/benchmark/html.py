"""The report of a benchmark: one page that works without a network."""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from lightning_dpg.benchmark.charts import COLORS, MUTED, REAL, Axis, Series, line_chart
from lightning_dpg.benchmark.figures import aligned, degree_curve, renderer
from lightning_dpg.benchmark.pages import NO_NETWORK, explained, fill, image, plural, script_json
from lightning_dpg.benchmark.result_folder import drawn_by
from lightning_dpg.benchmark.results import (
    Row,
    Summary,
    Table,
    best,
    footnotes,
    original,
    queries,
    tables,
    text,
    wins,
)
from lightning_dpg.benchmark.tasks import Task
from lightning_dpg.graph.io import read_graph
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.glossary import GLOSSARY, GROUPS

ERRORS = (
    "Errors, mean ± standard deviation over the runs: 0 is best, or 1 in the rows with ↑. Marked: "
    "the best private method and all that two standard errors of the difference do not tell from it; "
    "baselines only where no method is among them, and nothing where this is every row. One run has "
    "no deviation, and few have a rough one. In italics: not private within this budget, and out of "
    "competition."
)
DEGREES = "Below, nodes by degree on logarithmic axes; dashed are the real ones."


def page(
    results: Sequence[dict[str, Any]], graphs: dict[str, Data], task: Task, folder: Path
) -> str:
    """Build the report as HTML, with tables, figures, and numbers of curves for a script.

    Args:
        results: Recorded results of the jobs, failed ones included.
        graphs: Real data by name, without directions.
        task: The task.
        folder: Folder of all results.
    """
    found = tables(results)
    names = [name for name in graphs if any(table.graph == name for table in found)]
    renderers = {name: renderer(graphs[name]) for name in names}
    asked = queries(results, task)
    roles = {row.method: row.role for table in found for row in table.rows}
    colors = _colors(roles)
    curves = {name: degree_curve(graphs[name]) for name in names}
    sections = []
    for table in found:
        real = graphs[table.graph]
        render = renderers[table.graph]
        mine = curves[table.graph]
        alone = _degrees([Series("original", mine, REAL)])
        cards = [
            _card(table, None, real, image(render(real), "Adjacency matrix of original"), alone)
        ]
        for row in table.rows:
            path = drawn_by(folder, row.first_names)
            if path is not None:
                graph = read_graph(path, undirected=task.kind == "directed")
                picture = image(render(aligned(graph, real)), f"Adjacency matrix of {row.method}")
                drawn = Series(row.method, degree_curve(graph), colors[row.method])
                both = _degrees([Series("original", mine, REAL, is_dashed=True), drawn])
                cards.append(_card(table, row, graph, picture, both))
        sections.append(_section(table, cards, asked, task))
    data = _curves(found, asked, task) | {"roles": roles, "colors": colors}
    runs = len({result["run"] for result in results})
    parts = {
        "LEAD": f"<p>{plural(len(names), task.noun)}, {plural(len(roles), 'row')}, "
        f"{plural(len(data['epsilons']), 'budget')}, {plural(runs, 'run')} of each. A method is "
        f"worth its budget where it beats the baselines. {_html(task.advice)} A method that is "
        "trained must also beat itself untrained.</p>",
        "SECTIONS": "\n".join(sections),
        "FOOTER": f"{NO_NETWORK} All numbers, run by run: "
        '<a href="results.csv">results.csv</a>, in the folder of this page.',
        "DATA": script_json(data),
    }
    return fill("report.html", parts)


def _colors(roles: Mapping[str, str]) -> dict[str, str]:
    """Color of each row; a trained method and its untrained variant share one."""
    families = [method for method, role in roles.items() if role == "method"]
    numbers = {method: number % len(COLORS) for number, method in enumerate(families)}
    return {
        method: MUTED
        if role == "baseline"
        else COLORS[numbers.get(method.removesuffix(" (untrained)"), 0)]
        for method, role in roles.items()
    }


def _degrees(series: Sequence[Series]) -> str:
    axes = Axis("degree", is_log=True, low=1), Axis("nodes of at least this degree", True, low=1)
    return line_chart(series, "Degrees", *axes)


def _curves(found: Sequence[Table], asked: Sequence[str], task: Task) -> dict[str, Any]:
    """Data of the chart: means and standard deviations by graph, query and method."""
    utility: dict[str, dict[str, dict[str, list[list[float | None]]]]] = {}
    is_open: dict[str, bool] = {}
    for table in found:
        queries = utility.setdefault(table.graph, {query: {} for query in asked})
        for row in table.rows:
            without = bool(row.done) and row.done[0]["epsilon"] == "inf"
            is_open[row.method] = is_open.get(row.method, False) or without
            for query in asked:
                points = queries[query].setdefault(row.method, [])
                summary = row.score(query)
                if summary.runs and not (without and points):
                    sd = None if math.isnan(summary.sd) else summary.sd
                    points.append([None if without else table.epsilon, summary.mean, sd])
    return {
        "graphs": list(utility),
        "epsilons": sorted({table.epsilon for table in found if math.isfinite(table.epsilon)}),
        "queries": list(asked),
        "higher": [query for query in asked if query in task.higher_is_better],
        "open": [method for method, without in is_open.items() if without],
        "utility": utility,
    }


def _section(table: Table, cards: Sequence[str], asked: Sequence[str], task: Task) -> str:
    title = f"{escape(table.graph)}, epsilon {table.epsilon:g}"
    place = f'data-graph="{escape(table.graph)}" data-epsilon="{table.epsilon:g}"'
    failed = [
        f'<p class="failed">{escape(row.method)}, run {result["run"]} failed: '
        f"{escape(result['failure'])}</p>"
        for row in table.rows
        for result in row.failed
    ]
    lines = [
        f'<section class="result" {place}>',
        f"<h2>{title}</h2>",
        f'<p class="soft">{ERRORS}</p>',
        *_query_table(table, title, asked, task),
        *(f'<p class="soft">{line}</p>' for line in footnotes(table) if line),
        *failed,
        "<h3>Guarantee and cost</h3>",
        *_cost_table(table, title, task),
        "<h3>Adjacency and degrees, first run</h3>",
        f'<p class="soft">{task.caption} {DEGREES}</p>',
        '<div class="cards">',
        *cards,
        "</div>",
        "</section>",
    ]
    return "\n".join(lines)


def _query_table(table: Table, title: str, asked: Sequence[str], task: Task) -> list[str]:
    """Table of queries by methods: few columns fit a page, and comparisons need few methods."""
    heads = "".join(f"<th{_marks(row)} scope=col>{_label(row)}</th>" for row in table.rows)
    lines = [
        f'<div class="scroll" tabindex="0" role="region" aria-label="Errors on {title}">',
        "<table>",
        f"<thead><tr><th scope=col>query</th><th scope=col>real</th>{heads}</tr></thead>",
        "<tbody>",
    ]
    last = None
    for query in sorted(asked, key=lambda query: [*GROUPS].index(GLOSSARY[query].group)):
        if (group := GLOSSARY[query].group) != last:
            head = f"<th scope=colgroup colspan={len(table.rows) + 2}><span>{GROUPS[group]}</span></th>"
            lines.append(f'<tr class="group">{head}</tr>')
            last = group
        winners = best(table.rows, query, task)
        head = explained(query, " ↑" if query in task.higher_is_better else "")
        values = f"<td>{original(table.rows, query)}</td>"
        for row in table.rows:
            content = _value(row.score(query), row.asked(query) + len(row.failed))
            if row.method in winners:
                content = f"<b>{content}</b>"
            values += f"<td{_marks(row)}>{content}</td>"
        lines.append(f'<tr data-query="{query}"><th scope=row>{head}</th>{values}</tr>')
    return [*lines, "</tbody>", "</table>", "</div>"]


def _cost_table(table: Table, title: str, task: Task) -> list[str]:
    beats = f"beats {task.baselines[0]}"
    heads = ("method", beats, "epsilon proved", "fit (s)", "draw (s)", "guarantee of the first run")
    lines = [
        f'<div class="scroll" tabindex="0" role="region" aria-label="Guarantees on {title}">',
        '<table class="cost">',
        f"<thead><tr>{''.join(f'<th scope=col>{head}</th>' for head in heads)}</tr></thead>",
        "<tbody>",
    ]
    for row in table.rows:
        numbers = (row.spent(), row.seconds("fit"), row.seconds("draw"))
        runs = len(row.done) + len(row.failed)
        values = f"<td>{wins(table.rows, row, task)}</td>"
        values += "".join(f"<td>{_value(summary, runs)}</td>" for summary in numbers)
        sentence = f'<td class="sentence">{escape(row.guarantee)}</td>'
        lines.append(f"<tr{_marks(row)}><th scope=row>{_label(row)}</th>{values}{sentence}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>"]


def _card(table: Table, row: Row | None, graph: Data, picture: str, degree_chart: str) -> str:
    """Figure of drawn data: caption, adjacency matrices, and degrees."""
    name = "original" if row is None else row.method
    budget = "not private" if row is None or not row.is_private else f"epsilon {table.epsilon:g}"
    isolated = int((degrees(graph) == 0).sum())
    facts = plural(graph.num_edges // 2, "edge")
    if isolated:
        facts += f", {plural(isolated, 'node')} without any"
    return (
        f"<figure{'' if row is None else _marks(row)}>"
        f"<figcaption>{escape(name)}<span>{budget}</span><span>{facts}</span></figcaption>"
        f'{picture}<div class="degrees">{degree_chart}</div></figure>'
    )


def _html(markdown: str) -> str:
    """Convert text with code between backquotes to HTML."""
    return re.sub(r"`(.*?)`", r"<code>\1</code>", escape(markdown))


def _marks(row: Row) -> str:
    """Attributes of everything that belongs to a row, by which the page hides or marks it."""
    mark = "" if row.is_private else ' class="open"'
    return f'{mark} data-method="{escape(row.method)}"'


def _label(row: Row) -> str:
    """Label of a method, with its attributes in brackets on a second line."""
    name, bracket, rest = row.title.partition(" (")
    return escape(name).replace("_", "_<wbr>") + (
        f"<small>{escape(bracket[1:] + rest)}</small>" if rest else ""
    )


def _value(summary: Summary, runs: int) -> str:
    mean, sign, sd = text(summary, runs).partition(" ± ")
    return f"{mean} <small>± {sd}</small>" if sign else mean
