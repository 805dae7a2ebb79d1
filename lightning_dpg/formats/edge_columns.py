"""The two id columns of an edge list, and errors that name one of its lines."""

import gzip
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from lightning_dpg.graph.node_names import CLOSED, WAY_TO_CLOSE, GraphFormatError, line_cells

EXPECTED = "two node ids per line, separated by space, tab or comma"
SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "space"}
"""Separators by precedence: the first one that the first line holds, else spaces."""
HEADERS = [
    ("source", "target"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("sender", "receiver"),
    ("payer", "payee"),
    ("caller", "callee"),
]
"""Words of a header for the two ends of an edge."""
NAME_COLUMNS = (
    "name the columns, or give their numbers: columns.source and columns.target\n"
    "(--source NAME --target NAME)"
)
HEADER_OR_EDGE = (
    "if it is a header, name the columns: columns.source and columns.target\n"
    "(--source NAME --target NAME); if it is an edge, put a line with names of all columns above it"
)
# An amount or a date: no node id, unless the user names the column.
VALUE = re.compile(r"[-+]?\d*[.]\d+([eE][-+]?\d+)?|\d{4}-\d\d-\d\d([T ].*)?|\d+:\d\d(:\d\d.*)?")


_HEAD_LINES = 100
"""Lines of a file among which the first row is looked for before the file is read."""


TEXT_SUFFIXES = (".edges", ".edgelist", ".txt", ".csv", ".tsv", ".dat")


class Columns(NamedTuple):
    """Cells of each line that are the two node ids."""

    separator: str
    first: int
    second: int
    width: int
    header: tuple[str, str] | None
    are_given: bool
    others: tuple[str, ...] = ()
    """Columns that are not read, by their names or numbers."""
    values: tuple[int, ...] = ()
    """Columns of amounts and times that are read, in the order in which they were asked for."""

    @property
    def other_separators(self) -> str:
        """Marks that no line may hold where a row, and no header, says what separates cells."""
        # Tabs among spaces are spaces.
        return (
            ""
            if self.header
            else {",": "\t;|", "|": "\t;", ";": "\t", " ": ";|,"}.get(self.separator, "")
        )

    def __str__(self) -> str:
        """Summarize for the owner how the file was read."""
        header = f"; header {self.header[0]!r}, {self.header[1]!r}" if self.header else ""
        return (
            f"{SEPARATORS[self.separator]}; columns {self.first + 1} and {self.second + 1} "
            f"of {self.width}{header}"
        )


def is_edge_list(name: str) -> bool:
    """Return whether a file name is that of an edge list; KONECT uses ``out.NAME``."""
    name = name.lower().removesuffix(".gz")
    return name.endswith(TEXT_SUFFIXES) or name.startswith("out.")


def read_text(path: Path, expected: str = EXPECTED) -> bytes:
    """Read a text file, compressed or not, with uniform line ends."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise GraphFormatError(f"{path}: damaged gzip file ({error})") from error
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in content:
        raise GraphFormatError(f"{path}: not a text file\nexpected {expected}")
    return _uniform(content)


def _uniform(content: bytes) -> bytes:
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return content


def text_rows(
    path: Path, content: bytes, separator: str, comments: str = "#%", others: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line that is neither blank nor a comment.

    Each line is split by itself: a cell that goes on in the next line would take other rows away.

    Args:
        path: The file, which an error names.
        content: Its content with uniform line ends.
        separator: Mark between cells; a space stands for spaces and tabs.
        comments: Marks, of which one begins a comment.
        others: Marks that would have been the separator if a line that holds them were the first.

    Raises:
        GraphFormatError: If a quote does not close on its line, if a line has another separator, or if
            the text is not in UTF-8.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        odd = content.count(b"\n", 0, error.start)
        refuse_line(path, odd, "text in UTF-8", "save the file as UTF-8")
    for number, line in enumerate(text.split("\n")):
        if not (start := line.lstrip()) or start[0] in comments:
            continue
        row = split_line(line, separator)
        if not row:
            refuse_line(path, number, CLOSED, WAY_TO_CLOSE)
        if others and any(mark in line and len(split_line(line, mark)) > 1 for mark in others):
            expected = f"no other separator than a {SEPARATORS[separator]}, as in the first line"
            refuse_line(path, number, expected, "put the cell in quotes, or names of columns first")
        yield number, row


def csv_head(path: Path) -> tuple[int, str, list[str]]:
    """Return the number of the first row of a table in CSV, from 0 on, its separator and cells.

    Args:
        path: The file, of which the first lines are read.

    Raises:
        GraphFormatError: If there is no such row, or if a quote in it does not close.
    """
    line, text = first_row(path, _head(path))
    mark = _separator(text)
    separator = "," if mark == " " else mark
    if not (cells := split_line(text, separator)):
        refuse_line(path, line, CLOSED, WAY_TO_CLOSE)
    return line, separator, cells


def check_lines(path: Path, separator: str) -> None:
    """Refuse a table in CSV with a cell that goes on in the next line, also in a column nobody reads.

    Args:
        path: The file, compressed if its name ends with ``.gz``; it is read line by line.
        separator: Mark between cells.

    Raises:
        GraphFormatError: If a quote does not close on its line, or if lines end in several ways.
    """
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file):
                if '"' in line and not split_line(line.rstrip("\n"), separator):
                    refuse_line(path, number, CLOSED, WAY_TO_CLOSE)
            ends = file.newlines
    except (OSError, EOFError, zlib.error) as error:
        raise GraphFormatError(f"{path}: damaged file ({error})") from error
    if isinstance(ends, tuple):
        raise GraphFormatError(
            f"{path}: line ends of several kinds\nexpected one of them, and no bare CR in a cell"
        )


def check_konect_header(path: Path, content: bytes, undirected: bool) -> str:
    """Return the kind in a KONECT header, such as ``% sym weighted``: sym, asym, bip, or nothing.

    Raises:
        GraphFormatError: If it is directed or bipartite, and directions are not to be dropped.
    """
    match = re.match(rb"%\s*(asym|sym|bip)\s", content)
    kind = match[1].decode() if match else ""
    if kind == "asym" and not undirected:
        raise directed(path)
    if kind == "bip" and not undirected:
        raise bipartite(path)
    return kind


def bipartite(origin: str | Path) -> GraphFormatError:
    """Build the error that refuses a bipartite graph with a numbering of each side."""
    return GraphFormatError(
        f"{origin}: the graph is bipartite ('% bip'), and each side has a numbering of its own\n"
        "set kind to bipartite (--kind bipartite)"
    )


def directed(origin: str | Path) -> GraphFormatError:
    """Build the error that refuses a directed graph."""
    return GraphFormatError(
        f"{origin}: the graph is directed\nexpected an undirected graph\n"
        "set kind to directed (--kind directed), or\n"
        "set undirected=True (--undirected) to drop the directions"
    )


def refuse_line(
    path: Path,
    line: int,
    expected: str,
    way_out: str = "correct the line, or begin it with # to skip it",
) -> NoReturn:
    """Refuse a file for one of its lines, counted from 0, whose content is private."""
    raise GraphFormatError(f"{path}, line {line + 1}: expected {expected}\n{way_out}")


def refuse_missing(
    origin: str | Path, num_missing: int, rows: int, first: str, *, drop: bool
) -> None:
    """Refuse rows without an id, unless they are to be dropped and leave others.

    Args:
        origin: Place that the error names.
        num_missing: Number of rows without an id.
        rows: Number of all rows.
        first: Where the first one is, such as ``line 3, column 2``.
        drop: Whether the rows are dropped.
    """
    if num_missing and num_missing == rows:
        raise GraphFormatError(f"{origin}: each row lacks an id\nexpected two node ids per row")
    if num_missing and not drop:
        raise GraphFormatError(
            f"{origin}: {num_missing:,} of {rows:,} rows lack an id, the first is {first}\n"
            "expected two node ids per row\n"
            "set columns.missing_ids to drop (--missing-ids drop) to leave these rows "
            "out"
        )


def without_missing(form: str, num_missing: int) -> str:
    """Add the number of rows that were dropped to a summary for the owner (private)."""
    return f"{form}; {num_missing:,} rows without an id" if num_missing else form


def first_row(path: Path, content: bytes) -> tuple[int, str]:
    """Find the first line that is neither blank nor a comment; return its number and text."""
    match = re.search(rb"^[^\S\n]*[^\s#%].*$", content, re.MULTILINE)
    if match is None:
        raise GraphFormatError(f"{path}: empty\nexpected {EXPECTED}")
    line = content.count(b"\n", 0, match.start())
    text = match.group().decode(errors="replace").strip()
    if text[0] in "[{<":
        kind = "XML" if text[0] == "<" else "JSON"
        way_out = "convert it to an edge list, GraphML or npz; quote names that begin so"
        refuse_line(path, line, f"{EXPECTED}, not {kind}", way_out)
    return line, text


def check_header(path: Path, columns: tuple[str, str] | None, values: Sequence[str] = ()) -> None:
    """Refuse columns that are not in the first line of an edge list, which is all that is read.

    Args:
        path: The file.
        columns: Names or numbers of the two columns, or None to recognize them.
        values: Names or numbers of the columns of amounts and times that are asked for.

    Raises:
        GraphFormatError: If they are not there; the message is that of the reader.
    """
    content = _head(path)
    if re.search(rb"^[^\S\n]*[^\s#%]", content, re.MULTILINE):
        find_columns(path, content, *first_row(path, content), columns, values)


def column_names(path: Path) -> list[str]:
    """Return the cells of the first row of an edge list: the names of its columns, if it has any.

    Args:
        path: The file, of which the first lines are read.
    """
    content = _head(path)
    if not re.search(rb"^[^\S\n]*[^\s#%]", content, re.MULTILINE):
        return []
    _, text = first_row(path, content)
    return split_line(text, _separator(text))


def _head(path: Path) -> bytes:
    """Return the first lines of a file; nothing of one that only its reader can refuse."""
    try:
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rb") as file:
            head = b"".join(itertools.islice(file, _HEAD_LINES))
    except (OSError, EOFError, zlib.error):
        return b""
    return _uniform(head.removeprefix(b"\xef\xbb\xbf"))


def _separator(text: str) -> str:
    """Return the separator of a row."""
    return next((mark for mark in "\t;|," if len(split_line(text, mark)) > 1), " ")


def without_line(content: bytes, line: int) -> bytes:
    """Turn a line of the content into a comment: the other lines keep their numbers."""
    start = 0
    for _ in range(line):
        start = content.index(b"\n", start) + 1
    return content[:start] + b"#" + content[start:]


def split_line(text: str, separator: str) -> list[str]:
    """Split a line into cells; return none if its quotes do not match."""
    if separator == " ":
        text = text.replace("\t", " ")
    return line_cells(text.strip(" "), separator)  # spaces around a line would be empty cells


def find_columns(
    path: Path,
    content: bytes,
    line: int,
    text: str,
    columns: tuple[str, str] | None,
    values: Sequence[str] = (),
) -> Columns:
    """Find separator and columns, from the first row and from the user's columns.

    Args:
        path: The file.
        content: Its content.
        line: Number of the first row, from 0 on.
        text: The first row.
        columns: Names or numbers of the columns of ids, or None to recognize them.
        values: Names or numbers of the columns of amounts and times that are asked for.
    """
    separator = _separator(text)
    cells = split_line(text, separator)
    width = len(cells)
    if columns is None:
        header = recognized_header(cells) or (0, 1)
        is_header = recognized_header(cells) is not None
        pair = header
    elif all(re.fullmatch(r"[0-9]+", column) for column in columns):
        pair = (int(columns[0]) - 1, int(columns[1]) - 1)
        is_header = recognized_header(cells) is not None
    else:
        pair, is_header = named_columns(f"{path}, line {line + 1}", cells, columns), True
    check_columns(path, pair, max(width, 2))
    are_names = any(not value.isdecimal() for value in values)
    is_header = is_header or are_names
    values_at = value_columns(f"{path}, line {line + 1}", cells, values, pair)
    header_cells = (cells[pair[0]], cells[pair[1]]) if is_header else None
    names = cells if is_header else [f"column {number + 1}" for number in range(width)]
    read = {*pair, *values_at}
    others = tuple(name for number, name in enumerate(names) if number not in read)
    are_given = columns is not None or are_names
    return Columns(separator, *pair, width, header_cells, are_given, others, values_at)


def value_columns(
    origin: str, names: Sequence[str], values: Sequence[str], pair: tuple[int, int]
) -> tuple[int, ...]:
    """Find columns of amounts and times; names that are numbers come before numbers of columns.

    Args:
        origin: Place that errors name.
        names: Names of all columns.
        values: Names or numbers of the columns that are asked for.
        pair: The columns of the ids.

    Raises:
        GraphFormatError: If there is no such column, if it is asked for twice or holds ids, or if two
            columns have its name.
    """
    found: list[int] = []
    for value in values:
        place = names.index(value) if value in names else -1
        if place < 0 and value.isdecimal() and 0 < int(value) <= len(names):
            place = int(value) - 1
        problem = "no column" if place < 0 else ""
        if place in (*pair, *found):
            problem = "ids, or amounts and times, in one column"
        if list(names).count(value) > 1:
            problem = "two columns have the name"
        if problem:
            raise GraphFormatError(
                f"{origin}: {problem} {value!r}\nthe columns are {shown(names)}\n"
                "name the columns, or give their numbers: columns.weight and columns.time\n"
                "(--weight NAME --time NAME)"
            )
        found.append(place)
    return tuple(found)


def chosen_columns(
    origin: str, names: Sequence[str], columns: tuple[str, str] | None
) -> tuple[int, int]:
    """Choose the columns of the ids; names that are numbers come before numbers of columns.

    Args:
        origin: Place that errors name.
        names: Names of all columns.
        columns: Names or numbers of the two columns, or None to recognize them.

    Raises:
        GraphFormatError: If there are no such columns, or none are recognized.
    """
    if columns is None:
        pair = recognized_header(names) or ((0, 1) if len(names) == 2 else None)
        if pair is None:
            raise GraphFormatError(
                f"{origin}: {len(names)} columns, and no two with names such as source and target\n"
                f"the columns are {shown(names)}\n{NAME_COLUMNS}"
            )
        return pair
    are_numbers = all(column.isdecimal() for column in columns)
    if are_numbers and not all(column in names for column in columns):
        pair = int(columns[0]) - 1, int(columns[1]) - 1
    else:
        pair = named_columns(origin, names, columns)
    check_columns(origin, pair, len(names))
    return pair


def named_columns(origin: str, names: Sequence[str], columns: tuple[str, str]) -> tuple[int, int]:
    """Find two columns by their names."""
    missing_columns = [column for column in columns if column not in names]
    if missing_columns:
        raise GraphFormatError(
            f"{origin}: no column {missing_columns[0]!r}\nthe columns are {shown(names)}\n{NAME_COLUMNS}"
        )
    return names.index(columns[0]), names.index(columns[1])


def check_columns(origin: str | Path, pair: tuple[int, int], width: int) -> None:
    """Refuse columns that are the same, or not there."""
    if pair[0] == pair[1] or not 0 <= min(pair) <= max(pair) < width:
        raise GraphFormatError(
            f"{origin}: columns {pair[0] + 1} and {pair[1] + 1} of {width}\n"
            f"expected two different columns\n{NAME_COLUMNS}"
        )


def shown(names: Sequence[str]) -> str:
    """Return names of columns for an error."""
    return ", ".join(repr(name) for name in names)[:200]


def recognized_header(cells: Sequence[str]) -> tuple[int, int] | None:
    """Find the columns of a header such as ``from_account, to_account``."""
    words = [[w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", cell)] for cell in cells]
    pairs = [
        (i, j)
        for i, one in enumerate(words)
        for j, other in enumerate(words)
        for source, target in HEADERS
        if source in one
        and target in other
        and sorted({*one} - {source}) == sorted({*other} - {target})
    ]
    return pairs[0] if len(pairs) == 1 else None
