"""Edge lists: text files with one edge per line, from plain numbers to tables in CSV."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.edge_columns import (
    EXPECTED,
    HEADER_OR_EDGE,
    NAME_COLUMNS,
    SEPARATORS,
    VALUE,
    Columns,
    check_konect_header,
    find_columns,
    first_row,
    read_text,
    recognized_header,
    refuse_line,
    refuse_missing,
    split_line,
    text_rows,
    without_line,
    without_missing,
)
from lightning_dpg.formats.integer_lists import read_integers
from lightning_dpg.formats.transfer_columns import (
    Cells,
    EdgeValues,
    TransferColumns,
    kept_rows,
    read_values,
)
from lightning_dpg.graph.node_names import GraphFormatError, is_missing, natural_key
from lightning_dpg.graph.pair_space import space_of


class EdgeLines(NamedTuple):
    """Names and edges of an edge list (private)."""

    names: list[str]
    """Names in natural order."""
    pairs: NDArray[np.int64]
    """Both ends of the edge of each line, as positions in ``names``, shape ``(L, 2)``."""
    form: str
    """Summary of the separator and the columns."""
    is_symmetric: bool
    """Whether the file itself says that its links have no direction."""
    is_bipartite: bool = False
    """Whether the file itself says that its two columns have a numbering each."""
    others: tuple[str, ...] = ()
    """Columns that were not read."""
    values: EdgeValues | None = None
    """Amounts and times of the lines, if they are read."""
    header: tuple[str, str] | None = None
    """Names of the two columns of ids, if the file has a header."""


class _Lines(NamedTuple):
    """Names in natural order, and the lines that hold edges."""

    names: list[str]
    pairs: NDArray[np.int64]
    numbers: NDArray[np.int64]
    """Number of each line, from 0 on."""
    num_missing: int
    """Number of lines without an id, which are left out."""
    values: EdgeValues | None


def read_edge_lines(
    path: Path,
    *,
    undirected: bool = False,
    keep_gaps: bool = False,
    nodes: Sequence[str] | None = None,
    columns: tuple[str, str] | None = None,
    drop_missing: bool = False,
    transfers: TransferColumns | None = None,
) -> EdgeLines:
    """Read an edge list.

    Args:
        path: The file, compressed by gzip or not.
        undirected: Whether to accept a KONECT header that calls the links directed, or the graph
            bipartite.
        keep_gaps: Whether the names are all numbers from 0 to the largest one.
        nodes: Names of all nodes in natural order; ids that are not among them are refused.
        columns: Names or numbers, from 1 on, of the columns that hold the two ids of an edge.
        drop_missing: Whether to drop lines without an id instead of refusing them.
        transfers: Columns of amounts and times, if they are read. Lines that are no transfer then
            are left out.
    """
    content = read_text(path)
    konect = check_konect_header(path, content, undirected)
    line, first = first_row(path, content)
    asked = [] if transfers is None else transfers.names
    where = find_columns(path, content, line, first, columns, asked)
    if where.header is None and (where.are_given or nodes is not None):
        where = _with_header(path, line, split_line(first, where.separator), where, nodes)
    read = partial(
        EdgeLines,
        form=str(where),
        is_symmetric=konect == "sym",
        is_bipartite=konect == "bip",
        others=where.others,
    )
    if where.header is not None:
        content = without_line(content, line)
    numbers = None
    if transfers is None and (where.first, where.second) == (0, 1) and where.separator in " \t,":
        numbers = read_integers(path, content, where, keep_gaps)
    if numbers is None:
        may_be_header = where.header is None and not where.are_given and nodes is None
        found = _read_cells(path, content, where, drop_missing, transfers, may_be_header)
        ids, pairs, lines = found.names, found.pairs, found.numbers
        read = partial(read, form=without_missing(str(where), found.num_missing))
        read = partial(read, values=found.values, header=where.header)
    else:
        values, lines = numbers
        if keep_gaps:
            names = [str(i) for i in range(int(values.max()) + 1)]
            return read(names, values.astype(np.int64))
        distinct, inverse = np.unique(values.ravel(), return_inverse=True)
        ids, pairs = [str(i) for i in distinct.tolist()], inverse.reshape(-1, 2)
    if nodes is None:
        return read(ids, pairs)
    number = {name: i for i, name in enumerate(nodes)}
    numbered = np.array([number.get(name, -1) for name in ids])[pairs]
    outside = np.argwhere(numbered < 0)
    if len(outside):
        row, end = outside[0]
        place = f"line {lines[row] + 1}, column {(where.first, where.second)[end] + 1}"
        raise GraphFormatError(
            f"{path}: ids of edges that are not among the {len(nodes):,} ids of nodes: "
            f"{len(outside):,}, the first in {place}\nexpected ids of the node list only\n"
            "add the id to the list, or leave the line out; the rows of nodes.attributes are the\n"
            "list unless nodes.ids (--nodes FILE) is set, which may hold ids without a row"
        )
    return read(list(nodes), numbered)


def _with_header(
    path: Path, line: int, cells: Sequence[str], where: Columns, nodes: Sequence[str] | None
) -> Columns:
    """Decide by the first row and the public nodes alone whether the row is a header."""
    if len(cells) <= max(where.first, where.second):
        return where
    pair = cells[where.first], cells[where.second]
    if any(is_missing(cell) or re.search(r"[0-9]", cell) for cell in pair):
        return where
    if nodes is None:
        refuse_line(path, line, "a header that is known, or ids with digits", HEADER_OR_EDGE)
    return where if {*pair} & {*nodes} else where._replace(header=pair)


def _read_cells(
    path: Path,
    content: bytes,
    where: Columns,
    drop_missing: bool,
    transfers: TransferColumns | None,
    may_be_header: bool,
) -> _Lines:
    """Read the lines of a file that holds names, or amounts and times that are read."""
    positions: dict[str, int] = {}
    pairs, lines, missing_cells = [], [], []
    cells: list[list[str]] = []  # of amounts and times
    for line, row in text_rows(path, content, where.separator, others=where.other_separators):
        pair = _names_of(path, line, row, where)
        if any(map(is_missing, pair)):
            missing_cells.append((line, where.second if is_missing(pair[1]) else where.first))
            continue
        pairs.append([positions.setdefault(name, len(positions)) for name in pair])
        lines.append(line)
        if where.values:
            cells.append([row[place] for place in where.values])
    if missing_cells:
        line, column = missing_cells[0]
        first, rows = f"in line {line + 1}, column {column + 1}", len(pairs) + len(missing_cells)
        refuse_missing(path, len(missing_cells), rows, first, drop=drop_missing)
    if may_be_header and _begins_like_header(list(positions), pairs):
        expected = "ids with numbers, as on all other lines, or a header"
        refuse_line(path, lines[0], expected, HEADER_OR_EDGE)
    if not pairs:
        raise GraphFormatError(f"{path}: no line behind the header\nexpected {EXPECTED}")
    first_seen = list(positions)
    names = sorted(first_seen, key=natural_key)
    position = {name: i for i, name in enumerate(names)}
    numbers = np.array([position[name] for name in first_seen])
    ends = numbers[np.array(pairs, dtype=np.int64)]
    whole = _Lines(names, ends, np.array(lines), len(missing_cells), None)
    return whole if transfers is None else _with_values(path, whole, cells, transfers)


def _with_values(
    path: Path, lines: _Lines, cells: Sequence[Sequence[str]], transfers: TransferColumns
) -> _Lines:
    """Read amounts and times, and leave out lines that are no transfer."""
    columns = zip(transfers.names, zip(*cells, strict=True), strict=True)
    values, keep = read_values(
        transfers,
        {name: Cells(column) for name, column in columns},
        lambda row: f"{path}, line {lines.numbers[row] + 1}",
        str(path),
    )
    names, pairs = kept_rows(lines.names, lines.pairs, keep)
    return lines._replace(names=names, pairs=pairs, numbers=lines.numbers[keep], values=values)


def _begins_like_header(names: Sequence[str], pairs: Sequence[Sequence[int]]) -> bool:
    """Return whether the first line holds words and all others numbers or names with digits."""
    if len(pairs) < 3 or list(pairs[0]) != [0, 1] or any(min(pair) < 2 for pair in pairs[1:]):
        return False  # a header's words occur nowhere else
    return any(
        all(re.search(kind, name) for name in names[2:])
        and not any(re.search(kind, name) for name in names[:2])
        for kind in (r"[0-9]", r"^[0-9]+$")
    )


def _names_of(path: Path, line: int, row: Sequence[str], where: Columns) -> tuple[str, str]:
    """Return the two node ids of a line."""
    separator = SEPARATORS[where.separator]
    is_ragged = len(row) != where.width if where.separator != " " else len(row) < 2
    if is_ragged or len(row) <= max(where.first, where.second, *where.values):
        some = "spaces" if where.separator == " " else f"a {separator}"
        expected = f"two node ids, separated by {some}"
        if where.width > 2:
            expected = f"{where.width} columns, separated by {some}, as in the first line"
        way_out = 'correct the line, put names with separators into "quotes", or begin it with #'
        refuse_line(path, line, expected, way_out)
    pair = row[where.first], row[where.second]
    if where.width > 2 and not where.are_given and where.header is None:
        column = next((k for k, name in enumerate(pair, 1) if VALUE.fullmatch(name)), None)
        if column is not None:
            expected = f"node ids in the first two columns; column {column} is an amount or a date"
            refuse_line(path, line, expected, NAME_COLUMNS)
    return pair


def check_edge_list_names(names: Sequence[str]) -> None:
    """Refuse node names that no line of an edge list can hold.

    Raises:
        Refusal: Naming the first of them.
    """
    bad = next(
        (name for name in names if is_missing(name) or re.search(r"^\s|[\t\r\n\0]|\s$", name)), None
    )
    if bad is not None:
        raise Refusal(f"an edge list cannot hold the node name {bad!r}; write .graphml or .npz")


def write_edges(graph: Data, file: BinaryIO) -> None:
    """Write one line per edge, separated by a tab; names are quoted where a reader needs it."""
    names = graph.node_names
    check_edge_list_names(names)
    # A reader takes a file in which all ids but one are numbers for one with a slip.
    are_numbers = all(re.fullmatch(r"[0-9]{1,19}", name) for name in names)
    cells = [name if are_numbers or _is_plain(name) else _quoted(name) for name in names]
    edges = space_of(graph).edges(graph).tolist()
    if _needs_header([(names[i], names[j]) for i, j in edges]):
        file.write(b"source\ttarget\n")
    file.writelines(f"{cells[i]}\t{cells[j]}\n".encode() for i, j in edges)


def _is_plain(name: str) -> bool:
    """Return whether a name reads the same without quotes and is no number."""
    is_text = re.fullmatch(r"""[^\[{<#%"\s][^"\s]*( [^"\s]+)*""", name) is not None
    return is_text and re.match(r"-?[0-9]+([ ,]|$)", name) is None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _needs_header(pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether a reader would take the first edge for a header."""
    if not pairs:
        return False
    positions: dict[str, int] = {}
    numbers = [[positions.setdefault(name, len(positions)) for name in pair] for pair in pairs]
    return recognized_header(pairs[0]) is not None or _begins_like_header(list(positions), numbers)
