"""Public lists of nodes: ids, or columns of a table of nodes in a file. It needs no PyTorch."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.formats.text_rows import read_text, table_rows
from lightning_dpg.graph.node_names import (
    GraphFormatError,
    is_missing,
    name_of,
    natural_order,
    user_path,
)

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
    rows = table_rows(path, "a node id per line, or a table in CSV")
    if not rows:
        raise GraphFormatError(f"nodes {path}: empty\nexpected one node id per line")
    (start, first), *rest = rows
    shown, note = shown_columns(first), ""
    if not shown and len(first) > 1 and _is_comment(path, start - 1):
        note = f"\nline {start - 1} is a comment: if it is the header, remove its mark"
    position = _place_of_column(path, first, column, shown, note)
    # Of several columns the header has told which one holds the ids.
    has_header = (
        column is not None
        or len(first) > 1
        or _is_header(path, first[0], [row[0] for _, row in rest])
    )
    names = []
    for line, row in rest if has_header else rows:
        if is_missing(row[position]):
            raise GraphFormatError(
                f"nodes {path}, line {line}: no id\nexpected a node id in each row"
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


def place_of_ids(header: Sequence[str]) -> int | None:
    """Return the place of the one column whose name is a usual one of ids; None if it is not clear."""
    ids = [place for place, name in enumerate(header) if name.casefold() in ID_HEADERS]
    ids = [place for place in ids if header[place].casefold() not in ("name", "label")] or ids
    return ids[0] if len(ids) == 1 else None


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
        if (place := place_of_ids(names)) is not None:
            return place
        what = f"{len(names)} columns{shown}"
    else:
        return 0 if column is None else names.index(column)
    raise GraphFormatError(
        f"nodes {path}: {what}{note}\n"
        f"name the one that holds the ids as the first row does: nodes.column (--nodes '{path}(NAME)')"
    )


def _is_comment(path: Path, line: int) -> bool:
    """Return whether a line of a list, from 1 on, is a comment."""
    lines = read_text(path).split(b"\n")
    return 0 < line <= len(lines) and lines[line - 1][:1] in (b"#", b"%")


def _read_parquet_names(path: Path, column: str | None) -> list[str]:
    """Read the ids of a table in Parquet."""
    table = parquet_table(path)
    shown = f"\nthe columns are {', '.join(table.column_names)[:100]}"
    cells = table.column(_place_of_column(path, table.column_names, column, shown)).to_pylist()
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    if missing := [row for row, name in enumerate(names) if is_missing(name)]:
        raise GraphFormatError(
            f"nodes {path}, row {missing[0]} (from 0): no id\nexpected a node id in each row"
        )
    return names


def parquet_table(path: Path) -> Any:
    """Read a public table of nodes in Parquet as one of Arrow.

    Raises:
        GraphFormatError: If it is damaged.
    """
    from pyarrow import ArrowException, parquet  # start-up time

    try:
        with parquet.ParquetFile(path) as opened:
            return opened.read()
    except (ArrowException, OSError):
        raise GraphFormatError(
            f"nodes {path}: not a whole Parquet file\nwrite it again, or as CSV"
        ) from None
