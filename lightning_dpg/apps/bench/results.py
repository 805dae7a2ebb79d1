"""Tables of a benchmark: their rows, the best rows, Markdown and CSV."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from markupsafe import Markup

from lightning_dpg.apps.bench.tasks import Task
from lightning_dpg.pages.page import number
from lightning_dpg.tables import as_csv

COLUMNS = (
    *("method", "graph", "epsilon", "run", "query", "real", "synthetic", "error", "note"),
    *("role", "private", "relation", "mode", "spent_epsilon", "spent_delta", "accountant"),
    *("fit_seconds", "draw_seconds", "conditional", "guarantee"),
)

MARK = "†"
FOOTNOTE = f'{MARK} The guarantee holds under a condition, which its sentence says after "if".'

ONE_RUN = (
    "One run does not show how much a row varies by chance: nothing is bold, and no wins are "
    "counted. Two runs or more show it."
)

# Kept budgets are rounded up to four digits after the point.
ROUNDING = 1e-4


class Summary(NamedTuple):
    """Mean and deviation of a number over the runs of a row."""

    mean: float
    """nan where no run has the number."""
    sd: float
    """Standard deviation with n - 1; nan below two runs."""
    runs: int
    """How many runs have the number."""


class Row(NamedTuple):
    """All runs of one method on one graph within one budget."""

    method: str
    role: str
    """``method``, ``baseline`` or ``untrained``."""
    done: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    is_private: bool
    """Whether all runs prove a guarantee within the budget of the table."""

    @property
    def title(self) -> str:
        """Name of the method, with its important caveats."""
        name = f"{self.method} {MARK}" if self.is_conditional else self.method
        return name if self.is_private or not self.done else f"{name} (not private)"

    @property
    def first_names(self) -> list[str]:
        """Name of the job of run 0, if it is done."""
        return [result["name"] for result in self.done if result["run"] == 0]

    @property
    def is_conditional(self) -> bool:
        """Whether the guarantee of a run holds only under a condition."""
        return any(map(is_conditional, self.done))

    @property
    def guarantee(self) -> str:
        """Guarantee of the first run, in one sentence."""
        return self.done[0]["privacy"]["guarantee"] if self.done else "no run came to an end"

    def spent(self) -> Summary:
        """Return the proved epsilon."""
        values = [float(result["privacy"]["epsilon"]) for result in self.done]
        return summarize(value for value in values if math.isfinite(value))

    def seconds(self, what: str) -> Summary:
        """Return the seconds of the ``fit``, or of the ``draw`` of one graph."""
        return summarize(result["seconds"][what] for result in self.done)

    @property
    def num_runs(self) -> int:
        """Number of runs, failed ones included."""
        return len(self.done) + len(self.failed)

    def score(self, query: str) -> Summary:
        """Return the error in a query, or the agreement for queries named by an agreement."""
        return summarize(answer["error"] for answer in self._answers(query))

    def runs_with(self, query: str) -> int:
        """Return the number of runs with a query; some queries are for the first run only."""
        return len(self._answers(query))

    def is_complete(self, query: str) -> bool:
        """Return whether no run failed, and each run has all numbers of the query."""
        return not self.failed and 0 < self.runs_with(query) == self.score(query).runs

    def _answers(self, query: str) -> list[dict[str, Any]]:
        return [result["answers"][query] for result in self.done if query in result["answers"]]


class Table(NamedTuple):
    """Measurements on one graph with one budget; rows without privacy are in all tables."""

    graph: str
    epsilon: float
    rows: list[Row]

    @property
    def title(self) -> str:
        """Its heading."""
        return f"{self.graph}, epsilon {self.epsilon:g}"

    @property
    def is_of_one_run(self) -> bool:
        """Whether no row was run twice, so that no row can be told from another."""
        return all(row.num_runs < 2 for row in self.rows)


def summarize(values: Iterable[float | None]) -> Summary:
    """Return the mean and standard deviation of the available numbers."""
    numbers = [value for value in values if value is not None]
    mean = fmean(numbers) if numbers else math.nan
    return Summary(mean, stdev(numbers) if len(numbers) > 1 else math.nan, len(numbers))


def tables(results: Sequence[dict[str, Any]]) -> list[Table]:
    """Return a table for each graph and budget, in the order of the results.

    Args:
        results: Recorded results of the jobs, failed ones included.
    """
    graphs = dict.fromkeys(result["graph"] for result in results)
    budgets = sorted({r["epsilon"] for r in results if r["epsilon"] != "inf"}) or [math.inf]
    return [Table(graph, eps, _rows(results, graph, eps)) for graph in graphs for eps in budgets]


def is_private(result: dict[str, Any]) -> bool:
    """Return whether a run proves a guarantee within its budget."""
    if result["failure"] is not None or result["epsilon"] == "inf":
        return False
    return float(result["privacy"]["epsilon"]) <= result["epsilon"] + ROUNDING


def is_conditional(result: dict[str, Any]) -> bool:
    """Return whether the guarantee of a run holds only under a condition."""
    return bool(result["privacy"].get("conditional", False))  # earlier versions did not record it


def _rows(results: Sequence[dict[str, Any]], graph: str, epsilon: float) -> list[Row]:
    mine: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        if result["graph"] == graph and result["epsilon"] in (epsilon, "inf"):
            mine.setdefault((result["method"], result["role"]), []).append(result)
    rows = []
    for (method, role), runs in mine.items():
        done = [result for result in runs if result["failure"] is None]
        failed = [result for result in runs if result["failure"] is not None]
        rows.append(Row(method, role, done, failed, bool(done) and all(map(is_private, done))))
    return rows


def measured(results: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the measured ones among queries; all of them if no run has finished.

    Args:
        results: Recorded results of the jobs, failed ones included.
        names: Names of queries.
    """
    done = [result for result in results if result["failure"] is None]
    found = {query for result in done for query in result["answers"]}
    return [query for query in names if query in found or not done]


