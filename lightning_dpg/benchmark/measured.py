"""Numbers of an evaluation: tables, JSON and CSV of synthetic graphs beside a real one."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lightning_dpg.metrics.queries import Answer, Comparison
from lightning_dpg.metrics.sampled import line_on_sampling

NOT_PRIVATE = "not private: the numbers were computed from the real graph"


class Measured(NamedTuple):
    """One synthetic graph, compared with the real graph."""

    name: str
    """Path or name of the graph."""
    comparison: Comparison
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""

    @property
    def answers(self) -> dict[str, Answer]:
        """Answer to each query."""
        return self.comparison.answers


def table(real: str, synthetic: str, answers: Mapping[str, Answer]) -> list[str]:
    """Lines of the table for one synthetic graph.

    Args:
        real: Name of the real graph.
        synthetic: Name of the synthetic graph.
        answers: Answer to each query.
    """
    width = max(map(len, answers))
    lines = [
        f"{synthetic} against {real}",
        f"{'query':<{width}}  {'real':>12}  {'synthetic':>12}  {'error':>10}",
    ]
    for name, answer in answers.items():
        numbers = f"{cell(answer.real):>12}  {cell(answer.synthetic):>12}"
        row = f"{name:<{width}}  {numbers}  {cell(answer.score, 4):>10}  {answer.note}"
        lines.append(row.rstrip())
    said = line_on_sampling({name: answer.note for name, answer in answers.items()})
    return [*lines, said] if said else lines


def cell(value: float, digits: int = 8) -> str:
    """Format a number: ``-`` for nan, and counts in full."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() else f"{value:.{digits}g}"


def json_text(measured: Sequence[Measured]) -> str:
    """Return all answers as strict JSON, with null for nan, and with their notes."""
    graphs = [{"path": found.name, "queries": _queries(found.answers)} for found in measured]
    return json.dumps({"graphs": graphs}, indent=2, allow_nan=False) + "\n"


def _queries(answers: Mapping[str, Answer]) -> dict[str, dict[str, float | str | None]]:
    """Answers as plain values, without empty notes."""
    return {
        name: {key: value for key, value in answer.for_json().items() if key != "note" or value}
        for name, answer in answers.items()
    }


def csv_text(measured: Sequence[Measured]) -> str:
    """Return a row for each synthetic graph and query, as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["path", "query", "real", "synthetic", "error", "note"])
    for found in measured:
        for name, answer in found.answers.items():
            writer.writerow([found.name, name, *answer.for_json().values()])
    return text.getvalue()
