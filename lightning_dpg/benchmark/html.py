"""The report of ``compare``: one page without a network, the tables, and Weights & Biases."""

import base64
import io
import json
import math
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

from matplotlib.image import imsave
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg import __version__
from lightning_dpg.benchmark.figures import (
    PICTURE_SIZE,
    aligned,
    degree_curve,
    first_graph,
)
from lightning_dpg.benchmark.result_folder import whole_file
from lightning_dpg.benchmark.results import (
    COLUMNS,
    Row,
    Summary,
    Table,
    best,
    csv_rows,
    footnotes,
    markdown,
    original,
    queries,
    tables,
    text,
    wins,
    write_csv,
)
from lightning_dpg.benchmark.tasks import Kind
from lightning_dpg.cli.loggers import why_offline
from lightning_dpg.metrics.figures import degree_figure
from lightning_dpg.metrics.functional import degrees

TEMPLATE = Path(__file__).with_name("report.html")

ERRORS = (
    "Errors, mean ± standard deviation over the runs: 0 is best, or 1 in the rows with ↑. Marked: "
    "the best private method and all that two standard errors of the difference do not tell from it; "
    "controls only where no method is among them, and nothing where this is every row. One run has "
    "no deviation, and few have a rough one. In italics: not private within this budget, and out of "
    "competition."
)
DEGREES = "Below, nodes by degree on logarithmic axes; dashed are the real ones."


def write(
    results: Sequence[dict[str, Any]], graphs: dict[str, Data], kind: Kind, folder: Path
) -> list[Path]:
    """Write ``results.csv``, ``results.md`` and ``report.html``, and name them.

    Args:
        results: Contents of the cells, failed ones included.
        graphs: Real data by name.
        kind: What they are.
        folder: Folder of all results, which holds the synthetic graphs of the first runs.
    """
    paths = [folder / name for name in ("results.csv", "results.md", "report.html")]
    with whole_file(paths[0]) as scratch:
        write_csv(results, scratch)
    texts = (markdown(results, kind), page(results, graphs, kind, folder))
    for path, content in zip(paths[1:], texts, strict=True):
        with whole_file(path) as scratch:
            scratch.write_text(content, encoding="utf-8")
    return paths


def page(
    results: Sequence[dict[str, Any]], graphs: dict[str, Data], kind: Kind, folder: Path
) -> str:
    """The report as HTML: tables and pictures in full, curves as numbers that a script draws.

    Args:
        results: Contents of the cells, failed ones included.
        graphs: Real data by name.
        kind: What they are.
        folder: Folder of all results.
    """
    found = tables(results)
    names = [name for name in graphs if any(table.graph == name for table in found)]
    painters = {name: kind.painter(graphs[name]) for name in names}
    asked = queries(results, kind)
    drawn: dict[str, list[list[int]]] = {}
    sections = []
    for table in found:
        real = graphs[table.graph]
        paint = painters[table.graph]
        cards = [_card(table, None, real, paint(real))]
        for row in table.rows:
            graph = first_graph(row, folder)
            if graph is not None:
                cards.append(_card(table, row, graph, paint(aligned(graph, real))))
                drawn[_key(table, row)] = degree_curve(graph)
        sections.append(_section(table, cards, asked, kind))
    data = _curves(found, asked, kind) | {
        "degrees": {"real": {name: degree_curve(graphs[name]) for name in names}, "drawn": drawn}
    }
    runs = len({result["run"] for result in results})
    parts = {
        "LEAD": f"<p>{_count(len(names), kind.noun)}, {_count(len(data['kinds']), 'row')}, "
        f"{_count(len(data['epsilons']), 'budget')}, {_count(runs, 'run')} of each. A method is "
        f"worth its budget where it beats the controls. {_html(kind.advice)} A method that is "
        "trained must also beat itself untrained.</p>",
        "SECTIONS": "\n".join(sections),
        "FOOTER": f"Written by lightning_dpg {__version__}. The page needs no network and sends "
        "nothing anywhere. All numbers, run by run: <code>results.csv</code>.",
        # A name such as "</script>" must not end the element that holds the data.
        "DATA": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    content = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        content = content.replace(f"{{{{{name}}}}}", part)
    return content


def track(
    results: Sequence[dict[str, Any]], graphs: dict[str, Data], kind: Kind, folder: Path
) -> None:
    """Log the results as a table and the pictures as images to Weights & Biases.

    Args:
        results: Contents of the cells, failed ones included.
        graphs: Real data by name.
        kind: What they are.
        folder: Folder of all results; offline runs lie in it under ``wandb/``.
    """
    import wandb

    reason = None if "WANDB_MODE" in os.environ else why_offline()
    mode: Literal["offline"] | None = "offline" if reason else None
    os.environ.setdefault("WANDB_SILENT", "true")
    with wandb.init(project="lightning_dpg", job_type="compare", dir=folder, mode=mode) as tracked:
        rows = [[_cell(row.get(column)) for column in COLUMNS] for row in csv_rows(results)]
        logged: dict[str, Any] = {
            "nonprivate/results": wandb.Table(columns=list(COLUMNS), data=rows)
        }
        for table in tables(results):
            real = graphs[table.graph]
            paint = kind.painter(real)
            for row in table.rows:
                graph = first_graph(row, folder)
                if graph is None:
                    continue
                place = f"nonprivate/{table.graph}/epsilon {table.epsilon:g}/{row.method}"
                logged[f"{place}/adjacency"] = wandb.Image(paint(aligned(graph, real)))
                figure = degree_figure({"synthetic": graph, "original": real})
                logged[f"{place}/degrees"] = wandb.Image(figure)
        tracked.log(logged)
    if reason:
        print(f"wandb: {reason}; offline run in {folder / 'wandb'}, see `wandb sync`")


def _curves(found: Sequence[Table], asked: Sequence[str], kind: Kind) -> dict[str, Any]:
    """What the chart needs: means and standard deviations by graph, query and method."""
    utility: dict[str, dict[str, dict[str, list[list[float | None]]]]] = {}
    kinds: dict[str, str] = {}
    is_open: dict[str, bool] = {}
    for table in found:
        queries = utility.setdefault(table.graph, {query: {} for query in asked})
        for row in table.rows:
            kinds[row.method] = row.kind
            without = bool(row.done) and row.done[0]["epsilon"] == "inf"
            is_open[row.method] = is_open.get(row.method, False) or without
            for query in asked:
                points = queries[query].setdefault(row.method, [])
                summary = row.error(query)
                if summary.runs and not (without and points):
                    sd = None if math.isnan(summary.sd) else summary.sd
                    points.append([None if without else table.epsilon, summary.mean, sd])
    return {
        "graphs": list(utility),
        "epsilons": sorted({table.epsilon for table in found if math.isfinite(table.epsilon)}),
        "queries": list(asked),
        "higher": [query for query in asked if query in kind.higher_is_better],
        "kinds": kinds,
        "open": [method for method, without in is_open.items() if without],
        "utility": utility,
    }


def _section(table: Table, cards: Sequence[str], asked: Sequence[str], kind: Kind) -> str:
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
        *_query_table(table, title, asked, kind),
        *(f'<p class="soft">{line}</p>' for line in footnotes(table) if line),
        *failed,
        "<h3>Guarantee and cost</h3>",
        *_cost_table(table, title, kind),
        "<h3>Adjacency and degrees, first run</h3>",
        f'<p class="soft">{kind.caption} {DEGREES}</p>',
        '<div class="cards">',
        *cards,
        "</div>",
        "</section>",
    ]
    return "\n".join(lines)


