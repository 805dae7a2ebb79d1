"""Names of nodes: their order, refused names, and node lists in files."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path

from lightning_dpg.errors import Refusal

SECRET_NUMBERS = "that the nodes are numbered in a secret random order (the release holds no name)"
"""What a guarantee says of nodes without names."""
MISSING_NAMES = {"", "nan", "nat", "none", "null", "<na>", "n/a", "#n/a"}
CLOSED = "quotes that close on the same line"
WAY_TO_CLOSE = 'write a quote in a cell twice ("") and the cell in quotes, without a line break'
ID_HEADERS = {"id", "ids", "node", "nodes", "name", "node_id", "node id", "nodeid", "label"}
_LAST_WORDS = {"id", "ids", "node", "name", "number", "nr", "no", "key", "code", "iban", "uuid"}
"""Last words of headers of several words, such as ``Customer Id`` and ``accountNumber``."""
_BEARERS = {
    *("account", "client", "company", "customer", "email", "employee", "member", "person", "user"),
    *("code", "entity", "iban", "key", "number", "payee", "payer", "phone", "source", "target"),
}
"""Words that may be a header of ids, in the singular."""
_FORMS = (r"\d", "@", "[.]", ":", "/", "_", "[A-Z]")
"""What ids hold and words of a header do not, or the other way round."""


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
    return all(len(one) < len(other) or (len(one) == len(other) and one < other)
               for one, other in pairwise(names))  # fmt: skip


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


def given_names(nodes: str | Path | Iterable[object], column: str | None = None) -> list[str]:
    """Return the names of a public node list, each once, in natural order.

    Args:
        nodes: The ids, or a file with one id per line or a table in CSV or Parquet with one id per
            row.
        column: Column of the table that holds the ids, by its name in the first row.
    """
    if isinstance(nodes, (str, Path)):
        names = _read_names(user_path(nodes), column)
    else:
        names = [name_of(name).strip() for name in nodes]
        if any(is_missing(name) for name in names):
            raise GraphFormatError("nodes: an id is missing (empty or NaN)\nexpected names only")
    distinct = list(set(names))
    return [distinct[place] for place in natural_order(distinct)]


def given_column(nodes: str | Path, column: str, other: str) -> dict[str, str]:
    """Return the values of another column of a table of nodes by the ids.

    Args:
        nodes: The table in CSV or Parquet.
        column: Column that holds the ids.
        other: The other column.
    """
    path = user_path(nodes)
    names, values = _read_names(path, column), _read_names(path, other)
    side_of = dict(zip(names, values, strict=True))
    if any(side_of[name] != value for name, value in zip(names, values, strict=True)):
        raise GraphFormatError(
            f"nodes {path}: an id has two values of {other!r}\nexpected one per id"
        )
    return side_of


def check_node_file(path: Path) -> None:
    """Refuse a list of nodes that is no file.

    Args:
        path: Its path.

    Raises:
        GraphFormatError: If there is no such file.
    """
    if not path.is_file():
        raise GraphFormatError(
            f"nodes {path}: {'a folder' if path.is_dir() else 'no such file'}\n"
            "expected a file with one node id per line, or a table in CSV or Parquet"
        )


def _read_names(path: Path, column: str | None) -> list[str]:
    check_node_file(path)
    if path.suffix == ".parquet":
        return _read_parquet_names(path, column)
    rows = [(line, row) for line, row in _rows(path) if any(row)]
    if not rows:
        raise GraphFormatError(f"nodes {path}: empty\nexpected one node id per line")
    (start, first), *rest = rows
    shown, note = shown_columns(first), ""
    if not shown and len(first) > 1 and _is_comment(path, start - 1):
        note = f"\nline {start - 1} is a comment: if it is the header, remove its mark"
    position = _place_of_column(path, first, column, shown, note)
    has_header = column is not None or _is_header(path, first[0], [row[0] for _, row in rest])
    names = []
    for line, row in rest if has_header else rows:
        if len(row) != len(first) or is_missing(row[position]):
            raise GraphFormatError(
                f"nodes {path}, line {line}: {'no id' if len(row) == len(first) else f'{len(row)} cells'}\n"
                f"expected a node id and {len(first)} column(s), as in the first row"
            )
        names.append(row[position])
    return names


def _is_header(path: Path, first: str, others: Sequence[str]) -> bool:
    """Return whether the first row of a list is a header, by the list alone.

    Raises:
        GraphFormatError: If it is not clear: a word above ids of another form.
    """
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", first)
    if first.casefold() in ID_HEADERS:
        return True
    if first in others or not re.fullmatch(r"[^\W\d_][^\d@]*", first):
        return False  # an id again, or no word
    if len(words) > 1 and words[-1].lower() in _LAST_WORDS:
        return True
    is_apart = len(others) > 1 and any(
        {re.search(form, other) is None for other in others} == {re.search(form, first) is not None}
        for form in _FORMS
    )
    if is_apart or first.casefold().removesuffix("s") in _BEARERS:
        raise GraphFormatError(
            f"nodes {path}: the first row may be a header: it is a word unlike the others, or a usual "
            f"one\nif it is, name the column: nodes.column (--nodes '{path}(NAME)')\n"
            "if it is an id, put a line 'id' above it"
        )
    return False


def shown_columns(first: Sequence[str]) -> str:
    """Return the names of columns for an error; nothing where the first row may be no header."""
    words = [re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name) for name in first]
    names_ids = any(len(each) > 1 and each[-1].lower() in ("id", "ids") for each in words)
    is_header = names_ids or any(name.casefold() in ID_HEADERS for name in first)
    return f"\nthe columns are {', '.join(first)[:100]}" if is_header else ""


def _place_of_column(
    path: Path, names: Sequence[str], column: str | None, shown: str, note: str = ""
) -> int:
    """Return the place of the column of ids among the names of all columns."""
    if column is not None and column not in names:
        what = f"no column {column!r} in the first row{shown}"
    elif column is None and len(names) > 1:
        what = f"{len(names)} columns{shown}"
    else:
        return 0 if column is None else names.index(column)
    raise GraphFormatError(
        f"nodes {path}: {what}{note}\n"
        f"name the one that holds the ids as the first row does: nodes.column (--nodes '{path}(NAME)')"
    )


def _is_comment(path: Path, line: int) -> bool:
    """Return whether a line of a list, from 1 on, is a comment."""
    lines = _text(path).split("\n")
    return 0 < line <= len(lines) and lines[line - 1][:1] in ("#", "%")


def _read_parquet_names(path: Path, column: str | None) -> list[str]:
    """Read the ids of a table in Parquet."""
    try:
        from pyarrow import ArrowException, parquet  # optional
    except ImportError:
        raise GraphFormatError(
            f"nodes {path}: pyarrow reads Parquet, and is not installed\n"
            "pip install 'lightning_dpg[tables]', or export the table as CSV"
        ) from None
    try:
        with parquet.ParquetFile(path) as opened:
            columns = opened.schema_arrow.names
            shown = f"\nthe columns are {', '.join(columns)[:100]}"
            chosen = columns[_place_of_column(path, columns, column, shown)]
            cells = opened.read([chosen]).column(0).to_pylist()
    except (ArrowException, OSError):
        raise GraphFormatError(f"nodes {path}: not a whole Parquet file") from None
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    if missing := [row for row, name in enumerate(names) if is_missing(name)]:
        raise GraphFormatError(
            f"nodes {path}, row {missing[0]} (from 0): no id\nexpected a node id in each row"
        )
    return names


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return numbers and cells of rows; lines that begin with ``#`` or ``%`` are comments."""
    lines = enumerate(_text(path).split("\n"), 1)
    used = [(number, line) for number, line in lines if line.strip() and line[0] not in "#%"]
    delimiter = next((mark for mark in "\t;|," if used and mark in used[0][1]), ",")
    rows = [(number, line_cells(line.strip(" "), delimiter)) for number, line in used]
    if crossing := next((number for number, row in rows if not row), None):
        raise GraphFormatError(f"nodes {path}, line {crossing}: expected {CLOSED}\n{WAY_TO_CLOSE}")
    return rows


def _text(path: Path) -> str:
    """Return the text of a file with one kind of line ends."""
    content = path.read_bytes()
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise GraphFormatError(f"nodes {path}: not a text file in UTF-8") from None
