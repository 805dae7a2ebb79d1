"""Figures of tables as SVG, with a digest of what they show."""

import hashlib
import io
import json
import re
from typing import Any

from results.tables import Study

_DIGEST = re.compile(r"numbers [0-9a-f]{64}")
_MARKERS = "osD^vPX*<>"
_STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "results",
}


def draw(study: Study, name: str) -> str:
    """Draw a figure, the same bytes each time with one version of matplotlib.

    Args:
        study: The study.
        name: Name of the figure in it.
    """
    # Start-up time: the check of the numbers needs no matplotlib.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = study.figures[name]
    with mpl.rc_context(_STYLE):
        canvas = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = canvas.subplots()
        if figure["kind"] == "dots":
            _dots(axes, shown(study, name))
        else:
            _lines(axes, shown(study, name))
        axes.set(xlabel=figure.get("x", ""), ylabel=figure.get("y", ""))
        for axis in figure.get("log", []):
            axes.set(**{f"{axis}scale": "log"})
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside right center", frameon=False)
        file = io.StringIO()
        about = {"Date": None, "Description": digest(study, name), "Creator": None}
        canvas.savefig(file, format="svg", metadata=about)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def shown(study: Study, name: str) -> dict[str, dict[str, float]]:
    """Numbers of a figure: of each curve (or row of points) by column.

    Args:
        study: The study.
        name: Name of the figure in it.
    """
    figure = study.figures[name]
    text, cells = study.tables[figure["table"]], study.table_cells(figure["table"])
    columns = figure.get("columns") or text.columns
    return {
        _plain(text.rows[row]): {
            _plain(text.columns[column]): float(cells[row, column].value)
            for column in columns
            if (row, column) in cells
        }
        for row in figure.get("rows") or text.rows
    }


def digest(study: Study, name: str) -> str:
    """Fingerprint of the texts and numbers of a figure, which its file holds.

    Versions of matplotlib draw the same numbers with other bytes.

    Args:
        study: The study.
        name: Name of the figure in it.
    """
    content = json.dumps([study.figures[name], shown(study, name)])
    return f"numbers {hashlib.sha256(content.encode()).hexdigest()}"


def digest_in(svg: str) -> str:
    """Fingerprint in a figure's file; empty if there is none.

    Args:
        svg: Content of the file.
    """
    match = _DIGEST.search(svg)
    return match[0] if match else ""


def _lines(axes: Any, curves: dict[str, dict[str, float]]) -> None:
    """One curve a row; the columns are numbers."""
    for marker, (label, values) in zip(_MARKERS, curves.items(), strict=False):
        points = [(float(column), value) for column, value in values.items()]
        axes.plot(*zip(*points, strict=True), marker=marker, markersize=4.5, label=label)


def _dots(axes: Any, rows: dict[str, dict[str, float]]) -> None:
    """One line of points a row, one kind of point a column."""
    columns = dict.fromkeys(column for values in rows.values() for column in values)
    for marker, column in zip(_MARKERS, columns, strict=False):
        points = [(values[column], row) for row, values in rows.items() if column in values]
        axes.plot(*zip(*points, strict=True), marker, markersize=5.5, label=column)
    axes.invert_yaxis()


def _plain(label: str) -> str:
    return re.sub(r"[`*]", "", label)
