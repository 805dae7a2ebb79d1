"""Tables of attributes of nodes, in files of CSV, TSV or Parquet, or as DataFrames."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lightning_dpg.formats.arrow_edges import LARGEST_WHOLE
from lightning_dpg.formats.edge_tables import Table, column_cells, of_arrow
from lightning_dpg.formats.node_lists import parquet_table, place_of_ids, shown_columns
from lightning_dpg.formats.text_rows import table_rows
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import GraphFormatError, is_missing, name_of, user_path

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_ORIGIN = "nodes.attributes"
_NUMBERS = re.compile(r"halffloat$|float$|double$|u?int\d+$")
"""Types of Arrow that are numbers; a decimal keeps its digits."""


def read_attributes(source: str | Path | Table, id_column: str | None = None) -> AttributeTable:
    """Read a public table with a row of attributes per node.

    Args:
        source: Path of a file that ends with ``.csv``, ``.tsv`` or ``.txt``, also with ``.gz``, or
            with ``.parquet``; or a DataFrame, or another table with named columns.
        id_column: Column of the node ids; by default the only one with a name such as ``id``.

    Raises:
        GraphFormatError: If it cannot be read, or if an id is missing or repeated.
    """
    if (rows := of_arrow(source)) is not None:
        return attributes_of_arrow(rows, _ORIGIN, id_column)
    if not isinstance(source, (str, Path)):
        return _of_frame(source, id_column)
    path = user_path(source)
    if not path.is_file():
        raise GraphFormatError(
            f"nodes.attributes {path}: {'a folder' if path.is_dir() else 'no such file'}\n"
            "expected a table in CSV, TSV or Parquet with a row per node"
        )
    if path.suffix == ".parquet":
        return attributes_of_arrow(parquet_table(path), str(path), id_column)
    if Path(path.name.removesuffix(".gz")).suffix not in _TEXT_SUFFIXES:
        raise GraphFormatError(
            f"nodes.attributes {path}: unknown format {path.suffix or path.name!r}\n"
            f"expected {', '.join(_TEXT_SUFFIXES)} or .parquet"
        )
    return _read_text_table(path, id_column)


def _read_text_table(path: Path, id_column: str | None) -> AttributeTable:
    numbered = table_rows(path, "a table in CSV or TSV", comments="")
    if len(numbered) < 2:
        raise GraphFormatError(f"{path}: no rows\nexpected names of columns, then a row per node")
    (_, header), *rows = numbered
    if header[0].startswith(("#", "%")) and id_column not in header:
        raise GraphFormatError(
            f"{path}: the first line is a comment\nexpected names of columns: remove its mark, if it "
            "holds them"
        )
    place = _place_of_ids(str(path), header, id_column, shown_columns(header))
    columns = list(zip(*(row for _, row in rows), strict=True))
    return _table(str(path), header, columns, place, lambda row: f"line {rows[row][0]}")


def attributes_of_arrow(rows: Any, origin: str, id_column: str | None) -> AttributeTable:
    """Build a table of attributes of a table of Arrow, without row numbers that pandas has stored.

    Args:
        rows: The table, with a row per node (public).
        origin: Place that an error names.
        id_column: Column of the node ids; by default the only one with a name such as ``id``.
    """
    header = [str(name) for name in rows.column_names]
    kept = [k for k, name in enumerate(header) if not re.fullmatch(r"__index_level_\d+__", name)]
    names = [header[k] for k in kept]
    place = _place_of_ids(origin, names, id_column)
    columns = [rows.column(k) for k in kept]
    return _table(origin, names, [_cells_of_arrow(column) for column in columns], place, _row)


def _cells_of_arrow(column: Any) -> Sequence[Any]:
    """Return an array where the type is one of numbers, and a list of values else.

    A gap is NaN among floats. Whole numbers with gaps are a list, as floats would lose digits; a whole
    number has the same text in both.
    """
    kind = str(column.type)
    if _NUMBERS.match(kind) and ("int" not in kind or not column.null_count):
        numbers: Sequence[Any] = column.to_numpy()
        return numbers
    return list(column.to_pylist())


def _of_frame(frame: object, id_column: str | None) -> AttributeTable:
    if not isinstance(frame, Table):
        raise GraphFormatError(
            f"{_ORIGIN}: an object of type {type(frame).__name__}\n"
            "expected the path of a table, or a table with named columns such as a DataFrame"
        )
    labels = list(frame.columns)
    header = [str(label) for label in labels]
    place = _place_of_ids(_ORIGIN, header, id_column)
    table = _table(_ORIGIN, header, [_cells(frame[label]) for label in labels], place, _row)
    return table._replace(is_exact=False)


def _row(row: int) -> str:
    return f"row {row} (from 0)"


def _cells(column: Any) -> Sequence[Any]:
    """Return an array of numbers where the column is one, and a list of values else."""
    cells: Any = column_cells(column)
    if cells.dtype.kind in "iuf":
        return cells
    return list(np.asarray(cells if cells.dtype == object else column, dtype=object).tolist())


def _place_of_ids(
    origin: str, header: Sequence[str], id_column: str | None, shown: str | None = None
) -> int:
    """Return the place of the column of ids; the first row of a text may be one of cells."""
    shown = f"\nthe columns are {', '.join(header)[:100]}" if shown is None else shown
    if len(set(header)) < len(header):
        raise GraphFormatError(f"{origin}: two columns have one name{shown}")
    if len(header) < 2 and [*header] != [id_column]:
        raise GraphFormatError(
            f"{origin}: one column{shown}\nexpected ids and attributes in columns"
        )
    if id_column is not None and id_column in header:
        return header.index(id_column)
    if id_column is None and (place := place_of_ids(header)) is not None:
        return place
    problem = "which column holds the ids?" if id_column is None else f"no column {id_column!r}"
    raise GraphFormatError(
        f"{origin}: {problem}{shown}\n"
        "name it as the first row does: nodes.column (--data.nodes.column NAME)"
    )


def _table(
    origin: str,
    header: Sequence[str],
    columns: Sequence[Sequence[Any]],
    place: int,
    place_of: Callable[[int], str],
) -> AttributeTable:
    """Build a table; refuse ids that are missing or repeated."""
    ids, first_row = columns[place], dict[str, int]()
    for row, cell in enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids):
        if isinstance(cell, float | np.floating) and abs(float(cell)) > LARGEST_WHOLE:
            raise GraphFormatError(
                f"{origin}, {place_of(row)}: an id that is a float above {LARGEST_WHOLE:,.0f}\n"
                "expected ids that are text or whole numbers: floats have lost digits"
            )
        name = name_of(cell).strip()
        if is_missing(name) or name in first_row:
            first = f"its id was on {place_of(first_row[name])}" if name in first_row else ""
            raise GraphFormatError(
                f"{origin}, {place_of(row)}: {first or 'no id'}\nexpected one row per node"
            )
        first_row[name] = row
    others = {name: columns[i] for i, name in enumerate(header) if i != place}
    return AttributeTable(origin, list(first_row), others)
