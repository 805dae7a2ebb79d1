"""The report of a benchmark: one page that works without a network."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from torch_geometric.data import Data

from lightning_dpg.apps.bench.result_folder import drawn_by
from lightning_dpg.apps.bench.results import (
    FOOTNOTE,
    ONE_RUN,
    Row,
    Table,
    best,
    measured,
    original,
    tables,
    text,
    wins,
)
from lightning_dpg.apps.bench.tasks import Task
from lightning_dpg.formats.io import read_graph
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import COLORS, Chart, Series
from lightning_dpg.metrics.pictures import DEGREES, community_order, degree_curve, matrix
from lightning_dpg.pages.charts import inline
from lightning_dpg.pages.page import render
from lightning_dpg.pages.pictures import aligned, size_of


class _Card(NamedTuple):
    """Figures of a drawn graph, or of the real one, which has no row."""

    row: Row | None
    facts: str
    picture: Markup
    degrees: Markup


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
    shown_tables = tables(results)
    shown = {
        name: real for name, real in graphs.items() if any(t.graph == name for t in shown_tables)
    }
    orders = {name: community_order(real, LOUVAIN_SEED) for name, real in shown.items()}
    names = measured(results, task.queries)
    roles = {row.method: row.role for table in shown_tables for row in table.rows}
    colors = row_colors(roles)
    data = _curves(shown_tables, names, task) | {
        "roles": roles,
        "colors": {method: f"var(--{color})" for method, color in colors.items()},
    }
    cards: list[list[_Card]] = []
    for table in shown_tables:
        real, order = shown[table.graph], orders[table.graph]
        mine = Series("original", degree_curve(real))
        picture = inline(matrix("original", real, order))
        alone = inline(Chart("Degrees", *DEGREES, [mine]))
        cards.append([_Card(None, size_of(real), picture, alone)])
        for row in table.rows:
            path = drawn_by(folder, row.first_names)
            if path is not None:
                graph = read_graph(path, undirected=task.kind == "directed")
                picture = inline(matrix(row.method, aligned(graph, real), order))
                curve = Series(row.method, degree_curve(graph), colors[row.method])
                lines = [mine._replace(is_dashed=True), curve]
                both = inline(Chart("Degrees", *DEGREES, lines))
                cards[-1].append(_Card(row, size_of(graph), picture, both))
    counts = (
        (len(shown), task.noun),
        (len(roles), "row"),
        (len(data["epsilons"]), "budget"),
        (len({result["run"] for result in results}), "run"),
    )
    parts = {
        "counts": counts,
        "advice": Markup(re.sub(r"`(.*?)`", r"<code>\1</code>", str(escape(task.advice)))),
        "asked": names,
        "task": task,
        "tables": zip(shown_tables, cards, strict=True),
        "best": best,
        "footnote": FOOTNOTE,
        "one_run": ONE_RUN,
        "original": original,
        "text": text,
        "wins": wins,
        "data": data,
    }
    return render("report", parts)


def row_colors(roles: Mapping[str, str]) -> dict[str, str]:
    """Choose the color of each row; a trained method and its untrained variant share one."""
    families = [method for method, role in roles.items() if role == "method"]
    numbers = {method: number % len(COLORS) for number, method in enumerate(families)}
    return {
        method: "muted"
        if role == "baseline"
        else COLORS[numbers.get(method.removesuffix(" (untrained)"), 0)]
        for method, role in roles.items()
    }


def _curves(measured: Sequence[Table], names: Sequence[str], task: Task) -> dict[str, Any]:
    """Return the data of the chart: means and standard deviations by graph, query and method."""
    utility: dict[str, dict[str, dict[str, list[list[float | None]]]]] = {}
    is_open: dict[str, bool] = {}
    for table in measured:
        queries = utility.setdefault(table.graph, {query: {} for query in names})
        for row in table.rows:
            without = bool(row.done) and row.done[0]["epsilon"] == "inf"
            is_open[row.method] = is_open.get(row.method, False) or without
            for query in names:
                points = queries[query].setdefault(row.method, [])
                summary = row.score(query)
                if summary.runs and not (without and points):
                    sd = None if math.isnan(summary.sd) else summary.sd
                    points.append([None if without else table.epsilon, summary.mean, sd])
    return {
        "graphs": list(utility),
        "epsilons": sorted({table.epsilon for table in measured if math.isfinite(table.epsilon)}),
        "queries": list(names),
        "higher": [query for query in names if query in task.higher_is_better],
        "open": [method for method, without in is_open.items() if without],
        "utility": utility,
    }
