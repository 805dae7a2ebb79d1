"""Tables of a benchmark in LaTeX, with the lines of ``booktabs``."""

import math
import re
from collections.abc import Sequence

from lightning_dpg.benchmark.results import MARK, Row, Summary, Table, best
from lightning_dpg.benchmark.tasks import Task
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.pages.page import number, plural

_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    MARK: r"\textdagger{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, _SIGNS)))


def escaped(text: str) -> str:
    """Return a text whose signs LaTeX prints."""
    return _SPECIAL.sub(lambda sign: _SIGNS[sign[0]], " ".join(text.split()))


def latex_table(table: Table, names: Sequence[str], task: Task) -> str:
    """Write one table, methods by queries.

    Args:
        table: The table.
        names: Names of the queries.
        task: The task.
    """
    winners = {query: best(table.rows, query, task) for query in names}
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\footnotesize",
        rf"\caption{{{_caption(table, names, task)}}}",
        rf"\label{{tab:{re.sub('[^a-zA-Z0-9]+', '-', table.graph)}-epsilon-{table.epsilon:g}}}",
        rf"\begin{{tabular}}{{l{'r' * len(names)}}}",
        r"\toprule",
        " & ".join(["method", *(_head(query, task) for query in names)]) + r" \\",
        r"\midrule",
    ]
    for place, row in enumerate(table.rows):
        if place and row.role == "baseline" != table.rows[place - 1].role:
            lines.append(r"\midrule")
        cells = [_cell(row, query, row.method in winners[query]) for query in names]
        lines.append(" & ".join([_styled(escaped(row.title), row), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _caption(table: Table, names: Sequence[str], task: Task) -> str:
    budget = rf"$\varepsilon = {table.epsilon:g}$" if math.isfinite(table.epsilon) else "no budget"
    runs = max((len(row.done) for row in table.rows), default=0)
    spread = ", mean and standard deviation" if runs > 1 else ""
    sentences = [f"Errors on {escaped(table.graph)} at {budget}{spread} of {plural(runs, 'run')}."]
    if any(query in task.higher_is_better for query in names):
        sentences.append(r"More is better in columns with $\uparrow$.")
    if any(best(table.rows, query, task) for query in names):
        sentences.append(
            "Bold: the best private method and those within two standard errors of it."
        )
    elif table.is_of_one_run:
        sentences.append("Nothing is bold: one run does not show how much a row varies by chance.")
    if not all(row.is_private for row in table.rows):
        sentences.append("Italic: no guarantee within the budget.")
    if any(row.is_conditional for row in table.rows):
        sentences.append(rf"{escaped(MARK)}: the guarantee holds under a condition.")
    return " ".join(sentences)


def _head(query: str, task: Task) -> str:
    """Return the label of a query on two lines where it has two words: such columns are narrow."""
    words = escaped(glossary()[query].label).split()
    half = math.ceil(len(words) / 2)
    arrow = r" $\uparrow$" if query in task.higher_is_better else ""
    first, second = " ".join(words[:half]), " ".join(words[half:])
    return rf"\shortstack{{{first}\\{second}{arrow}}}" if second else f"{first}{arrow}"


def _cell(row: Row, query: str, is_best: bool) -> str:
    summary: Summary = row.score(query)
    if not summary.runs:
        return "--"
    mean = number(summary.mean).replace("-", "$-$")
    mean = rf"\textbf{{{mean}}}" if is_best else _styled(mean, row)
    return rf"{mean} {{\tiny $\pm$ {number(summary.sd, 2)}}}" if summary.sd > 0 else mean


def _styled(text: str, row: Row) -> str:
    return text if row.is_private else rf"\textit{{{text}}}"
