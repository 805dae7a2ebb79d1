"""Edges in tables, arrays and lists of pairs: two ids per row, as on the lines of an edge list."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NoReturn, Protocol, runtime_checkable
from uuid import UUID

import numpy as np
import torch
from numpy.typing import NDArray

from lightning_dpg.formats.conversion import (
    GraphReading,
    read_edges,
    with_transfers,
    without_values,
)
from lightning_dpg.formats.edge_columns import (
    NAME_COLUMNS,
    chosen_columns,
    refuse_missing,
    shown,
    value_columns,
    without_missing,
)
from lightning_dpg.formats.transfer_columns import Cells, TransferColumns, kept_rows, read_values
from lightning_dpg.graph.node_names import GraphFormatError, is_missing

LARGEST_WHOLE = 2.0**53 - 1
"""Floats up to this one stand for one whole number each."""


@runtime_checkable
class Table(Protocol):
    """A table with named columns, such as a DataFrame of pandas or polars."""

    @property
    def columns(self) -> Iterable[Any]:
        """Labels of the columns."""

    def __getitem__(self, label: Any, /) -> Any:
        """Return a column by its label."""


def read_table(
    table: Table,
    *,
    undirected: bool = False,
    columns: tuple[str, str] | None = None,
    drop_missing: bool = False,
    transfers: TransferColumns | None = None,
) -> GraphReading:
    """Read a table with an edge per row.

    Args:
        table: The table (private).
        undirected: Whether to drop the directions of a directed graph instead of refusing it.
        columns: Labels of the two columns of ids, or their numbers from 1 on. By default columns
            with names such as ``source`` and ``target``, or all columns if there are two.
        drop_missing: Whether to drop rows without an id instead of refusing them.
        transfers: Columns of amounts and times, if they are read. Rows that are no transfer then are
            left out.
    """
    labels = list(table.columns)
    names = [str(label) for label in labels]
    first, second = chosen_columns("table", names, columns)
    if names.count(names[first]) > 1 or names.count(names[second]) > 1:
        raise GraphFormatError(f"table: two columns have one name\nthe columns are {shown(names)}")
    sources, targets = (column_cells(table[labels[end]]) for end in (first, second))
    form = f"table; columns {names[first]!r} and {names[second]!r} of {len(names)}"
    asked = [] if transfers is None else transfers.names
    places = value_columns("table", names, asked, (first, second))
    ids, pairs, there = _numbered(sources, targets, "table", drop_missing)
    values = None
    if transfers is not None:
        cells = {
            name: _cells(table[labels[place]], there)
            for name, place in zip(asked, places, strict=True)
        }
        rows = np.flatnonzero(there)
        values, keep = read_values(
            transfers, cells, lambda row: f"table, row {rows[row]} (from 0)", "table"
        )
        ids, kept = kept_rows(ids, pairs.numpy(), keep)
        pairs = torch.from_numpy(kept)
    for label in (labels[first], labels[second]):
        if columns is None and isinstance(label, str) and label in ids:
            raise GraphFormatError(
                f"table: {label!r} is the name of a column and an id in the table, so the first "
                "edge was read as a header\nread the file with header=None, or pass its path\n"
                f"if it is a name, {NAME_COLUMNS}"
            )
    form = without_missing(form, int((~there).sum()))
    reading = read_edges(pairs, ids, "table", form, undirected=undirected)
    if isinstance(labels[first], str):
        reading = reading._replace(header=(names[first], names[second]))
    read = {first, second, *places}
    others = [name for place, name in enumerate(names) if place not in read]
    return with_transfers(without_values(reading, others), values)


def column_cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column of a table: a gap takes no digits from the others.

    Libraries make floats of whole numbers and of categories if one cell is missing.
    """
    cells = np.asarray(column)
    if cells.dtype.kind != "f" or getattr(getattr(column, "dtype", cells.dtype), "kind", "") == "f":
        return cells
    exact = np.empty(len(cells), dtype=object)
    exact[:] = list(column)
    return exact


