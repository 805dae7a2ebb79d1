"""The one way from rows to a graph: two columns of ids in Arrow, whatever they were read from.

Each row is read by itself. What looks at all rows can refuse them, and never changes how one is read.
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import compute

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import (
    GraphReading,
    NodeSet,
    checked,
    with_transfers,
    without_values,
)
from lightning_dpg.formats.edge_columns import HEADER_OR_EDGE, Chosen, refuse_missing
from lightning_dpg.formats.transfer_columns import Cells, kept_rows, read_values
from lightning_dpg.graph.graph import index_type
from lightning_dpg.graph.node_names import MISSING_NAMES, GraphFormatError, NoEdgesError

LARGEST_WHOLE = 2.0**53 - 1
"""Floats up to this one stand for one whole number each."""
_SPARSE = 4  # ids up to so many times their number are places of a table

Told = TypeVar("Told")
Place = Callable[[int], str]
"""Say where a row is, counted from 0: ``, line 3``."""


def edges_of_table(
    cells: list[Any],
    chosen: Chosen,
    columns: Columns,
    origin: str | Path,
    form: str,
    *,
    are_named: bool = True,
) -> GraphReading:
    """Build a graph of the columns of a table that are read, see :func:`edges_of`.

    Args:
        cells: The columns: both ids, then amounts and times. The list is emptied.
        chosen: Which columns these are.
        columns: What was asked for.
        origin: Place that an error names.
        form: What the table was read from, for the owner.
        are_named: Whether the columns have names, and not numbers.
    """
    return edges_of(
        cells,
        origin,
        f"{form}; {chosen}",
        columns,
        header=chosen.ends if are_named else None,
        others=chosen.others,
    )


def edges_of(
    cells: list[Any],
    origin: str | Path,
    form: str,
    columns: Columns,
    *,
    header: tuple[str, str] | None = None,
    others: Sequence[str] = (),
    keep_gaps: bool = False,
    is_symmetric: bool = False,
    place: Place = lambda row: f", row {row} (from 0)",
    is_quoted: Callable[[int], bool] = lambda row: False,
) -> GraphReading:
    """Build a graph of two columns of ids and the columns of amounts and times.

    Args:
        cells: Columns of Arrow: both ids, then amounts and times. The list is emptied, since large
            tables are needed no more.
        origin: Place that an error names.
        form: Form of the source for the owner.
        columns: What was asked for. With amounts or times, rows that are no transfer are left out.
        header: Names of the two columns of ids, if they have names.
        others: Columns that are not read.
        keep_gaps: Whether all numbers from 0 to the largest id are nodes.
        is_symmetric: Whether the source says that its links have no direction.
        place: Says where a row is.
        is_quoted: Says whether a row has quotes, which make a word of a number.

    Raises:
        GraphFormatError: If a row has an id of another kind, if rows do not agree, or if there are none.
    """
    if not len(cells[0]):
        raise NoEdgesError(f"{origin}: no rows\nexpected two node ids per row")
    cells[:] = [c if isinstance(c, pa.ChunkedArray) else pa.chunked_array([c]) for c in cells]
    ends = [_ids(column, origin, place) for column in cells[:2]]
    there = _with_both(ends, cells[:2], origin, place, columns.drops_missing)
    given = [_cells(column, there) for column in cells[2:]]
    cells.clear()
    rows = None if there.all() else np.flatnonzero(there)
    if rows is not None:
        form = f"{form}; {len(there) - len(rows):,} rows without an id"
        ends = [end.filter(pa.array(there)) for end in ends]
        place, is_quoted = _of_rows(place, rows), _of_rows(is_quoted, rows)
    ends = _of_one_kind(ends)
    if pa.types.is_string(ends[0].type):
        _check_agreement(ends, header, origin, place, is_quoted)
    names, pairs = _numbered(ends, keep_gaps)
    values = None
    if given:
        values, keep = read_values(columns, given, lambda row: f"{origin}{place(row)}", str(origin))
        names, pairs = kept_rows(names, pairs, keep)
        place = _of_rows(place, np.flatnonzero(keep))
    node_set = NodeSet.LARGEST if keep_gaps else NodeSet.LINES
    reading = checked(torch.from_numpy(pairs), names, origin, form, node_set=node_set)
    reading = reading._replace(header=header, place=place)
    if is_symmetric:  # what the rows hold never decides it: one row could change it
        reading = reading._replace(has_direction=False)
    return with_transfers(without_values(reading, others), values)


def _of_rows(told: Callable[[int], Told], rows: NDArray[np.int64]) -> Callable[[int], Told]:
    """Return what is told of all rows for some of them."""
    return lambda row: told(int(rows[row]))


def column_of(cells: Any, origin: str) -> Any:
    """Return a column of Arrow of the cells of any column: numbers as they are, else ids as texts.

    Args:
        cells: Array of numpy, or a column of a table; objects are read one by one.
        origin: Place that an error names.

    Raises:
        GraphFormatError: If a cell is no id.
    """
    array = np.asarray(cells)
    if array.dtype.kind in "iuf":
        return pa.array(array)
    whole = cells.tolist() if isinstance(cells, np.ndarray) else list(cells)
    return pa.array([_text(cell, origin, row) for row, cell in enumerate(whole)], pa.string())


def _text(cell: object, origin: str | Path, row: int) -> str | None:
    """Return the id in a cell as text, None for a missing one."""
    if isinstance(cell, float) and cell.is_integer() and 0 <= cell <= LARGEST_WHOLE:
        return str(int(cell))
    if isinstance(cell, (str, UUID)):
        return str(cell)
    if isinstance(cell, Integral) and not isinstance(cell, bool) and int(cell) >= 0:
        return str(int(cell))
    if str(cell).casefold() in MISSING_NAMES:
        return None
    raise GraphFormatError(
        f"{origin}, row {row} (from 0): a value of type {type(cell).__name__}\n"
        "expected ids that are text or whole numbers of 0 or more"
    )


def _ids(column: Any, origin: str | Path, place: Place) -> Any:
    """Return ids as whole numbers of 64 bits or as texts without spaces around them, null if missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_integer(kind):
        bounds = compute.min_max(column)
        if (bounds["min"].as_py() or 0) < 0:
            row = compute.index(compute.less(column, 0), True).as_py()
            raise GraphFormatError(
                f"{origin}{place(row)}: an id below 0\nexpected ids of 0 or more"
            )
        is_long = (bounds["max"].as_py() or 0) >= 2**63
        return column.cast(pa.string() if is_long else pa.int64())
    if pa.types.is_floating(kind):
        return _whole_floats(column.cast(pa.float64()), origin, place)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return _texts(column.cast(pa.string()), origin, place)
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return _texts(column.cast(pa.string()), origin, place)
    cells = [_text(cell, origin, row) for row, cell in enumerate(column.to_pylist())]
    return _texts(pa.chunked_array([pa.array(cells, pa.string())]), origin, place)


