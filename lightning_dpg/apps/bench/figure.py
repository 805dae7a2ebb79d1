"""The figure of a benchmark: a panel for each query, errors by method."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lightning_dpg.apps.bench.report import row_colors
from lightning_dpg.apps.bench.results import Row, Table
from lightning_dpg.apps.bench.tasks import Task
from lightning_dpg.errors import CommandError
from lightning_dpg.metrics.figures import new_figure
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.pages.page import PALETTE

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_MARKERS = "osD^vP*X"
_MANY_TIMES = 100
"""Ratio of errors from which on an axis is logarithmic."""


def errors_figure(tables: Sequence[Table], names: Sequence[str], task: Task) -> "Figure":
    """Plot errors by method; over epsilon if there are several budgets.

    Args:
        tables: Tables of all graphs and budgets.
        names: Names of the queries.
        task: The task.

    Raises:
        CommandError: If no fit has come to an end.
    """
    if not any(row.done for table in tables for row in table.rows):
        raise CommandError("no fit has come to an end: there is nothing to plot")
    graphs: dict[str, list[Table]] = {}
    for table in tables:
        graphs.setdefault(table.graph, []).append(table)
    roles = {row.method: row.role for table in tables for row in table.rows}
    looks = {
        method: {"color": PALETTE[color], "marker": _MARKERS[number % len(_MARKERS)]}
        for number, (method, color) in enumerate(row_colors(roles).items())
    }
    columns = min(_COLUMNS, len(names))
    lines = math.ceil(len(names) / columns)
    is_curve = len(next(iter(graphs.values()))) > 1
    height = 2.1 if is_curve else 0.7 + 0.24 * len(roles)
    label_space = 0.0 if is_curve else 0.075 * max(map(len, roles))
    size = (2.4 * columns + label_space, (height + 0.3) * lines * len(graphs) + 0.8)
    figure = new_figure(*size)
    parts = figure.subfigures(len(graphs), squeeze=False)[:, 0]
    for part, (graph, mine) in zip(parts, graphs.items(), strict=True):
        budget = "" if is_curve else f", epsilon {mine[0].epsilon:g}"
        part.suptitle(f"{graph}{budget}")
        panels = part.subplots(lines, columns, squeeze=False, sharey=not is_curve).ravel()
        for axes, query in zip(panels, names, strict=False):
            draw = _curves if is_curve else _dots
            draw(axes, mine, query, looks)
            arrow = " ↑" if query in task.higher_is_better else ""
            axes.set_title(f"{glossary()[query].label}{arrow}", fontsize="medium")
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        label = part.supylabel if is_curve else part.supxlabel
        label("error, or agreement ↑", fontsize="small")
    if is_curve:
        handles, labels = parts[0].axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _curves(
    axes: "Axes", tables: Sequence[Table], query: str, looks: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw the errors of each method over the budgets; a method without privacy is a level line."""
    epsilons = [table.epsilon for table in tables]
    means = []
    for method, look in looks.items():
        rows = [(table.epsilon, _row(table, method)) for table in tables]
        points = [(eps, row, row.score(query)) for eps, row in rows if row is not None]
        points = [(eps, row, score) for eps, row, score in points if score.runs]
        if not points:
            continue
        means += [score.mean for *_, score in points]
        xs = [eps for eps, *_ in points]
        axes.errorbar(
            xs,
            [score.mean for *_, score in points],
            [_bar(score.sd) for *_, score in points],
            **_style(points[0][1], look),
            linestyle="-" if points[0][1].role == "method" else "--",
            label=points[0][1].title,
        )
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("epsilon", fontsize="small")
    _scale(axes, "y", means)
    _plain(axes)


def _dots(
    axes: "Axes", tables: Sequence[Table], query: str, looks: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw the error of each method as a point on its own line."""
    (table,) = tables
    means = []
    for place, row in enumerate(table.rows):
        score = row.score(query)
        if score.runs:
            means.append(score.mean)
            look = _style(row, looks[row.method])
            axes.errorbar(score.mean, place, xerr=_bar(score.sd), **look)
    axes.set_yticks(range(len(table.rows)), [row.title for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.5, -0.5)
    _scale(axes, "x", means)
    _plain(axes)


def _row(table: Table, method: str) -> Row | None:
    return next((row for row in table.rows if row.method == method), None)


def _bar(sd: float) -> float:
    return 0.0 if math.isnan(sd) else sd


def _style(row: Row, look: Mapping[str, Any]) -> dict[str, Any]:
    fill = {} if row.is_private else {"markerfacecolor": "white"}
    return {**look, **fill, "markersize": 5, "linewidth": 1.2, "capsize": 2}


def _scale(axes: "Axes", side: Literal["x", "y"], means: Sequence[float]) -> None:
    """Choose a logarithmic axis where errors differ much, and else one that shows 0."""
    if means and min(means) > 0 and max(means) > _MANY_TIMES * min(means):
        axes.set(**{f"{side}scale": "log"})
    elif means and 0 <= min(means) < max(means):
        _, high = axes.get_xlim() if side == "x" else axes.get_ylim()
        axes.set(**{f"{side}lim": (-0.03 * high, high)})


def _plain(axes: "Axes") -> None:
    axes.grid(color=PALETTE["faint"])
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)
    axes.tick_params(labelsize="small")
