"""Measured quality of methods by epsilon: the numbers that the package ships for plans."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lightning_dpg import methods
from results.tables import FOLDER, Cell, TableText, read_study, study_names

FILE = FOLDER.parent / "lightning_dpg" / "run" / "quality.csv"
_ATTACKED = ("attacks", "audits", "speed")  # studies of something else than quality
_ENDS_IN_NUMBER = re.compile(r"(?:(.*) )?(\d*\.?\d+)")
_MARKS = re.compile(r" \([^()]*\{\{[^()]*\)|[*`]|\[([^\]]*)\]\([^)]*\)")


class Quality(NamedTuple):
    """One measured number; its fields are the columns of the file."""

    study: str
    caption: str
    method: str
    epsilon: str
    query: str
    value: str
    deviation: str
    runs: str


def quality_file() -> dict[Path, str]:
    """Content of the shipped file, by its path."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Quality._fields)
    writer.writerows(numbers())
    return {FILE: text.getvalue()}


def numbers() -> Iterator[Quality]:
    """All numbers that a table gives for a method at an epsilon."""
    for name in study_names():
        study = read_study(FOLDER / name)
        for cell in study.cells.values():
            if name in _ATTACKED or cell.source != "measured":
                continue
            place, text = _place(cell), study.tables[cell.table]
            if place is not None:
                caption = _sentence(text)
                yield Quality(name, caption, *place, cell.value, cell.deviation, cell.runs)


def _place(cell: Cell) -> tuple[str, str, str] | None:
    """Method, epsilon and query of a cell; None where the table has no such order.

    Rows are methods with columns ``QUERY EPSILON``, ``METHOD EPSILON`` with columns of queries, or
    ``DATA EPSILON`` with columns of methods.
    """
    for one, other in ((cell.row, cell.column), (cell.column, cell.row)):
        numbered = _ENDS_IN_NUMBER.fullmatch(other)
        if one in methods.__all__ and numbered and float(numbered[2]) > 0:
            return one, f"{float(numbered[2]):g}", numbered[1] or ""
    numbered = _ENDS_IN_NUMBER.fullmatch(cell.row)
    if (
        cell.column not in ("epsilon", "delta")
        and numbered
        and numbered[1] in methods.__all__
        and float(numbered[2]) > 0
    ):
        return numbered[1], f"{float(numbered[2]):g}", cell.column
    return None


def _sentence(text: TableText) -> str:
    """First sentence of a caption without Markdown, or the title where that explains marks only."""
    caption = text.title if text.caption.startswith("Bold") else text.caption
    first = re.split(r"\.(?:\s|$)", " ".join(caption.split()))[0]
    return _MARKS.sub(lambda match: match[1] or "", first)