def _cells(column: Any, there: NDArray[np.bool_]) -> Cells:
    """Return some cells of a column; moments with a zone, in whatever library, are those of UTC."""
    kind = getattr(column, "dtype", None)
    if getattr(kind, "tz", None) is None and getattr(kind, "time_zone", None) is None:
        return Cells(column_cells(column)[there])
    return Cells(np.asarray(column, dtype="datetime64[ns]")[there], are_instants=True)


def read_edge_array(
    edges: NDArray[Any], *, undirected: bool = False, drop_missing: bool = False
) -> GraphReading:
    """Read an array of shape ``(M, 2)`` with an edge per row, of whole numbers or text."""
    ids, pairs, there = _numbered(edges[:, 0], edges[:, 1], "array", drop_missing)
    form = without_missing("array of edges", int((~there).sum()))
    return read_edges(pairs, ids, "array", form, undirected=undirected)


def read_pairs(
    pairs: Sequence[Any], *, undirected: bool = False, drop_missing: bool = False
) -> GraphReading:
    """Read a list of pairs of ids."""
    for row, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple, np.ndarray)) or len(pair) != 2:
            _refuse("list", row, pair, "pairs of ids, such as ('a', 'b')")
    ends = np.empty((len(pairs), 2), dtype=object)
    for row, pair in enumerate(pairs):
        ends[row] = list(pair)
    ids, positions, there = _numbered(ends[:, 0], ends[:, 1], "list", drop_missing)
    form = without_missing("list of pairs", int((~there).sum()))
    return read_edges(positions, ids, "list", form, undirected=undirected)


def _numbered(
    first: NDArray[Any], second: NDArray[Any], origin: str, drop_missing: bool
) -> tuple[list[str], torch.Tensor, NDArray[np.bool_]]:
    """Return the ids that occur, both ends of each row with two ids, and which rows these are."""
    if not len(first):
        raise GraphFormatError(f"{origin}: no rows\nexpected two node ids per row")
    ends = [_whole_numbers(end) for end in (first, second)]
    if ends[0] is not None and ends[1] is not None:
        values = np.stack([ends[0], ends[1]], axis=1)
        distinct, positions = np.unique(values.ravel(), return_inverse=True)
        ids = [str(i) for i in distinct.tolist()]
        everywhere = np.ones(len(first), dtype=bool)
        return ids, torch.from_numpy(positions.reshape(-1, 2)), everywhere
    numbers: dict[str, int] = {}
    rows, missing_rows = [], []
    for row, cells in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if any(is_missing(str(cell)) for cell in cells):
            missing_rows.append(row)
            continue
        rows.append([numbers.setdefault(_name(cell, origin, row), len(numbers)) for cell in cells])
    if missing_rows:
        place = f"row {missing_rows[0]} (from 0)"
        refuse_missing(origin, len(missing_rows), len(first), place, drop=drop_missing)
    there = np.ones(len(first), dtype=bool)
    there[missing_rows] = False
    return list(numbers), torch.tensor(rows), there


def _whole_numbers(column: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return a column of whole numbers of 0 or more; None for any other column.

    Columns of pandas that had a missing value, and arrays of ``loadtxt``, hold them as floats.
    """
    kind = column.dtype.kind
    if kind == "f":
        with np.errstate(invalid="ignore"):
            is_whole = (column == np.floor(column)) & (column <= LARGEST_WHOLE)
        kind = "i" if bool(is_whole.all()) else kind
    if kind not in "iu" or column.min() < 0 or column.max() > np.iinfo(np.int64).max:
        return None
    return column.astype(np.int64)


def _name(cell: object, origin: str, row: int) -> str:
    """Return the id in a cell as text."""
    if isinstance(cell, float) and cell.is_integer() and 0 <= cell <= LARGEST_WHOLE:
        return str(int(cell))
    if isinstance(cell, (str, UUID)):
        return str(cell).strip()
    if isinstance(cell, Integral) and not isinstance(cell, bool) and int(cell) >= 0:
        return str(int(cell))
    _refuse(origin, row, cell, "ids that are text or whole numbers of 0 or more")


def _refuse(origin: str, row: int, value: object, expected: str) -> NoReturn:
    """Refuse a row, counted from 0, whose content is private."""
    raise GraphFormatError(
        f"{origin}, row {row} (from 0): a value of type {type(value).__name__}\nexpected {expected}"
    )
