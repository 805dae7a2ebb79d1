"""Tables of attributes of nodes, in files of CSV, TSV or Parquet, or as DataFrames."""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lightning_dpg.formats.edge_tables import Table
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import ID_HEADERS, GraphFormatError, is_missing, user_path

_NAMES = {"name", "label"}
"""Headers of ids that are those of an attribute where there is another one."""
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


def read_attributes(source: str | Path | Table, id_column: str | None = None) -> AttributeTable:
    """Read a public table with a row of attributes per node.

    Args:
        source: Path of a file that ends with ``.csv``, ``.tsv`` or ``.txt``, also with ``.gz``, or
            with ``.parquet``; or a DataFrame.
        id_column: Column of the node ids; by default the only one with a name such as ``id``.

    Raises:
        GraphFormatError: If it cannot be read, or if an id is missing or repeated.
    """
    if not isinstance(source, (str, Path)):
        return _of_frame(source, "nodes.attributes", id_column)
    path = user_path(source)
    if not path.is_file():
        raise GraphFormatError(
            f"nodes.attributes {path}: {'a folder' if path.is_dir() else 'no such file'}\n"
            "expected a table in CSV, TSV or Parquet with a row per node"
        )
    if path.suffix == ".parquet":
        return _of_frame(_read_parquet(path), str(path), id_column)
    if Path(path.name.removesuffix(".gz")).suffix not in _TEXT_SUFFIXES:
        raise GraphFormatError(
            f"nodes.attributes {path}: unknown format {path.suffix or path.name!r}\n"
            f"expected {', '.join(_TEXT_SUFFIXES)} or .parquet"
        )
    return _read_text_table(path, id_column)


def _read_text_table(path: Path, id_column: str | None) -> AttributeTable:
    text = _decoded(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = next((mark for mark in "\t;|," if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    numbered = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                numbered.append((reader.line_num, [cell.strip() for cell in row]))
    except csv.Error as error:
        raise GraphFormatError(f"{path}, line {reader.line_num}: {error}") from error
    if len(numbered) < 2:
        raise GraphFormatError(f"{path}: no rows\nexpected names of columns, then a row per node")
    (_, header), *rows = numbered
    place = _place_of_ids(str(path), header, id_column)
    for line, row in rows:
        if len(row) != len(header):
            raise GraphFormatError(
                f"{path}, line {line}: {len(row)} cells\n"
                f"expected {len(header)}, as in the first row"
            )
    columns = list(zip(*(row for _, row in rows), strict=True))
    return _table(str(path), header, columns, place, [f"line {line}" for line, _ in rows])


def _decoded(path: Path) -> str:
    content = path.read_bytes()
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise GraphFormatError(f"{path}: not a text file in UTF-8 ({error})") from error
    if "\0" in text:
        raise GraphFormatError(f"{path}: not a text file\nexpected a table in CSV or TSV")
    return text


def _read_parquet(path: Path) -> Table:
    try:
        import pandas  # optional

        frame: Table = pandas.read_parquet(path)
    except ImportError as error:
        raise GraphFormatError(
            f"{path}: pandas and pyarrow read Parquet, and are not installed\n"
            "pip install pandas pyarrow, or export the table as CSV"
        ) from error
    except (OSError, ValueError) as error:
        problem = str(error).partition("\n")[0][:100]
        raise GraphFormatError(f"{path}: cannot be read ({problem})\nor export as CSV") from error
    return frame


def _of_frame(frame: Table, origin: str, id_column: str | None) -> AttributeTable:
    labels = list(frame.columns)
    header = [str(label) for label in labels]
    place = _place_of_ids(origin, header, id_column)
    columns = [np.asarray(frame[label], dtype=object).tolist() for label in labels]
    rows = [f"row {row} (from 0)" for row in range(len(columns[place]))]
    return _table(origin, header, columns, place, rows)


def _place_of_ids(origin: str, header: Sequence[str], id_column: str | None) -> int:
    """Return the place of the column of ids."""
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise GraphFormatError(f"{origin}: two columns have the name {twice!r}")
    if len(header) < 2:
        raise GraphFormatError(
            f"{origin}: one column ({header[0][:60]!r})\nexpected ids and attributes in columns"
        )
    if id_column is not None and id_column in header:
        return header.index(id_column)
    ids = [i for i, name in enumerate(header) if name.casefold() in ID_HEADERS]
    likely = [i for i in ids if header[i].casefold() not in _NAMES] or ids
    if id_column is None and len(likely) == 1:
        return likely[0]
    problem = "which column holds the ids?" if id_column is None else f"no column {id_column!r}"
    raise GraphFormatError(
        f"{origin}: {problem}\nthe columns are {', '.join(header)[:100]}\n"
        "name it: nodes.column (--data.nodes.column NAME)"
    )


def _table(
    origin: str,
    header: Sequence[str],
    columns: Sequence[Sequence[Any]],
    place: int,
    rows: Sequence[str],
) -> AttributeTable:
    """Build a table; refuse ids that are missing or repeated."""
    first_row: dict[str, str] = {}
    for cell, row in zip(columns[place], rows, strict=True):
        name = _id(cell)
        if is_missing(name) or name in first_row:
            problem = f"id {name!r} was on {first_row[name]}" if name in first_row else "no id"
            raise GraphFormatError(f"{origin}, {row}: {problem}\nexpected one row per node")
        first_row[name] = row
    others = {name: columns[i] for i, name in enumerate(header) if i != place}
    return AttributeTable(origin, list(first_row), others)


def _id(cell: Any) -> str:
    """Return an id as text; columns of numbers with a gap hold whole ones as floats."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()