def best(rows: Sequence[Row], query: str, task: Task) -> set[str]:
    """Name the private row with the best mean, and all rows not significantly worse.

    If a method is among them, baselines and untrained methods are excluded, since they are no
    choice for a user. A row counts only if each of its runs has the number. Where each row has a
    single run, none has a deviation by which a difference would be significant.

    Args:
        rows: Rows of a table.
        query: Name of a query.
        task: The task.

    Returns:
        Names of the rows; empty if they would be all private rows, or if each has one run.
    """
    answers = [(row, row.score(query)) for row in rows if row.is_private and row.is_complete(query)]
    if not answers or all(summary.runs < 2 for _, summary in answers):
        return set()
    choose = max if query in task.higher_is_better else min
    _, leader = choose(answers, key=lambda answer: answer[1].mean)
    tied = [row for row, summary in answers if not _differs(summary, leader)]
    if len(tied) == len(answers):
        return set()
    methods = [row for row in tied if row.role == "method"]
    return {row.method for row in methods or tied}


def _differs(one: Summary, other: Summary) -> bool:
    """Return whether two means differ by more than two standard errors of their difference."""
    squares = [s.sd**2 / s.runs for s in (one, other) if s.sd > 0]  # nan means no deviation
    return abs(one.mean - other.mean) > 2 * math.sqrt(math.fsum(squares))


def wins(rows: Sequence[Row], row: Row, task: Task) -> str:
    """Count the headline queries on which a row beats the first baseline, e.g. ``"3 of 5"``.

    A missing number is no win, and neither is that of one run. The baseline itself, rows without a
    run, and rows of a single one have no count.

    Args:
        rows: Rows of a table.
        row: One of them.
        task: The task.
    """
    baseline = next((other for other in rows if other.method == baseline_label(task)), None)
    if baseline is None or row is baseline:
        return "-"
    if any(not one.done or one.num_runs < 2 for one in (row, baseline)):
        return "-"
    won = 0
    for query in task.win_queries:
        if all(one.is_complete(query) and one.runs_with(query) > 1 for one in (row, baseline)):
            ahead = baseline.score(query).mean - row.score(query).mean
            won += (-ahead if query in task.higher_is_better else ahead) > 0
    return f"{won} of {len(task.win_queries)}"


