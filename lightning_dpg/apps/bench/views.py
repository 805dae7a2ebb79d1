"""The object that a benchmark returns: tables for Python and notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch_geometric.data import Data

from lightning_dpg.apps.bench.results import (
    COLUMNS,
    ONE_RUN,
    Table,
    cells,
    csv_rows,
    measured,
    tables,
)
from lightning_dpg.apps.bench.tasks import Task
from lightning_dpg.pages import page as pages
from lightning_dpg.pages.report import Report


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(Report):
    """All measurements of a benchmark. They are not private: the real graphs were read.

    :func:`lightning_dpg.compare` returns it. Its tables have the queries that the call has named, by
    default the headline queries of the task; :meth:`to_dataframe` has all of them.

    Attributes:
        runs: Recorded results of the fits, failed ones included.
        data: Real data by name.
        task: Task of the methods.
        folder: Folder of all results.
        files: Paths of ``results.csv`` and ``report.html``.
        queries: Names of the queries in tables.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graphs, queries = ["karate"], ["num_nodes"]
        ...     results = dpg.compare(
        ...         ["chung_lu"], graphs, [1.0], folder, seeds=[0], say=len, queries=queries
        ...     )
        >>> frame = results.to_dataframe()
        >>> frame[frame["query"] == "num_nodes"][["method", "epsilon", "real", "error"]]
                            method  epsilon  real  error
        0      chung_lu (baseline)      1.0  34.0    0.0
        29  erdos_renyi (baseline)      1.0  34.0    0.0
    """

    title: ClassVar[str] = "Synthetic graphs compared"
    not_private: ClassVar[str] = "not private: the numbers were computed from the real graphs"
    columns: ClassVar[Sequence[str]] = COLUMNS

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
        frame = super().to_dataframe()
        # Text in JSON: infinity, of methods without privacy
        return frame.astype({"epsilon": float, "spent_epsilon": float, "spent_delta": float})

    @property
    def values(self) -> dict[str, Any]:
        """Means of the headline queries in each table; :meth:`to_dataframe` has all numbers."""
        return {
            "fits": len(self.runs),
            "failed": self.failed,
            "files": self.files,
            "tables": [
                {"graph": table.graph, "epsilon": table.epsilon, "rows": self._rows(table)}
                for table in self.tables
            ],
        }

    def _rows(self, table: Table) -> list[dict[str, Any]]:
        return [
            {
                "method": row.method,
                "role": row.role,
                "private": row.is_private,
                "spent_epsilon": row.spent().mean,
                "guarantee": row.guarantee,
                "scores": {query: row.score(query).mean for query in self.task.win_queries},
            }
            for row in table.rows
        ]

    def records(self) -> list[list[Any]]:
        """Return the rows of ``results.csv``."""
        return csv_rows(self.runs)

    def sections(self) -> list[pages.Table]:
        """Return a table of methods by queries for each graph and budget."""
        names = measured(self.runs, self.queries)
        return [
            pages.Table(table.title, "", *cells(table, names, self.task), self._notes())
            for table in self.tables
        ]

    def _notes(self) -> list[str]:
        failed = f"{self.failed} of {len(self.runs)} fits failed." if self.failed else ""
        one_run = ONE_RUN if all(table.is_of_one_run for table in self.tables) else ""
        report = next((path for path in self.files if path.suffix == ".html"), self.folder)
        return [*filter(None, (failed, one_run)), f"all numbers: {report}"]

    def text(self) -> str:
        """Name what was measured, and the path of the whole report."""
        places = ", ".join(f"{table.graph} at epsilon {table.epsilon:g}" for table in self.tables)
        fits = f"Benchmark of {len(self.runs)} fits: tables of {places}"
        return "\n".join([fits, *self._notes(), "to_dataframe()", self.not_private])
