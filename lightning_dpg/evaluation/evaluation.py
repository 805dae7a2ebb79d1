"""Answers of synthetic graphs beside those of the real one, as tables, files and pages."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning_dpg.evaluation.baselines import BASELINES
from lightning_dpg.evaluation.page import page, summary
from lightning_dpg.evaluation.purposes import NOT_PRIVATE, Measured, table
from lightning_dpg.evaluation.row_quality import row_answers, row_lines
from lightning_dpg.evaluation.transfer_quality import transfer_answers, transfer_lines
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.queries import ALIGNED, Answer, Profile
from lightning_dpg.release.writer import KEY
from lightning_dpg.tables import as_csv, as_data_frame, as_json

NO_NAMES = (
    f"left out: {', '.join(ALIGNED)} and scores of pairs, since the nodes are numbered in a secret order "
    f"and the key ({KEY} of the run) is not beside the release"
)
"""Line on a release without the key of its numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Synthetic graphs beside the real graph. All numbers are private: the real graph was read.

    Attributes:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs in the given order, with their answers.
    """

    name: str
    real: Profile
    measured: tuple[Measured, ...]

    @property
    def answers(self) -> dict[str, dict[str, Answer]]:
        """Answer to each query, by the name of the synthetic graph and by the query."""
        return {each.name: each.answers for each in self.measured}

    def table(self) -> list[str]:
        """Return the lines of tables for each synthetic graph, and behind all what they serve.

        An empty line follows each table and the purposes of each graph. A release with drawn rows
        has a second table, of its private columns, and one with drawn transfers a table of these.
        """
        tables = list[Sequence[str]]()
        for one in self.measured:
            left_out = [] if one.has_key else [NO_NAMES]
            tables.append((*table(self.name, one.name, one.answers), *left_out, ""))
            if one.rows is not None:
                tables.append((*row_lines(one.rows), ""))
            if one.transfers is not None:
                tables.append((*transfer_lines(one.transfers), ""))
        judged = [(one.name, one.purposes) for one in self.measured if one.purposes]
        purposes = [
            (*([f"{name}:"] if len(self.measured) > 1 else []), *found.lines(), "")
            for name, found in judged
        ]
        return [line for lines in (*tables, *purposes) for line in lines]

    def __str__(self) -> str:
        """Return all tables, the purposes served, and a reminder that they are not private."""
        return "\n".join([*self.table(), NOT_PRIVATE])

    def __repr__(self) -> str:
        """Return the tables, as ``str`` does."""
        return str(self)

    def to_json(self) -> str:
        """Return all answers as strict JSON, with null for nan, with their notes and purposes."""
        graphs = [
            {"path": one.name, "queries": {name: _plain(one.answers[name]) for name in one.answers}}
            | (
                {}
                if one.rows is None
                else {"private_columns": [each.for_json() for each in one.rows]}
            )
            | (
                {}
                if one.transfers is None
                else {"transfers": [each.for_json() for each in one.transfers]}
            )
            | (one.purposes.for_json() if one.purposes else {})
            for one in self.measured
        ]
        return as_json({"graphs": graphs})

    def to_csv(self, path: str | Path) -> None:
        """Write a row for each synthetic graph and query.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self._csv())

    def _csv(self) -> str:
        rows = (
            (one.name, name, *answer.for_json().values())
            for one in self.measured
            for name, answer in (one.answers | one.further_answers).items()
        )
        return as_csv(["path", "query", "real", "synthetic", "error", "note"], rows)

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
        head = ("graph", "query", "group", "real", "synthetic", "error", "better", "note")
        no_baseline = [math.nan] * len(BASELINES)
        rows = [
            (*(one.name, name, query.group, *answer[:3], query.better, answer.note), *errors)
            for one in self.measured
            for name, answer in one.answers.items()
            for query, errors in [(glossary("graphs")[name], _baseline_errors(one, name))]
        ]
        rows += [
            (one.name, name, group, *answer[:3], "lower", answer.note, *no_baseline)
            for one in self.measured
            for group, answers in (
                ("private columns", row_answers(one.rows or ())),
                ("transfers", transfer_answers(one.transfers or ())),
            )
            for name, answer in answers.items()
        ]
        return as_data_frame([*head, *(f"error_{name}" for name in BASELINES)], rows)

    def to_html(self, path: str | Path) -> None:
        """Write one page that works without a network: pictures, charts, queries and their meaning.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self.to_html_text())

    def to_html_text(self) -> str:
        """Return the text of the page of :meth:`to_html`."""
        return page(self.name, self.real, self.measured, self._csv(), self.to_json())

    def _repr_html_(self) -> str:
        """Show compact tables in a notebook."""
        return summary(self.name, self.measured)


def _baseline_errors(measured: Measured, query: str) -> tuple[float, ...]:
    """Return the mean error of each baseline in a query; nan where there is none."""
    found = measured.purposes.scores if measured.purposes else {}
    scores = [found.get(name, {}).get(query, []) for name in BASELINES]
    return tuple(statistics.fmean(values) if values else math.nan for values in scores)


def _plain(answer: Answer) -> dict[str, float | str | None]:
    """Return an answer as plain values, without an empty note."""
    return {key: value for key, value in answer.for_json().items() if key != "note" or value}
