"""Names of nodes: their order, and refused names."""

import csv
import re
from collections.abc import Sequence
from itertools import pairwise, starmap
from numbers import Integral, Real
from operator import lt
from pathlib import Path

from lightning_dpg.errors import Refusal

SECRET_NUMBERS = "that the nodes are numbered in a secret random order (the release holds no name)"
"""What a guarantee says of nodes without names."""
MISSING_NAMES = {"", "nan", "nat", "none", "null", "<na>", "n/a", "#n/a"}
CLOSED = "quotes that close on the same line"
WAY_TO_CLOSE = 'write a quote in a cell twice ("") and the cell in quotes, without a line break'


class GraphFormatError(Refusal):
    """Error for a graph that cannot be read, with the place and a way out in at most 5 lines."""


class NoEdgesError(GraphFormatError):
    """Error for a graph without edges, which only a synthetic graph may be."""


def user_path(name: str | Path) -> Path:
    """Return the path that a user means, with the home folder in place of ``~``.

    Raises:
        GraphFormatError: If no file can have this path.
    """
    try:
        path = Path(name).expanduser()
        path.exists()
    except (OSError, RuntimeError) as error:  # too long a name, or the home folder of nobody
        shown = str(name) if len(str(name)) <= 60 else f"{str(name)[:60]}..."
        raise GraphFormatError(
            f"{shown}: {getattr(error, 'strerror', None) or error}\nexpected the path of a file"
        ) from None
    return path


def name_of(cell: object) -> str:
    """Return an id as text; a whole number is one also where a gap beside it has made it a float."""
    if isinstance(cell, Real) and not isinstance(cell, Integral) and float(cell).is_integer():
        return str(int(float(cell)))
    return str(cell)


def natural_key(name: str) -> tuple[tuple[str | tuple[int, str], ...], str]:
    """Return a sorting key that orders numbers by value: ``a2`` comes before ``a10``.

    The order depends on the names alone. The order in which a file or an object lists its nodes
    may follow the private edges and must not reach a release.
    """
    parts = re.split(r"([0-9]+)", name)
    # Numbers of equal length compare like text: no length of a number is too much.
    key = tuple(_number_key(part) if k % 2 else part for k, part in enumerate(parts))
    return key, name


def _number_key(digits: str) -> tuple[int, str]:
    significant = digits.lstrip("0")
    return len(significant), significant


def natural_order(names: Sequence[str]) -> list[int]:
    """Return the positions of the names in their natural order."""
    if all(map(re.compile(r"0|[1-9][0-9]*").fullmatch, names)):
        # Two sorts without a new key for each name take less time and half of the memory.
        order = sorted(range(len(names)), key=names.__getitem__)
        return sorted(order, key=lambda i: len(names[i]))
    return sorted(range(len(names)), key=lambda i: natural_key(names[i]))


def are_ascending_numbers(names: Sequence[str]) -> bool:
    """Return whether names are whole numbers in ascending order, which is their natural one."""
    if not all(map(re.compile(r"0|[1-9][0-9]*").fullmatch, names)):
        return False
    return all(starmap(lt, pairwise(zip(map(len, names), names, strict=True))))


def is_missing(name: str) -> bool:
    """Return whether a name is a missing value of a table, such as ``NaN``."""
    return name.strip().casefold() in MISSING_NAMES


def line_cells(line: str, separator: str) -> list[str]:
    """Split a line of a table into cells; return none if a quote does not close on the line."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(separator) if cell or separator != " "]
    try:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for cell in row]
