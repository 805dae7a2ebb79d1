"""The object that a benchmark returns: tables for Python and notebooks, and a figure."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from torch_geometric.data import Data

from lightning_dpg.apps.bench.figure import errors_figure
from lightning_dpg.apps.bench.results import (
    COLUMNS,
    ONE_RUN,
    Table,
    best,
    csv_rows,
    measured,
    tables,
    text,
)
from lightning_dpg.apps.bench.tasks import Task
from lightning_dpg.pages import page as pages
from lightning_dpg.tables import as_data_frame

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """All measurements of a benchmark. They are not private: the real graphs were read.

    :func:`lightning_dpg.benchmark` returns it. Its tables and its figure have the queries that the call
    has named, by default the headline queries of the task; :meth:`to_dataframe` has all of them.

    Attributes:
        runs: Recorded results of the fits, failed ones included.
        data: Real data by name.
        task: Task of the methods.
        folder: Folder of all results.
        files: Paths of ``results.csv``, ``results.md`` and ``report.html``.
        queries: Names of the queries in tables and figure.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graphs, queries = ["karate"], ["num_nodes"]
        ...     results = dpg.benchmark(
        ...         ["chung_lu"], graphs, [1.0], folder, seeds=[0], say=len, queries=queries
        ...     )
        >>> frame = results.to_dataframe()
        >>> frame[frame["query"] == "num_nodes"][["method", "epsilon", "real", "error"]]
                            method  epsilon  real  error
        0      chung_lu (baseline)      1.0  34.0    0.0
        29  erdos_renyi (baseline)      1.0  34.0    0.0
    """

    runs: list[dict[str, Any]]
    data: dict[str, Data]
    task: Task
    folder: Path
    files: list[Path]
    queries: tuple[str, ...]

    @property
    def failed(self) -> int:
        """Number of fits that failed."""
        return sum(run["failure"] is not None for run in self.runs)

    @property
    def tables(self) -> list[Table]:
        """A table for each graph and budget."""
        return tables(self.runs)

    def to_dataframe(self) -> Any:
        """Return a row for each run and query as a DataFrame, with the columns of ``results.csv``.

        A failed fit has one row without a query, whose ``note`` says why it failed. ``to_latex`` of a
        pivot of the DataFrame prints a table for a paper.

        Raises:
            CommandError: If pandas is not installed.
        """
        rows = csv_rows(self.runs)
        frame = as_data_frame(COLUMNS, [[row.get(column) for column in COLUMNS] for row in rows])
        # Text in JSON: infinity, of methods without privacy
        return frame.astype({"epsilon": float, "spent_epsilon": float, "spent_delta": float})

    def plot(self) -> "Figure":
        """Plot the errors in each query by method; over epsilon if there are several budgets.

        Bars are standard deviations over the runs. Hollow points are methods without privacy.

        Returns:
            A figure of matplotlib, which a notebook shows and ``savefig`` writes. It is not private.

        Raises:
            CommandError: If no fit has come to an end.
        """
        return errors_figure(self.tables, measured(self.runs, self.queries), self.task)

    @property
    def _report(self) -> Path:
        return next((path for path in self.files if path.suffix == ".html"), self.folder)

    def __repr__(self) -> str:
        """Name what was measured, and the path of the whole report."""
        places = ", ".join(f"{table.graph} at epsilon {table.epsilon:g}" for table in self.tables)
        return (
            f"Benchmark of {len(self.runs)} fits, {self.failed} of them failed: tables of {places}\n"
            f"all numbers: {self._report}\n"
            "to_dataframe(), plot()\n"
            "not private: the numbers were computed from the real graphs"
        )

    def _repr_html_(self) -> str:
        """Show compact tables in a notebook, and the path of the whole report."""
        failed = f" {self.failed} of {len(self.runs)} fits failed." if self.failed else ""
        one_run = f" {ONE_RUN}" if all(table.is_of_one_run for table in self.tables) else ""
        lead = f"{failed}{one_run} All queries: {self._report}"
        names = measured(self.runs, self.queries)
        return pages.notebook(
            "Not private.", [_compact(table, names, self.task) for table in self.tables], lead
        )


def _compact(table: Table, names: list[str], task: Task) -> pages.Table:
    """Return queries by methods, with the best ones in bold."""
    rows: list[list[str]] = []
    for query in names:
        winners = best(table.rows, query, task)
        cells = [
            Markup("<b>{}</b>" if row.method in winners else "{}").format(
                text(row.score(query), row.runs_with(query))
            )
            for row in table.rows
        ]
        arrow = " ↑" if query in task.higher_is_better else ""
        rows.append([pages.with_meaning(query, arrow), *cells])
    rows.append(["epsilon proved", *(text(row.spent(), len(row.done)) for row in table.rows)])
    head = ("error, or agreement ↑", *(row.title for row in table.rows))
    return pages.Table(f"{table.graph}, epsilon {table.epsilon:g}", "", head, rows)