def _query_table(table: Table, title: str, asked: Sequence[str], kind: Kind) -> list[str]:
    """Queries by methods: few columns fit a page, and few methods are compared at a time."""
    heads = "".join(f"<th{_open(row)} scope=col>{_label(row)}</th>" for row in table.rows)
    lines = [
        f'<div class="scroll" tabindex="0" role="region" aria-label="Errors on {title}">',
        "<table>",
        f"<thead><tr><th scope=col>query</th><th scope=col>real</th>{heads}</tr></thead>",
        "<tbody>",
    ]
    for query in asked:
        winners = best(table.rows, query, kind)
        head = query.replace("_", "_<wbr>") + ("&nbsp;↑" if query in kind.higher_is_better else "")
        cells = f"<td>{original(table.rows, query)}</td>"
        for row in table.rows:
            content = _value(row.error(query), row.asked(query) + len(row.failed))
            if row.method in winners:
                content = f"<b>{content}</b>"
            cells += f"<td{_open(row)}>{content}</td>"
        lines.append(f'<tr data-query="{query}"><th scope=row>{head}</th>{cells}</tr>')
    return [*lines, "</tbody>", "</table>", "</div>"]


def _cost_table(table: Table, title: str, kind: Kind) -> list[str]:
    beats = f"beats {kind.controls[0]}"
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
        cells = f"<td>{wins(table.rows, row, kind)}</td>"
        cells += "".join(f"<td>{_value(summary, runs)}</td>" for summary in numbers)
        sentence = f'<td class="sentence">{escape(row.guarantee)}</td>'
        lines.append(f"<tr{_open(row)}><th scope=row>{_label(row)}</th>{cells}{sentence}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>"]


def _card(table: Table, row: Row | None, graph: Data, picture: NDArray[Any]) -> str:
    """A figure of what was drawn: caption, adjacency matrices, and the place for its degrees."""
    name = "original" if row is None else row.method
    budget = "not private" if row is None or not row.is_private else f"epsilon {table.epsilon:g}"
    isolated = int((degrees(graph) == 0).sum())
    facts = _count(graph.num_edges // 2, "edge")
    if isolated:
        facts += f", {_count(isolated, 'node')} without any"
    content = io.BytesIO()
    imsave(content, picture, format="png")
    source = base64.b64encode(content.getvalue()).decode()
    key = "" if row is None else _key(table, row)
    return (
        f"<figure><figcaption>{escape(name)}<span>{budget}</span><span>{facts}</span></figcaption>"
        f'<img loading="lazy" width="{PICTURE_SIZE}" height="{PICTURE_SIZE}" '
        f'alt="Adjacency matrix of {escape(name)}" src="data:image/png;base64,{source}">'
        f'<div class="degrees" data-graph="{escape(table.graph)}" data-key="{escape(key)}" '
        f'data-method="{escape(name)}"></div></figure>'
    )


def _html(markdown: str) -> str:
    """Text with code between backquotes."""
    return re.sub(r"`(.*?)`", r"<code>\1</code>", escape(markdown))


def _key(table: Table, row: Row) -> str:
    return f"{table.graph}|{table.epsilon:g}|{row.method}"


def _open(row: Row) -> str:
    return "" if row.is_private else ' class="open"'


def _label(row: Row) -> str:
    """The method, with what it is in brackets on a line of its own."""
    name, bracket, rest = row.title.partition(" (")
    return escape(name).replace("_", "_<wbr>") + (
        f"<small>{escape(bracket[1:] + rest)}</small>" if rest else ""
    )


def _value(summary: Summary, runs: int) -> str:
    mean, sign, sd = text(summary, runs).partition(" ± ")
    return f"{mean} <small>± {sd}</small>" if sign else mean


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cell(value: Any) -> Any:
    """One type in each column: a table of Weights & Biases takes no word among numbers."""
    return math.inf if value == "inf" else value
