"""Edges in tables, arrays and lists of pairs: two ids per row, as on the lines of an edge list."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow
from numpy.typing import NDArray

from lightning_dpg.formats.arrow_edges import column_of, edges_of, edges_of_table
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.formats.edge_columns import NAME_COLUMNS, choose, shown
from lightning_dpg.graph.node_names import GraphFormatError


@runtime_checkable
class Table(Protocol):
    """A table with named columns, such as a DataFrame of pandas or polars."""

    @property
    def columns(self) -> Iterable[Any]:
        """Labels of the columns."""

    def __getitem__(self, label: Any, /) -> Any:
        """Return a column by its label."""


@runtime_checkable
class ExportsArrow(Protocol):
    """A table that hands over its columns in Arrow: of pyarrow, polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow."""


def read_table(table: Any, columns: Columns = Columns()) -> GraphReading:
    """Read a table with an edge per row.

    Args:
        table: The table (private): of Arrow, or with the methods of a DataFrame.
        columns: Its columns that are read.
    """
    arrow = of_arrow(table)
    labels = list(table.columns if arrow is None else arrow.column_names)
    chosen = choose("table", [str(label) for label in labels], columns)
    if any(list(chosen.names).count(name) > 1 for name in chosen.ends):
        raise GraphFormatError(
            f"table: two columns have one name\nthe columns are {shown(chosen.names)}"
        )
    if arrow is None:
        cells = [column_of(column_cells(table[labels[end]]), "table") for end in chosen.pair]
        cells += [_values(table[labels[place]]) for place in chosen.values]
    else:
        cells = [arrow.column(place) for place in chosen.read]
    are_named = isinstance(labels[chosen.pair[0]], str)
    reading = edges_of_table(cells, chosen, columns, "table", "table", are_named=are_named)
    if (
        columns.pair is None
        and are_named
        and not {*chosen.ends}.isdisjoint(reading.nodes.node_names)
    ):
        raise GraphFormatError(
            "table: the name of a column is an id in the table, so the first edge was read as a header\n"
            f"read the file with header=None, or pass its path\nif it is a name, {NAME_COLUMNS}"
        )
    return reading


def of_arrow(table: object) -> Any:
    """Return a table that exports Arrow as one of Arrow; None for pandas, whose objects are read one by one."""
    is_frame = type(table).__module__.partition(".")[0] == "pandas"
    return pyarrow.table(table) if isinstance(table, ExportsArrow) and not is_frame else None


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


def _values(column: Any) -> Any:
    """Return a column of amounts or times; moments with a zone, in whatever library, are those of UTC."""
    kind = getattr(column, "dtype", None)
    if getattr(kind, "tz", None) is None and getattr(kind, "time_zone", None) is None:
        cells = column_cells(column)
        if cells.dtype.kind in "iufM":
            return pyarrow.array(cells)
        # A number in single precision has the digits that it has as a column of numbers.
        texts = [str(float(c) if isinstance(c, np.floating) else c) for c in cells]
        return pyarrow.array(texts, pyarrow.string())
    instants = np.asarray(column, dtype="datetime64[ns]").astype("datetime64[us]")
    return pyarrow.array(instants).cast(pyarrow.timestamp("us", "UTC"))


def read_edge_array(edges: NDArray[Any], columns: Columns) -> GraphReading:
    """Read an array of shape ``(M, 2)`` with an edge per row, of whole numbers or text."""
    cells = [column_of(end, "array") for end in edges.T]
    return edges_of(cells, "array", "array of edges", columns)


def read_pairs(pairs: Sequence[Any], columns: Columns = Columns()) -> GraphReading:
    """Read a list of pairs of ids."""
    for row, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple, np.ndarray)) or len(pair) != 2:
            raise GraphFormatError(
                f"list, row {row} (from 0): a value of type {type(pair).__name__}\n"
                "expected pairs of ids, such as ('a', 'b')"
            )
    ends = np.empty((len(pairs), 2), dtype=object)
    for row, pair in enumerate(pairs):
        ends[row] = list(pair)
    cells = [column_of(end, "list") for end in ends.T]
    return edges_of(cells, "list", "list of pairs", columns)
