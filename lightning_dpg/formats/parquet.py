"""Edges and attributes of nodes as Parquet tables, where pyarrow is installed."""

import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.formats.conversion import (
    GraphReading,
    read_edges,
    with_transfers,
    without_values,
)
from lightning_dpg.formats.edge_columns import (
    chosen_columns,
    refuse_missing,
    value_columns,
    without_missing,
)
from lightning_dpg.formats.transfer_columns import Cells, TransferColumns, kept_rows, read_values
from lightning_dpg.graph.attribute_arrays import read_stored
from lightning_dpg.graph.attributes import LABELS
from lightning_dpg.graph.node_names import MISSING_NAMES, GraphFormatError, NoEdgesError
from lightning_dpg.graph.pair_space import space_of

COLUMNS = ("source", "target")
ROWS_PER_GROUP = 2**20
_SPARSE = 4  # ids up to so many times their number are places of a table
INSTALL = "pip install 'lightning_dpg[tables]'"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def has_parquet() -> bool:
    """Return whether Parquet can be written and read."""
    return importlib.util.find_spec("pyarrow") is not None


def check_parquet() -> None:
    """Refuse Parquet where it cannot be written.

    Raises:
        MisconfigurationException: If pyarrow is not installed.
    """
    if not has_parquet():
        raise MisconfigurationException(
            "formats: parquet is written by pyarrow, which is not installed\n"
            f"{INSTALL}, or leave parquet out of formats"
        )


def write_parquet(graph: Data, file: BinaryIO) -> None:
    """Write the edges of a graph, see :func:`write_edge_table`."""
    edges = space_of(graph).edges(graph)
    write_edge_table([edges], graph.node_names, file)


def write_edge_table(blocks: Iterable[Tensor], names: Sequence[str], file: BinaryIO) -> None:
    """Write columns ``source`` and ``target``; nodes without edges are lost.

    The columns hold names as text, or whole numbers if all names are such.

    Args:
        blocks: Edges of shape ``(P, 2)`` in the numbers of the nodes; each block is written before
            the next one is asked for, in row groups of :data:`ROWS_PER_GROUP`.
        names: Names of all nodes.
        file: Opened file.
    """
    import pyarrow  # optional
    from pyarrow import parquet

    if all(map(_NUMBER.fullmatch, names)):
        labels = pyarrow.array(np.array(names, dtype=np.int64))
    else:
        labels = pyarrow.array(names, type=pyarrow.string())
    schema = pyarrow.schema([(column, labels.type) for column in COLUMNS])
    with parquet.ParquetWriter(file, schema) as writer:
        for block in blocks:
            for start in range(0, len(block), ROWS_PER_GROUP):
                rows = block[start : start + ROWS_PER_GROUP]
                ends = [labels.take(pyarrow.array(end.numpy())) for end in rows.T]
                writer.write_table(pyarrow.Table.from_arrays(ends, schema=schema))


