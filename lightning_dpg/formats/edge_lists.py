"""Edge lists: text files with one edge per line, from plain numbers to tables in CSV."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import compute, csv
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.arrow_edges import edges_of
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.formats.edge_columns import (
    HEADER_OR_EDGE,
    HEADERS,
    NAME_COLUMNS,
    VALUE,
    Chosen,
    TextColumns,
    check_konect_header,
    find_columns,
    recognized_header,
)
from lightning_dpg.formats.text_rows import (
    COMMENTS,
    TextForm,
    agreed_separator,
    first_row,
    line_separators,
    read_text,
    refuse_line,
    row_lines,
    split_line,
    text_rows,
)
from lightning_dpg.graph.node_names import (
    CLOSED,
    WAY_TO_CLOSE,
    GraphFormatError,
    NoEdgesError,
    is_missing,
)
from lightning_dpg.graph.pair_space import space_of

_WORD = r"^[^\W\d][^\d]*$"


def read_edge_list(
    path: Path,
    columns: Columns,
    *,
    undirected: bool = False,
    keep_gaps: bool = False,
    nodes: Sequence[str] | None = None,
) -> GraphReading:
    """Read an edge list.

    Args:
        path: The file, compressed by gzip or not.
        columns: Its columns that are read, and what is said of its form.
        undirected: Whether to accept a KONECT header that calls the links directed, or the graph
            bipartite.
        keep_gaps: Whether the nodes are all numbers from 0 to the largest one.
        nodes: Names of all nodes (public), which tell whether the first row is a header.
    """
    content = read_text(path)
    konect = check_konect_header(path, content, undirected)
    where, start = find_columns(path, content, columns)
    form = columns.text
    comments = COMMENTS if form.comments is None else form.comments
    if where.header is None and form.header is None and nodes is not None:
        where, start = _by_nodes(content, comments, start, where, nodes)
    may_ask = where.header is None and not where.are_given
    read = where.chosen.read
    if may_ask and where.width > 2:
        read.append(2)
    cells = _quick(content, comments, start, where, read) or _by_line(
        path, content, comments, start, where, read
    )

    def line_of(row: int) -> tuple[int, str]:
        return next(itertools.islice(row_lines(content, comments, start), row, None))

    skipped = _check_comments(path, content, comments, start, where, form, cells[:2])
    if may_ask:
        third = cells.pop() if where.width > 2 else None
        _check_columns(path, content, comments, start, where, cells[:2], third, line_of)
    if where.header is None and form.header is None and nodes is None:
        _check_first_row(path, start, cells[:2], line_of)
    summary = str(where) + (f"; {skipped:,} comments below the first row" if skipped else "")
    reading = edges_of(
        cells,
        path,
        summary,
        columns,
        header=where.header,
        others=where.chosen.others,
        keep_gaps=keep_gaps,
        is_symmetric=konect == "sym",
        place=lambda row: f", line {line_of(row)[0] + 1}",
        is_quoted=lambda row: '"' in line_of(row)[1],
    )
    return reading._replace(numbers_sides=konect == "bip")


def read_text_table(path: Path, names: Sequence[str] | None = None) -> Any:
    """Read all cells of a file of text whose first row holds the names of the columns.

    Args:
        path: The file, compressed by gzip or not. No line is a comment.
        names: Names of all columns, if the first row does not hold them.

    Returns:
        A table of Arrow of texts, null where a cell is empty (private).

    Raises:
        GraphFormatError: If lines do not agree, or if there is none below the first row.
    """
    content = read_text(path)
    line, text, named = first_row(path, content)
    separator = named or (line_separators(text) or ["\t"])[0]
    cells = split_line(text, separator)
    if not cells:
        refuse_line(path, line, CLOSED, WAY_TO_CLOSE)
    start, cells = (line + 1, cells) if names is None else (line, list(names))
    folded = [cell.casefold() for cell in cells]
    names = [
        cell if cell and folded.index(cell.casefold()) == place else f"{cell}_{place}"
        for place, cell in enumerate(cells)
    ]
    where, every = TextColumns(separator, Chosen(names, (0, 0), ()), None, True), range(len(names))
    columns = _quick(content, "", start, where, every) or _by_line(
        path, content, "", start, where, every
    )
    return pa.table(
        [compute.if_else(compute.equal(each, ""), None, each) for each in columns], names
    )


def _by_nodes(
    content: bytes, comments: str, start: int, where: TextColumns, nodes: Sequence[str]
) -> tuple[TextColumns, int]:
    """Decide by the first row and the public nodes alone whether the row is a header."""
    line, text = next(row_lines(content, comments, start))
    cells = split_line(text, where.separator)
    first, second = where.chosen.pair
    if len(cells) <= max(first, second):
        return where, start
    pair = cells[first], cells[second]
    if any(is_missing(cell) or re.search(r"[0-9]", cell) for cell in pair) or {*pair} & {*nodes}:
        return where, start
    return where._replace(header=pair), line + 1


def _quick(
    content: bytes, comments: str, start: int, where: TextColumns, read: Sequence[int]
) -> list[Any] | None:
    """Return some columns as texts if each line is a row without quotes; None for any other file."""
    at = 0
    for _ in range(start):
        at = content.find(b"\n", at) + 1
        if not at:
            return None
    body = content[at:]
    if any(mark in body for mark in (b'"', *(comment.encode() for comment in comments))):
        return None
    odd = (b"\t", b"  ", b"\n ", b" \n")
    if where.separator == " " and (body[:1] == b" " or any(each in body for each in odd)):
        body = re.sub(rb"^ | $", b"", re.sub(rb"[ \t]+", b" ", body), flags=re.MULTILINE)
    names = [str(number) for number in range(where.width)]
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(delimiter=where.separator, quote_char=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[str(place) for place in dict.fromkeys(read)],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:  # lines of unlike length, or none
        return None
    return [table.column(str(place)) for place in read]


def _by_line(
    path: Path, content: bytes, comments: str, start: int, where: TextColumns, read: Sequence[int]
) -> list[Any]:
    """Return some columns as texts; refuse lines that do not agree."""
    columns: list[list[str]] = [[] for _ in read]
    for number, row in text_rows(path, content, where.separator, comments, start, split_line):
        if len(row) != where.width or len(row) < 2:
            refuse_line(
                path,
                number,
                f"{max(where.width, 2)} cells, as in the first row",
                'correct the line, or put names with separators into "quotes"',
            )
        for column, place in zip(columns, read, strict=True):
            column.append(row[place])
    if not columns[0]:
        raise NoEdgesError(f"{path}: no line behind the header\nexpected two node ids per line")
    return [pa.chunked_array([pa.array(column, pa.string())]) for column in columns]


def _check_comments(
    path: Path,
    content: bytes,
    comments: str,
    start: int,
    where: TextColumns,
    form: TextForm,
    ends: Sequence[Any],
) -> int:
    """Return the number of comments below the first row; ask about those that may be rows."""
    if not any(mark.encode() in content for mark in comments):
        return 0
    number = 0
    inside = re.compile(rb"^[ \t]*[" + re.escape(comments.encode()) + rb"].*$", re.MULTILINE)
    first = next(row_lines(content, comments, start), (0, ""))[0]
    for found in inside.finditer(content, _offset(content, first)):
        line, number = found.group().decode().strip(), number + 1
        is_row = line[1:2].strip() and len(split_line(line, where.separator)) == where.width
        if form.comments is None and (is_row or len(line) == 1):
            _ask_about_comments(path, content.count(b"\n", 0, found.start()))
    are_marked = [compute.match_substring_regex(end, r"^\s*[#%]") for end in ends]
    if form.comments is None and any(compute.any(each).as_py() for each in are_marked):
        is_marked = compute.or_(*are_marked).to_pylist()
        rows = zip(row_lines(content, comments, start), is_marked, strict=True)
        for (at, text), may_be_comment in rows:
            if may_be_comment and '"' not in text:
                _ask_about_comments(path, at)
    return number


def _offset(content: bytes, line: int) -> int:
    """Return where a line begins."""
    at = 0
    for _ in range(line):
        at = content.index(b"\n", at) + 1
    return at


def _ask_about_comments(path: Path, line: int) -> None:
    refuse_line(
        path,
        line,
        "ids that do not begin with # or %, which begin comments",
        "say it: columns.comments, none if such lines are rows (--comments none), or the marks of\n"
        "comments (--comments '#')",
    )


def _check_columns(
    path: Path,
    content: bytes,
    comments: str,
    start: int,
    where: TextColumns,
    ends: Sequence[Any],
    third: Any,
    line_of: Any,
) -> None:
    """Refuse rows without a header whose first two columns are not the ends of edges."""
    count = len(ends[0])
    if third is not None:
        for number, end in enumerate(ends, 1):
            values = compute.match_substring_regex(end, VALUE)
            if compute.any(values).as_py():
                line = line_of(compute.index(values, True).as_py())[0]
                expected = "node ids in the first two columns; column {} is an amount or a date"
                refuse_line(path, line, expected.format(number), NAME_COLUMNS)
        is_node = compute.is_in(third, value_set=compute.unique(_joined(ends)))
        are_words = compute.invert(compute.match_substring_regex(third, "[0-9]"))
        if count > 1 and compute.all(compute.and_(is_node, are_words)).as_py():
            _refuse_shape(path, "lists of neighbors", "networkx.read_adjlist")
        if count > 2 and any(len(compute.unique(end)) == 1 for end in ends):
            raise GraphFormatError(
                f"{path}: a column holds the same on all lines, so it may be no node\n"
                f"expected two node ids per line\n{NAME_COLUMNS}"
            )
    if count > 2 and (count <= where.width + 1 or ends[0][0].as_py() == str(count - 1)):
        lines = row_lines(content, comments, start)
        _check_square(path, [split_line(line, where.separator) for _, line in lines])


def _joined(ends: Sequence[Any]) -> Any:
    return pa.chunked_array([chunk for end in ends for chunk in end.chunks], pa.string())


def _check_square(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Refuse a square table: an adjacency matrix, with names of its rows and columns or without."""
    named = [row[1:] for row in rows[1:]]
    for body in (rows, named):
        if len(body) > 1 and all(len(row) == len(body) for row in body):
            is_matrix = all(cell in ("0", "1") for row in body for cell in row)
            if body is named:
                is_matrix |= [row[0] for row in rows[1:]] == list(rows[0][1:])
            elif not is_matrix:
                is_matrix = [list(row) for row in zip(*body, strict=True)] == [
                    *map(list, body)
                ] and all(row[k] in ("0", "0.0") for k, row in enumerate(body))
            if is_matrix:
                _refuse_shape(path, "a square table, as of an adjacency matrix", "numpy.loadtxt")
    if all(cell.isdecimal() for row in rows for cell in row):
        sizes = [int(cell) for cell in rows[0]]
        if sizes[:2] == [len(rows) - 1, sum(map(len, rows[1:])) // 2]:
            _refuse_shape(path, "lists of neighbors as of METIS", "a reader of METIS")


def _refuse_shape(path: Path, shape: str, reader: str) -> None:
    raise GraphFormatError(
        f"{path}: its lines are {shape}\nexpected an edge per line\n"
        f"read it with {reader} and pass the object in Python (dpg.fit), or convert it\n"
        "if they are edges, name the columns: columns.source and columns.target (--source 1 --target 2)"
    )


def _check_first_row(path: Path, start: int, ends: Sequence[Any], line_of: Any) -> None:
    """Ask about a first row of two words, neither of which comes again: a header or an edge."""
    first = [end[0].as_py().strip() for end in ends]
    if len(ends[0]) < 2 or not all(re.match(_WORD, word) for word in first):
        return
    others = compute.utf8_trim_whitespace(_joined([end.slice(1) for end in ends]))
    again = compute.is_in(others, value_set=pa.array(first))
    if not compute.any(again).as_py():
        refuse_line(
            path, line_of(0)[0], "a header that is known, or ids that come again", HEADER_OR_EDGE
        )


def check_edge_list_names(names: Sequence[str]) -> None:
    """Refuse node names that no line of an edge list can hold.

    Raises:
        Refusal: Naming the first of them.
    """
    odd = re.compile(
        r"^\s|[\t\r\n\0]|\s$|^[0-9]+[.]0+$"
    )  # a whole number as a float is read as that
    bad = next((name for name in names if is_missing(name) or odd.search(name)), None)
    if bad is not None:
        raise Refusal(f"an edge list cannot hold the node name {bad!r}; write .graphml or .npz")


def write_edges(graph: Data, file: BinaryIO) -> None:
    """Write one line per edge, separated by a tab.

    Names are quoted, and a header stands above them, where our own reader needs it.
    """
    names = graph.node_names
    check_edge_list_names(names)
    # A reader takes a file in which all ids but one are numbers for one with a slip.
    are_numbers = all(re.fullmatch(r"[0-9]{1,19}", name) for name in names)
    cells = [name if are_numbers or _is_plain(name) else _quoted(name) for name in names]
    edges = space_of(graph).edges(graph).tolist()
    content = _lines(cells, edges)
    try:
        first_row(Path(), content + b"-")
    except GraphFormatError:  # names that look like another format
        content = _lines([_quoted(name) for name in names], edges)
    pairs = [(names[i], names[j]) for i, j in edges]
    if edges and _needs_header(pairs, content):
        header = next(words for words in HEADERS if words not in pairs)
        file.write("{}\t{}\n".format(*header).encode())
    file.write(content)


def _lines(cells: Sequence[str], edges: Sequence[Sequence[int]]) -> bytes:
    return "".join(f"{cells[i]}\t{cells[j]}\n" for i, j in edges).encode()


def _is_plain(name: str) -> bool:
    """Return whether a name reads the same without quotes and is no number."""
    is_text = re.fullmatch(r"""[^\[{(<#%"\s][^"\s]*( [^"\s\[{(]+)*""", name) is not None
    return is_text and re.match(r"-?[0-9]+([ ,.]|$)", name) is None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _needs_header(pairs: Sequence[tuple[str, str]], content: bytes) -> bool:
    """Return whether a reader would take the first edge for a header, or cut a line elsewhere."""
    later = {name for pair in pairs[1:] for name in pair}
    are_words = len(pairs) > 1 and all(re.match(_WORD, name) for name in pairs[0])
    if recognized_header(pairs[0]) is not None or (are_words and later.isdisjoint(pairs[0])):
        return True
    try:
        return agreed_separator(Path(), content, COMMENTS, 0) != "\t"
    except GraphFormatError:
        return True
