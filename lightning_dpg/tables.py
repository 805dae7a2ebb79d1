"""Tables as text and CSV, and values as JSON."""

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError


def as_text(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table whose columns are aligned.

    Args:
        rows: Texts of the cells; the first row is the head.
        left: Columns that are aligned on the left, the others are on the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if place in left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a CSV file, with the line ends of RFC 4180; a cell of None is empty.

    Args:
        head: Names of the columns.
        rows: Values of the cells.
    """
    text = io.StringIO(newline="")
    csv.writer(text).writerows([head, *rows])
    return text.getvalue()


def as_json(values: Any) -> str:
    """Return the text of a file of strict JSON, which has no nan and no infinity.

    Args:
        values: Plain values, with lists and dictionaries of them.

    Raises:
        ValueError: If a number is nan or infinite.
    """
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def strict(values: Any) -> Any:
    """Return values that strict JSON has: infinity is the word ``inf``, nan is None, a path is text.

    Args:
        values: Plain values and paths, with lists, tuples and dictionaries of them.
    """
    if isinstance(values, dict):
        return {key: strict(each) for key, each in values.items()}
    if isinstance(values, list | tuple):
        return [strict(each) for each in values]
    if isinstance(values, Path):
        return str(values)
    if isinstance(values, float) and not math.isfinite(values):
        return None if math.isnan(values) else f"{values:g}"
    return values


def as_data_frame(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a DataFrame of pandas.

    Args:
        head: Names of the columns.
        rows: Values of the cells.

    Raises:
        CommandError: If pandas is not installed.
    """
    try:
        import pandas  # optional
    except ModuleNotFoundError as error:
        raise CommandError(
            f"a DataFrame needs pandas, which is not installed ({error})\npip install pandas"
        ) from error
    return pandas.DataFrame(list(rows), columns=list(head))