def baseline_label(task: Task) -> str:
    """Return the label of the row of the first baseline.

    Args:
        task: The task.
    """
    return f"{task.baselines[0]} (baseline)"


def text(summary: Summary, runs: int) -> str:
    """Format ``mean ± sd``, with the number of runs if some are missing."""
    if not summary.runs:
        return "-"
    spread = f" ± {number(summary.sd, 2)}" if summary.sd > 0 else ""  # nan means no spread
    note = f" ({summary.runs} of {runs})" if summary.runs < runs else ""
    return f"{number(summary.mean)}{spread}{note}"


def cells(table: Table, names: Sequence[str], task: Task) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of methods by queries, that of the original first.

    Args:
        table: The measurements.
        names: Names of the queries.
        task: The task.

    Returns:
        Cells of HTML: the best are bold, those without a guarantee in italics.
    """
    arrows = [f"{query} ↑" if query in task.higher_is_better else query for query in names]
    counted = [] if table.is_of_one_run else [f"beats {task.baselines[0]}"]
    numbers = (*counted, "epsilon proved")
    winners = {query: best(table.rows, query, task) for query in names}
    values = [_marked(original(table.rows, query), "i") for query in names]
    rows = [[_marked("original", "i"), *values, *("" for _ in numbers)]]
    for row in table.rows:
        runs, mark = row.num_runs, "" if row.is_private else "i"
        texts = [_marked(row.title, mark)]
        for query in names:
            num_missing = len(row.done) - row.runs_with(query)
            is_best = row.method in winners[query]
            score = text(row.score(query), runs - num_missing)
            texts.append(_marked(score, "b" if is_best else mark))
        ends = [wins(table.rows, row, task) for _ in counted] + [text(row.spent(), runs)]
        rows.append([*texts, *(_marked(end, mark) for end in ends)])
    return ["method", *arrows, *numbers], rows


def _marked(content: str, mark: str) -> str:
    return Markup(f"<{mark}>{{}}</{mark}>" if mark else "{}").format(content)


def csv_text(results: Sequence[dict[str, Any]]) -> str:
    """Return a row per run and query; a failed run has a single row, whose note has the reason."""
    return as_csv(COLUMNS, csv_rows(results))


def csv_rows(results: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return the rows of the CSV file, in the order of its columns."""
    rows: list[dict[str, Any]] = []
    for result in results:
        row = {key: result[key] for key in ("method", "role", "graph", "epsilon", "run")}
        if result["failure"] is not None:
            rows.append(row | {"note": f"failed: {result['failure']}"})
            continue
        privacy = result["privacy"]
        row |= {key: privacy[key] for key in ("relation", "mode", "accountant", "guarantee")}
        row |= {
            "private": is_private(result),
            "conditional": is_conditional(result),
            "spent_epsilon": privacy["epsilon"],
            "spent_delta": privacy["delta"],
            "fit_seconds": round(result["seconds"]["fit"], 6),
            "draw_seconds": round(result["seconds"]["draw"], 6),
        }
        rows += [row | {"query": query} | answer for query, answer in result["answers"].items()]
    return [[row.get(column) for column in COLUMNS] for row in rows]


def original(rows: Iterable[Row], query: str) -> str:
    """Format the answer of the real data; ``-`` for queries without one."""
    results = (result for row in rows for result in row.done)
    values = (result["answers"].get(query, {}).get("real") for result in results)
    return number(next((value for value in values if value is not None), None))