def _whole_floats(column: Any, origin: str | Path, place: Place) -> Any:
    """Return floats as whole numbers: columns with a gap hold these as floats."""
    values = column.to_numpy()
    there = ~np.isnan(values)
    is_whole = (values == np.floor(values)) & (values >= 0) & (values <= LARGEST_WHOLE)
    odd = np.flatnonzero(there & ~is_whole)
    if len(odd):
        raise GraphFormatError(
            f"{origin}{place(int(odd[0]))}: a value of type float that is no whole number, or too large "
            "for its digits\nexpected ids that are text or whole numbers of 0 or more"
        )
    numbers = pa.array(np.where(there, values, 0).astype(np.int64), mask=~there)
    return pa.chunked_array([numbers])


def _texts(column: Any, origin: str | Path, place: Place) -> Any:
    """Return texts without spaces around them; a whole number written as a float is that number."""
    if (numbers := _plain_numbers(column)) is not None:
        return numbers
    texts = compute.utf8_trim_whitespace(column)
    if compute.any(compute.match_substring_regex(texts, r"^[0-9]+\.[0-9]+$")).as_py():
        odd = compute.match_substring_regex(
            texts, r"^[0-9]+\.[0-9]*[1-9][0-9]*$|^[0-9]{16,}\.[0-9]*$"
        )
        is_float = compute.match_substring_regex(texts, r"^[0-9]+\.0+$")
        if compute.any(odd).as_py() and compute.any(is_float).as_py():
            row = compute.index(odd, True).as_py()
            raise GraphFormatError(
                f"{origin}{place(row)}: an id that is a number with decimals, beside whole numbers "
                "written with them\nexpected ids that are text or whole numbers: write them without "
                "a point"
            )
        texts = compute.replace_substring_regex(texts, r"^([0-9]+)\.0+$", r"\1")
    missing = pa.array(sorted(MISSING_NAMES))
    is_missing = compute.is_in(compute.utf8_lower(texts), value_set=missing)
    if not compute.any(is_missing).as_py():
        return texts
    return compute.if_else(is_missing, pa.scalar(None, pa.string()), texts)


