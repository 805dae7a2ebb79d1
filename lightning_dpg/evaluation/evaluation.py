"""Answers of synthetic graphs beside those of the real one, as tables, files and pages."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lightning_dpg.evaluation.baselines import BASELINES
from lightning_dpg.evaluation.page import page, pictures
from lightning_dpg.evaluation.purposes import Measured
from lightning_dpg.metrics.figures import Pictures
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.queries import Answer, Profile
from lightning_dpg.pages.page import Table
from lightning_dpg.pages.report import Report


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Report):
    """Synthetic graphs beside the real graph. All numbers are private: the real graph was read.

    Attributes:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs in the given order, with their answers.
    """

    title: ClassVar[str] = "Quality of a release"
    columns: ClassVar[Sequence[str]] = (
        *("graph", "query", "group", "real", "synthetic", "error", "better", "note"),
        *(f"error_{name}" for name in BASELINES),
    )

    name: str
    real: Profile
    measured: tuple[Measured, ...]

    @property
    def answers(self) -> dict[str, dict[str, Answer]]:
        """Answer to each query, by the name of the synthetic graph and by the query."""
        return {each.name: each.answers for each in self.measured}

    def sections(self) -> list[Table]:
        """Return the tables of each synthetic graph, and behind all the purposes that each serves."""
        found = [
            table
            for one in self.measured
            for table in (one.table(self.name), *one.further_tables().values())
        ]
        return found + [
            Table(f"{one.name}: purposes", "", (), (), one.purposes.lines())
            for one in self.measured
            if one.purposes
        ]

    @property
    def values(self) -> dict[str, Any]:
        """All answers with their notes, and purposes."""
        return {"graphs": [*map(_values, self.measured)]}

    def records(self) -> list[Sequence[Any]]:
        """Return a row for each synthetic graph and query, and then for each of its figures."""
        no_baseline = [math.nan] * len(BASELINES)
        rows: list[Sequence[Any]] = [
            (*(one.name, name, query.group, *answer[:3], query.better, answer.note), *errors)
            for one in self.measured
            for name, answer in one.answers.items()
            for query, errors in [(glossary("graphs")[name], _baseline_errors(one, name))]
        ]
        return rows + [
            (one.name, name, group, *answer[:3], "lower", answer.note, *no_baseline)
            for one in self.measured
            for group, answers in one.further_answers.items()
            for name, answer in answers.items()
        ]

    def to_dataframe(self) -> Any:
        r"""Return a row for each synthetic graph and query, as a DataFrame of pandas.

        The columns ``error_ErdosRenyi`` and ``error_ChungLu`` are means over the fits of a baseline,
        and nan where there was none. ``to_latex`` of the DataFrame prints a table for a paper.

        Raises:
            CommandError: If pandas is not installed.

        Example:
            >>> import lightning_dpg as dpg
            >>> frame = dpg.evaluate("karate", "karate").to_dataframe()
            >>> list(frame.columns)  # doctest: +NORMALIZE_WHITESPACE
            ['graph', 'query', 'group', 'real', 'synthetic', 'error', 'better', 'note',
             'error_ErdosRenyi', 'error_ChungLu']
            >>> sizes = frame[frame.group == "size"]
            >>> print(sizes.to_latex(columns=["query", "real"], index=False, float_format="%.0f"))
            \begin{tabular}{lr}
            \toprule
            query & real \\
            \midrule
            num_nodes & 34 \\
            num_edges & 78 \\
            largest_component_size & 34 \\
            num_components & 1 \\
            \bottomrule
            \end{tabular}
            <BLANKLINE>
        """
        return super().to_dataframe()

    def pictures(self) -> Pictures:
        """Return the pictures of graphs and of compared columns and transfers, by kind."""
        return pictures(self.real, self.measured)

    def to_html_text(self) -> str:
        """Return a page with pictures, charts, queries and their meaning."""
        return page(self.name, self.real, self.measured, self._csv(), self.to_json())


def _baseline_errors(measured: Measured, query: str) -> tuple[float, ...]:
    """Return the mean error of each baseline in a query; nan where there is none."""
    found = measured.purposes.scores if measured.purposes else {}
    scores = [found.get(name, {}).get(query, []) for name in BASELINES]
    return tuple(statistics.fmean(values) if values else math.nan for values in scores)


def _values(one: Measured) -> dict[str, Any]:
    """Return all numbers of a synthetic graph as plain values, without empty notes."""
    queries = {
        name: {key: value for key, value in answer.for_json().items() if key != "note" or value}
        for name, answer in one.answers.items()
    }
    found: dict[str, Any] = {"path": one.name, "queries": queries}
    if one.rows is not None:
        found["private_columns"] = [each.for_json() for each in one.rows]
    if one.transfers is not None:
        found["transfers"] = [each._asdict() for each in one.transfers]
    return found | (one.purposes.for_json() if one.purposes else {})
