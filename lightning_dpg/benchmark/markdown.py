"""The tables of a benchmark in Markdown."""

from collections.abc import Sequence
from typing import Any

from lightning_dpg.benchmark.results import (
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
from lightning_dpg.tables import as_markdown


def markdown(results: Sequence[dict[str, Any]], task: Task) -> str:
    """Write all tables, methods by queries, and the guarantee of each row.

    Args:
        results: Recorded results of the jobs, failed ones included.
        task: The task.
    """
    asked = queries(results, task)
    higher = ", ".join(query for query in asked if query in task.higher_is_better)
    lines = [
        "# Synthetic graphs compared",
        "",
        "**Not private**: the numbers were computed from the real graphs.",
        "",
        "Errors, mean ± standard deviation over the runs; 0 is best, save in the columns with ↑:",
        f"{higher}, where more is better.",
        "Bold: the best private row and all that two standard errors of the difference do not tell from",
        "it, baselines only where no method is among them; nothing is bold where this is every row.",
        "Italics: no guarantee within the budget, out of competition.",
        f"Baselines: {task.advice} Untrained methods know the releases before the first step.",
        f"Wins are counted over {task.counted[0]} to {task.counted[-1]}. The first row holds no errors",
        "but the values of the original. Seconds are those of `fit` and of one graph.",
    ]
    for table in tables(results):
        lines += [
            "",
            f"## {table.graph}, epsilon {table.epsilon:g}",
            "",
            *_markdown_table(table, asked, task),
            *footnotes(table),
        ]
        failed = [
            f"- {row.method}, run {result['run']} failed: {_one_line(result['failure'])}"
            for row in table.rows
            for result in row.failed
        ]
        lines += ["", *failed] if failed else []
        lines += ["", "Guarantees (first run of each row):", ""]
        lines += [f"- {row.title}: {_one_line(row.guarantee)}" for row in table.rows]
    return "\n".join(lines) + "\n"


def _markdown_table(table: Table, asked: Sequence[str], task: Task) -> list[str]:
    arrows = [f"{query} ↑" if query in task.higher_is_better else query for query in asked]
    numbers = (f"beats {task.baselines[0]}", "epsilon proved", "fit (s)", "draw (s)")
    winners = {query: best(table.rows, query, task) for query in asked}
    values = [f"*{original(table.rows, query)}*" for query in asked]
    rows = [["*original*", *values, "", "", "", ""]]
    for row in table.rows:
        runs = len(row.done) + len(row.failed)
        mark = "" if row.is_private else "*"
        cells = [f"{mark}{row.title}{mark}"]
        for query in asked:
            bold = "**" if row.method in winners[query] else mark
            missing = len(row.done) - row.asked(query)
            cells.append(f"{bold}{text(row.score(query), runs - missing)}{bold}")
        costs = [
            text(each, runs) for each in (row.spent(), row.seconds("fit"), row.seconds("draw"))
        ]
        cells += [f"{mark}{cell}{mark}" for cell in (wins(table.rows, row, task), *costs)]
        rows.append(cells)
    return as_markdown(["method", *arrows, *numbers], rows)


def _one_line(message: str) -> str:
    return " ".join(message.split())