def _plain_numbers(texts: Any) -> Any:
    """Return texts as whole numbers if each is one as Python writes it; None for all others."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    begins = texts.filter(compute.starts_with(texts, "0"))
    is_plain = not compute.any(compute.less(numbers, 0)).as_py() and not (
        compute.any(compute.starts_with(texts, "-")).as_py()
    )
    return numbers if is_plain and compute.all(compute.equal(begins, "0")).as_py() else None


def _with_both(
    ends: list[Any], columns: list[Any], origin: str | Path, place: Place, drop: bool
) -> NDArray[np.bool_]:
    """Return which rows have both ids; refuse the others, unless they are to be dropped.

    A word such as ``null`` among ids that are words may be a name: no option drops it then.
    """
    there = np.asarray(compute.and_(*(compute.is_valid(end) for end in ends))).astype(bool)
    absent = np.flatnonzero(~there)
    if len(absent):
        row = int(absent[0])
        column = next((k for k, end in enumerate(ends, 1) if not end[row].is_valid), 0)
        refuse_missing(
            origin,
            len(absent),
            len(there),
            f"in{place(row).removeprefix(',')}, column {column}",
            drop=drop,
            may_be_names=not drop and _hold_words(ends, columns),
        )
    return there


def _hold_words(ends: list[Any], columns: list[Any]) -> bool:
    """Return whether a missing id is a word, such as ``null``, and an id without digits is another."""
    for end, column in zip(ends, columns, strict=True):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        words = column.filter(compute.is_null(end)).drop_null()
        if compute.any(compute.not_equal(compute.utf8_trim_whitespace(words), "")).as_py() and (
            compute.any(compute.match_substring_regex(end, r"^[^0-9]+$")).as_py()
        ):
            return True
    return False


def _of_one_kind(ends: list[Any]) -> list[Any]:
    """Return both columns as whole numbers, if all ids are, or as texts."""
    if all(pa.types.is_integer(end.type) for end in ends):
        return ends
    texts = [end.cast(pa.string()) for end in ends]
    plain = r"^(0|[1-9][0-9]{0,17})$"
    if all(compute.all(compute.match_substring_regex(text, plain)).as_py() for text in texts):
        return [text.cast(pa.int64()) for text in texts]
    return texts


def _check_agreement(
    ends: list[Any],
    header: tuple[str, str] | None,
    origin: str | Path,
    place: Place,
    is_quoted: Callable[[int], bool],
) -> None:
    """Refuse a row that is the header once more, and one of words among ids that are numbers."""
    if header is not None:
        names = (name.strip() for name in header)
        repeats = compute.and_(*(compute.equal(e, n) for e, n in zip(ends, names, strict=True)))
        if compute.any(repeats).as_py():
            row = compute.index(repeats, True).as_py()
            raise GraphFormatError(
                f"{origin}{place(row)}: the header once more, or an edge that was read as a header\n"
                "expected it above the rows only: leave the line out, or put names of the columns\n"
                "above all edges (a table of Python: read the file with header=None)"
            )
    whole = [compute.match_substring_regex(end, "^-?[0-9]+$") for end in ends]
    if all(compute.all(each).as_py() for each in whole):
        below = compute.or_(*(compute.starts_with(end, "-") for end in ends))
        row = compute.index(below, True).as_py()
        if row >= 0 and not is_quoted(row):
            raise GraphFormatError(
                f"{origin}{place(row)}: an id below 0\nexpected ids of 0 or more"
            )
    numbers = [compute.match_substring_regex(end, "^[0-9]+$") for end in ends]
    odd = np.flatnonzero(~np.asarray(compute.and_(*numbers)).astype(bool))
    if not len(odd) or len(ends[0]) - len(odd) < 2 or is_quoted(int(odd[0])):
        return
    first = [end.take(pa.array(odd[:1]))[0] for end in ends]
    same = compute.and_(*(compute.equal(e, one) for e, one in zip(ends, first, strict=True)))
    if compute.sum(same).as_py() == len(odd):
        raise GraphFormatError(
            f"{origin}{place(int(odd[0]))}: expected two whole numbers, as on the other lines\n"
            + (
                HEADER_OR_EDGE
                if odd[0] == 0 and header is None
                else "correct the line, or leave it out"
            )
        )


def _numbered(ends: list[Any], keep_gaps: bool) -> tuple[list[str], NDArray[Any]]:
    """Return the ids that occur, and both ends of each row as positions among them, ``(L, 2)``."""
    if pa.types.is_integer(ends[0].type):
        ids = np.empty((len(ends[0]), 2), dtype=np.int64)
        for column in (0, 1):
            ids[:, column] = ends[column].to_numpy()
        ends.clear()  # memory: also what the caller holds
        pa.default_memory_pool().release_unused()
        if keep_gaps:
            return [str(number) for number in range(int(ids.max()) + 1)], ids
        distinct, positions = _positions(ids)
        return [str(number) for number in distinct.tolist()], positions
    texts = pa.chunked_array([chunk for end in ends for chunk in end.chunks], pa.string())
    coded = texts.dictionary_encode().unify_dictionaries().combine_chunks()
    positions = coded.indices.to_numpy().astype(np.int64).reshape(2, -1).T
    return coded.dictionary.to_pylist(), np.ascontiguousarray(positions)


def _positions(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the different ids in ascending order, and the position of each among them."""
    largest = int(ids.max())
    if largest >= _SPARSE * ids.size:
        distinct, positions = np.unique(ids, return_inverse=True)
        return distinct, positions.reshape(ids.shape).astype(index_type(len(distinct)))
    # Ids that are nearly the numbers from 0 on are places of a table: many need no sort.
    is_there = np.zeros(largest + 1, dtype=bool)
    is_there[ids] = True
    places = np.cumsum(is_there, dtype=index_type(len(is_there))) - 1
    return np.flatnonzero(is_there), places[ids]


def _cells(column: Any, there: NDArray[np.bool_]) -> Cells:
    """Return some cells of a column: numbers, days and moments as arrays, all others as texts."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values = column.to_numpy()[there].astype("datetime64[us]")
        return Cells(values, pa.types.is_timestamp(kind) and kind.tz is not None)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Cells(column.to_numpy()[there])
    cells = column.to_pylist()
    return Cells(["" if cells[row] is None else str(cells[row]) for row in np.flatnonzero(there)])
