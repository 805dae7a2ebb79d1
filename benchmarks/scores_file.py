"""Scores of a study in a file that grows, and the table that follows from them."""

import csv
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.evaluation.node_evaluation import Difference

CELLS = ("table", "row", "column", "value", "deviation", "runs", "seeds", "note")


class ScoresFile:
    """The files ``scores.csv`` and ``cells.csv`` of a study.

    A call that was cut off is continued: its last line, if it was not written whole, is dropped.

    Args:
        folder: Folder of the files, which is made.
        fields: Names of the columns of scores.
    """

    def __init__(self, folder: Path, fields: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._scores, self._cells, self._fields = (
            folder / "scores.csv",
            folder / "cells.csv",
            fields,
        )
        if self._scores.exists():
            whole = self._scores.read_bytes()
            if not whole.endswith(b"\n"):
                self._scores.write_bytes(whole[: whole.rfind(b"\n") + 1])

    def lines(self) -> list[dict[str, str]]:
        """Return the scores of this and of earlier calls by the names of their columns."""
        if not self._scores.exists():
            return []
        with self._scores.open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))

    def append(self, rows: Iterable[Sequence[Any]]) -> None:
        """Append lines at once.

        Args:
            rows: Values of the columns.
        """
        is_new = not self._scores.exists() or not self._scores.stat().st_size
        with self._scores.open("a", newline="", encoding="utf-8") as stream:
            lines = csv.writer(stream, lineterminator="\n")
            lines.writerows([self._fields, *rows] if is_new else rows)

    def write_cells(self, cells: Iterable[Sequence[Any]]) -> None:
        """Write the table, and print it.

        Args:
            cells: Values of the columns :data:`CELLS`.
        """
        with self._cells.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([CELLS, *cells])
        print(self._cells.read_text(encoding="utf-8"))


def mean_cells(
    values: Mapping[tuple[str, str, str], Mapping[str, float]],
) -> Iterator[list[Any]]:
    """Yield the mean and the standard deviation of each place; a place without a number has none.

    Args:
        values: Value of each seed, by table, row and column.
    """
    for place, by_seed in values.items():
        found = [value for value in by_seed.values() if math.isfinite(value)]
        if not found:
            continue
        deviation = f"{statistics.stdev(found):.3f}" if len(found) > 1 else ""
        seeds = " ".join(sorted(by_seed, key=int))
        yield [*place, f"{statistics.fmean(found):.3f}", deviation, len(found), seeds, ""]


def mean_of(values: Sequence[float]) -> tuple[str, str]:
    """Format a mean and the standard deviation, which a single value does not have."""
    deviation = f"{statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}", deviation


def interval_of(found: Difference) -> tuple[str, str]:
    """Format a difference and half of its interval, which a single pair does not have."""
    width = "" if math.isnan(found.half_width) else f"{found.half_width:.1f}"
    return f"{found.mean:+.1f}", width