def write_attribute_table(names: list[str], arrays: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a column ``node`` of names, and a column for each attribute and for the classes.

    Args:
        names: Names of all nodes.
        arrays: Their attributes as in NetGAN's archives.
        file: Opened file.
    """
    import pyarrow  # optional
    from pyarrow import parquet

    matrix, columns, labels = read_stored(arrays)
    table: dict[str, Any] = {"node": pyarrow.array(names, type=pyarrow.string())}
    if matrix is not None:
        dense = matrix.toarray() if isinstance(matrix, csr_array) else matrix
        table |= {name: np.ascontiguousarray(dense[:, i]) for i, name in enumerate(columns or [])}
    if labels is not None:
        table[LABELS] = labels
    parquet.write_table(pyarrow.table(table), file)


def read_parquet(
    path: Path,
    *,
    undirected: bool = False,
    columns: tuple[str, str] | None = None,
    drop_missing: bool = False,
    transfers: TransferColumns | None = None,
) -> GraphReading:
    """Read a Parquet file with an edge per row.

    Args:
        path: The file (private).
        undirected: Whether to drop the directions of a directed graph instead of refusing it.
        columns: Names of the two columns of ids, or their numbers from 1 on. By default columns
            with names such as ``source`` and ``target``, or all columns if there are two.
        drop_missing: Whether to drop rows without an id instead of refusing them.
        transfers: Columns of amounts and times, if they are read. Rows that are no transfer then are
            left out.

    Raises:
        GraphFormatError: If the file is damaged, or if pyarrow is not installed.
    """
    if not has_parquet():
        raise GraphFormatError(f"{path}: pyarrow reads Parquet, and is not installed\n{INSTALL}")
    from pyarrow import ArrowException, parquet  # optional

    try:
        with parquet.ParquetFile(path) as opened:
            every = opened.schema_arrow.names
            chosen = chosen_columns(str(path), every, columns)
            asked = [] if transfers is None else transfers.names
            places = value_columns(str(path), every, asked, chosen)
            table = opened.read([every[place] for place in (*chosen, *places)])
    except (ArrowException, OSError) as error:
        raise GraphFormatError(
            f"{path}: not a whole Parquet file\n"
            "get the file again, or write it again: it is damaged or cut short"
        ) from error
    read = {*chosen, *places}
    return read_arrow(
        table,
        path,
        "Parquet",
        undirected=undirected,
        columns=(every[chosen[0]], every[chosen[1]]),
        drop_missing=drop_missing,
        transfers=transfers,
        others=[name for place, name in enumerate(every) if place not in read],
    )


def read_arrow(
    table: Any,
    origin: str | Path,
    form: str,
    *,
    undirected: bool = False,
    columns: tuple[str, str],
    drop_missing: bool = False,
    transfers: TransferColumns | None = None,
    others: Sequence[str] = (),
) -> GraphReading:
    """Read a table of Arrow with an edge per row, whatever it was read from.

    Args:
        table: The table (private), with the columns of ids and those of ``transfers``.
        origin: Place that an error names.
        form: What the table was read from, for the owner.
        undirected: Whether to drop the directions of a directed graph instead of refusing it.
        columns: Names of the two columns of ids.
        drop_missing: Whether to drop rows without an id instead of refusing them.
        transfers: Columns of amounts and times, if they are read.
        others: Columns that are not read.
    """
    first, second = columns
    ends, there = _without_nulls(origin, [table.column(first), table.column(second)], drop_missing)
    names, pairs = _numbered(origin, ends)
    values = None
    if transfers is not None:
        rows = np.flatnonzero(there)
        cells = {
            name: _cells(table.column(place), there)
            for name, place in zip(transfers.names, table.column_names[2:], strict=True)
        }
        values, keep = read_values(
            transfers, cells, lambda row: f"{origin}, row {rows[row]} (from 0)", str(origin)
        )
        names, kept = kept_rows(names, pairs.numpy(), keep)
        pairs = torch.from_numpy(kept)
    width = len(table.column_names) + len(others)
    form = without_missing(
        f"{form}; columns {first!r} and {second!r} of {width}", int((~there).sum())
    )
    reading = read_edges(pairs, names, origin, form, undirected=undirected)
    reading = reading._replace(header=(first, second))
    return with_transfers(without_values(reading, others), values)


def _cells(column: Any, there: NDArray[np.bool_]) -> Cells:
    """Return some cells of a column: numbers, days and moments as arrays, all others as texts."""
    import pyarrow  # optional

    kind = column.type
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind):
        values = column.to_numpy()[there]
        are_instants = pyarrow.types.is_timestamp(kind) and kind.tz is not None
        return Cells(values.astype("datetime64[us]"), are_instants)
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return Cells(column.to_numpy()[there])
    cells = column.to_pylist()
    return Cells(["" if cells[row] is None else str(cells[row]) for row in np.flatnonzero(there)])


def _without_nulls(
    origin: str | Path, ends: list[Any], drop: bool
) -> tuple[list[Any], NDArray[np.bool_]]:
    """Return the rows with both ids, and which rows these are; text may be empty or NaN."""
    from pyarrow import compute  # optional

    there = compute.and_(*(_is_there(end) for end in ends))
    num_missing = len(there) - (compute.sum(there).as_py() or 0)
    if not num_missing:
        return ends, np.ones(len(there), dtype=bool)
    place = f"row {compute.index(there, False).as_py()} (from 0)"
    refuse_missing(origin, num_missing, len(there), place, drop=drop)
    return [end.filter(there) for end in ends], np.asarray(there).astype(bool)


def _is_there(end: Any) -> Any:
    """Return which ids of a column are not missing."""
    import pyarrow  # optional
    from pyarrow import compute

    there = compute.is_valid(end)
    if not _is_text(end.type):
        return there
    texts = compute.utf8_lower(compute.utf8_trim_whitespace(compute.cast(end, pyarrow.string())))
    is_word = compute.is_in(texts, value_set=pyarrow.array(sorted(MISSING_NAMES)))
    return compute.and_(there, compute.invert(is_word))


def _numbered(origin: str | Path, ends: list[Any]) -> tuple[list[str], Tensor]:
    """Return the ids that occur, and both ends of each row as positions among them."""
    import pyarrow  # optional
    from pyarrow import compute

    if not len(ends[0]):
        raise NoEdgesError(f"{origin}: no rows\nexpected two node ids per row")
    kinds = {str(end.type) for end in ends}
    if all(pyarrow.types.is_integer(end.type) for end in ends):
        values = np.stack([end.to_numpy().astype(np.int64) for end in ends], axis=1)
        if values.min() < 0:  # also what 64 bits with a sign cannot hold
            raise GraphFormatError(
                f"{origin}: an id below 0, or of 2^63 or more\nexpected ids of 0 or more, or text"
            )
        distinct, positions = _positions(values)
        return [str(i) for i in distinct.tolist()], torch.from_numpy(positions)
    if any(not _is_text(end.type) for end in ends):
        raise GraphFormatError(
            f"{origin}: columns of type {' and '.join(sorted(kinds))}\n"
            "expected ids that are text or whole numbers, of one type at both ends"
        )
    texts = [compute.utf8_trim_whitespace(compute.cast(end, pyarrow.string())) for end in ends]
    coded = pyarrow.chunked_array([*texts[0].chunks, *texts[1].chunks]).combine_chunks()
    coded = coded.dictionary_encode()
    positions = coded.indices.to_numpy().astype(np.int64).reshape(2, -1).T
    return coded.dictionary.to_pylist(), torch.from_numpy(np.ascontiguousarray(positions))


def _positions(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different ids in ascending order, and the position of each among them."""
    largest = int(ids.max())
    if int(ids.min()) < 0 or largest >= _SPARSE * ids.size:
        distinct, positions = np.unique(ids, return_inverse=True)
        return distinct, positions.reshape(ids.shape)
    # Ids that are nearly the numbers from 0 on are places of a table: many need no sort.
    is_there = np.zeros(largest + 1, dtype=bool)
    is_there[ids] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[ids]


def _is_text(kind: Any) -> bool:
    """Return whether a type is text, also where values are stored once."""
    import pyarrow  # optional

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
