"""Numbers of an evaluation: synthetic graphs beside a real one."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from lightning_dpg.evaluation.purposes import Purposes
from lightning_dpg.evaluation.row_quality import RowFigure, row_answers
from lightning_dpg.evaluation.transfer_quality import TransferFigure, transfer_answers
from lightning_dpg.metrics.queries import Answer, Comparison
from lightning_dpg.metrics.sampled import line_on_sampling
from lightning_dpg.tables import as_text

NOT_PRIVATE = "not private: the numbers were computed from the real graph"


class Measured(NamedTuple):
    """One synthetic graph, compared with the real graph."""

    name: str
    """Path or name of the graph."""
    comparison: Comparison
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""
    purposes: Purposes | None = None
    """Purposes that its release serves beside baselines; None if it was not judged."""
    rows: tuple[RowFigure, ...] | None = None
    """Figures of its private columns; None without any, and empty if the real ones are not given."""
    transfers: tuple[TransferFigure, ...] | None = None
    """Figures of its transfers; None without any, and empty if the real ones are not given."""
    has_key: bool = True
    """Whether its nodes are known: not if they are numbers in a secret order without their key."""

    @property
    def answers(self) -> dict[str, Answer]:
        """Answer to each query."""
        return self.comparison.answers

    @property
    def further_answers(self) -> dict[str, Answer]:
        """Figures of private columns and of transfers, as answers to queries."""
        return row_answers(self.rows or ()) | transfer_answers(self.transfers or ())


def table(real: str, synthetic: str, answers: Mapping[str, Answer]) -> list[str]:
    """Return the lines of the table for one synthetic graph.

    Args:
        real: Name of the real graph.
        synthetic: Name of the synthetic graph.
        answers: Answer to each query.
    """
    texts = [("query", "real", "synthetic", "error", "")] + [
        (name, cell(answer.real), cell(answer.synthetic), cell(answer.score, 4), answer.note)
        for name, answer in answers.items()
    ]
    # Equal widths align the columns of several tables.
    rows = [
        (name, real_text.rjust(12), synthetic_text.rjust(12), error.rjust(10), note)
        for name, real_text, synthetic_text, error, note in texts
    ]
    sampled = line_on_sampling({name: answer.note for name, answer in answers.items()})
    lines = [f"{synthetic} against {real}", *as_text(rows, left={0, 4})]
    return [*lines, sampled] if sampled else lines


def cell(value: float, digits: int = 8) -> str:
    """Format a number: ``-`` for nan, and counts in full."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() else f"{value:.{digits}g}"
