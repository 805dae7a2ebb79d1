"""Rows of text files: lines, cells, the separator by agreement of all rows, and files that are no rows.

Each line is split by itself. What looks at all rows refuses, unless more than one row would have to be
another to change the decision: one private row never changes how others are read.
"""

import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.node_names import (
    CLOSED,
    WAY_TO_CLOSE,
    GraphFormatError,
    NoEdgesError,
    line_cells,
)

EXPECTED = "two node ids per line, separated by space, tab or comma"
SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "space"}
"""Separators by precedence where a line can be cut by several; a space stands for spaces and tabs."""
COMMENTS = "#%"
TEXT_SUFFIXES = (".edges", ".edgelist", ".txt", ".csv", ".tsv", ".dat")
_HEAD_LINES = 100
"""Lines of a file that are read to look for its first row before the file is read."""
_OF_EDGES = "\n(another separator: --separator; lists of neighbors: networkx.read_adjlist)"
_TAIL = re.compile(r"[\[({].*[\])}]\s*$")
"""What networkx writes behind the ids of an edge: a dictionary, a list or a tuple."""
_CONTAINERS = {
    rb"%%MatrixMarket": ("MatrixMarket", "scipy.io.mmread"),
    rb"\*[A-Za-z]": ("Pajek", "networkx.read_pajek"),
    rb"p\s+\w+\s+[0-9]+\s+[0-9]+": ("DIMACS", "a reader of DIMACS"),
    rb"[dD][lL]\s+\w+\s*=": ("UCINET", "a reader of UCINET"),
    rb"(strict\s+)?(di)?graph\b.*[\[{]|graph\s*$": ("DOT or GML", "networkx.read_gml"),
    rb"(?i:insert\s+into|create\s+table|copy\s.*\sfrom)\b": ("a dump of SQL", "its database"),
    rb"(?i:@relation)\b": ("ARFF", "scipy.io.arff.loadarff"),
    rb"[\[{]": ("JSON", "pandas.read_json or networkx.node_link_graph"),
    rb"<": ("XML", "networkx.read_graphml"),
}
"""First words of lines of other formats, with their name and what reads them."""


class TextForm(NamedTuple):
    """What the user says of a file of text; None leaves it to the file.

    Attributes:
        separator: Mark between cells; a space stands for spaces and tabs.
        header: Whether the first row holds the names of the columns.
        comments: Marks, of which one begins a line that is no row; empty if all lines are rows.
    """

    separator: str | None = None
    header: bool | None = None
    comments: str | None = None

    @classmethod
    def of(cls, separator: str | None, header: bool | None, comments: str | None) -> "TextForm":
        """Build a form of the words of the settings.

        Raises:
            Refusal: If a word is none.
        """
        marks = {name: mark for mark, name in SEPARATORS.items()} | {r"\t": "\t"}
        mark = None if separator is None else marks.get(separator, separator)
        if mark is not None and mark not in SEPARATORS:
            names = ", ".join(SEPARATORS.values())
            raise Refusal(f"columns.separator must be one of {names}, got {separator!r}")
        if comments == "none":
            comments = ""
        if comments is not None and re.search(r"[\w\s,;|\"]", comments):
            raise Refusal(f"columns.comments must be marks such as '#', or none, got {comments!r}")
        return cls(mark, header, comments)


def is_edge_list(name: str) -> bool:
    """Return whether a file name is that of an edge list; KONECT uses ``out.NAME``."""
    name = name.lower().removesuffix(".gz")
    return name.endswith(TEXT_SUFFIXES) or name.startswith("out.")


def read_text(path: Path, expected: str = EXPECTED) -> bytes:
    """Read a text file in UTF-8, compressed or not, with uniform line ends."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise GraphFormatError(
                f"{path}: damaged gzip file\nget it again, or write it again"
            ) from error
    content = _uniform(content.removeprefix(b"\xef\xbb\xbf"))
    if b"\0" in content:
        raise GraphFormatError(f"{path}: not a text file\nexpected {expected}")
    try:
        content.isascii() or content.decode()
    except UnicodeDecodeError as error:
        odd = content.count(b"\n", 0, error.start)
        refuse_line(path, odd, "text in UTF-8", "save the file as UTF-8")
    return content


def _uniform(content: bytes) -> bytes:
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return content


def refuse_line(
    path: Path,
    line: int,
    expected: str,
    way_out: str = "correct the line, or begin it with '# ' to skip it",
) -> NoReturn:
    """Refuse a file for one of its lines, counted from 0, whose content is private."""
    raise GraphFormatError(f"{path}, line {line + 1}: expected {expected}\n{way_out}")


def row_lines(
    content: bytes, comments: str = COMMENTS, start: int = 0
) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line from ``start`` on that is neither blank nor a comment."""
    for number, line in enumerate(io.BytesIO(content)):
        text = line.decode(errors="replace").strip(" \n")
        if number >= start and text.strip() and text.lstrip()[0] not in comments:
            yield number, text


def text_rows(
    path: Path,
    content: bytes,
    separator: str,
    comments: str = COMMENTS,
    start: int = 0,
    split: Callable[[str, str], list[str]] = line_cells,
) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line that is neither blank nor a comment.

    Each line is split by itself: a cell that goes on in the next line would take other rows away.

    Args:
        path: The file, which an error names.
        content: Its content with uniform line ends.
        separator: Mark between cells.
        comments: Marks, of which one begins a comment.
        start: Number of the first line, from 0 on.
        split: Splits a line into cells, see :func:`split_line`.

    Raises:
        GraphFormatError: If a quote does not close on its line, or if lines have unlike numbers of cells.
    """
    first: tuple[int, int] | None = None
    for number, line in row_lines(content, comments, start):
        row = split(line, separator)
        if not row:
            refuse_line(path, number, CLOSED, WAY_TO_CLOSE)
        first = first or (number, len(row))
        if len(row) != first[1]:
            raise GraphFormatError(
                f"{path}, line {number + 1}: {len(row)} cells, and line {first[0] + 1} has {first[1]}\n"
                f"expected as many cells on all lines, with a {SEPARATORS[separator]} between two\n"
                'correct the line, or put a cell with separators into "quotes"'
                + ("" if split is line_cells else _OF_EDGES)
            )
        yield number, row


def table_rows(path: Path, expected: str, comments: str = COMMENTS) -> list[tuple[int, list[str]]]:
    """Return line, from 1 on, and cells of each row of a public table that is not empty.

    The first row decides what separates cells.

    Raises:
        GraphFormatError: See :func:`read_text` and :func:`text_rows`.
    """
    content = read_text(path, expected)
    _, first = next(row_lines(content, comments), (0, ""))
    separator = next((mark for mark in "\t;|," if mark in first), ",")
    lines = text_rows(path, content, separator, comments)
    return [(number + 1, row) for number, row in lines if any(row)]


def split_line(text: str, separator: str) -> list[str]:
    """Split a line into cells; return none if its quotes do not match.

    Brackets behind the ids of an edge, such as ``{'weight': 1, 'day': 3}``, are one cell.
    """
    if separator == " ":
        text = text.replace("\t", " ")
    text = text.strip(" ")  # spaces around a line would be empty cells
    for found in re.finditer(r"[\[({]", text):
        before = text[: found.start()].rstrip(" ")
        cut = found.start() if separator == " " else len(before)
        if cut and text[cut - 1] == separator and _TAIL.match(text, found.start()):
            ids = line_cells(text[: cut - 1].rstrip(" "), separator)
            if len(ids) > 1:
                return [*ids, text[found.start() :]]
    return line_cells(text, separator)


def line_separators(text: str) -> list[str]:
    """Return the separators that cut a line into its cells by itself; none if that is not clear.

    It is the one that leaves no other separator in the first two cells, or else the first one by
    precedence that cuts the line. Others are with it if they give the same cells.
    """
    cells = {mark: split_line(text, mark) for mark in SEPARATORS if mark in text or mark == " "}
    cutting = {mark: row for mark, row in cells.items() if len(row) > 1}
    for mark, row in cutting.items():
        others = [other for other in cutting if cutting[other] != row]
        is_odd = mark == " " and "\t" in others
        if not is_odd and not any(other in cell for cell in row[:2] for other in others):
            return [mark, *(o for o in cutting if o != mark and o not in others)]
    if "\t" in cutting and " " in cutting:
        return []
    return [*cutting][:1]


def agreed_separator(path: Path, content: bytes, comments: str, start: int) -> str:
    """Return the separator by which all rows agree.

    A separator is another reading unless two rows contradict it, so that one row more or less can
    refuse the file, and never turns one reading into another.

    Args:
        path: The file, which an error names.
        content: Its content.
        comments: Marks that begin a comment.
        start: Number of the first row.

    Raises:
        GraphFormatError: If rows can be cut by two separators.
    """
    body = b"\n".join(content.split(b"\n", start)[start:])
    present = [mark for mark in SEPARATORS if mark.encode() in body]
    if len(present) < 2:
        return present[0] if present else " "
    agreed, total = set(present), 0
    votes: Counter[str] = Counter()
    widths: dict[str, Counter[int]] = {mark: Counter() for mark in present}
    for _, line in row_lines(content, comments, start):
        own = line_separators(line)
        agreed &= {*own}
        votes.update(own[:1])
        total += 1
        for mark in present:
            widths[mark][len(split_line(line, mark))] += 1
    if agreed:
        return next(mark for mark in SEPARATORS if mark in agreed)
    misfits = {
        mark: total - max((n for width, n in found.items() if width > 1), default=0)
        for mark, found in widths.items()
    }
    fitting = [mark for mark in present if not misfits[mark]]
    if len(fitting) == 1 and all(
        misfits[mark] >= min(2, total) for mark in present if mark != fitting[0]
    ):
        return fitting[0]
    if not fitting:  # refused with the first line that has another number of cells
        return votes.most_common(1)[0][0] if votes else " "
    rivals = sorted((mark for mark in present if misfits[mark] < 2), key=misfits.__getitem__)
    names = " and by ".join(f"a {SEPARATORS[mark]}" for mark in rivals[:2])
    raise GraphFormatError(
        f"{path}: its lines can be cut by {names}, which give other ids\n"
        "expected one separator\nname it: columns.separator (--separator "
        f"{SEPARATORS[rivals[0]]}), or put a line with names of the columns above all lines"
    )


def first_row(
    path: Path, content: bytes, form: TextForm = TextForm()
) -> tuple[int, str, str | None]:
    """Find the first line that is neither blank nor a comment.

    Returns:
        Its number, its text, and the separator that a line ``sep=;`` above it names, as Excel writes.

    Raises:
        GraphFormatError: If there is none, or if the file is one of another format.
    """
    comments = COMMENTS if form.comments is None else form.comments
    lines = row_lines(content, comments)
    line, text = next(lines, (0, ""))
    named = re.fullmatch(r"(?i:\"?sep=([,;|\t])\"?)", text)
    if named is not None:
        line, text = next(lines, (0, ""))
    if not text:
        raise NoEdgesError(f"{path}: empty\nexpected {EXPECTED}")
    _check_container(path, content, line)
    return line, text.strip(), None if named is None else named[1]


def _check_container(path: Path, content: bytes, first: int) -> None:
    """Refuse a file of another format under the suffix of an edge list, by the marks of its lines."""
    lines = itertools.islice(re.finditer(rb"[^\n]+", content), _HEAD_LINES)
    head = [found.group().strip() for found in lines]
    at_first = {rb"[\[{]", rb"<"}
    for mark, (name, reader) in _CONTAINERS.items():
        rows = [line for line in head if line[:1] not in b"#%"][:1] if mark in at_first else head
        if any(re.match(mark, line) for line in rows):
            problem = f"{path}, line {first + 1}: " if mark in at_first else f"{path}: "
            raise GraphFormatError(
                f"{problem}expected {EXPECTED}, not {name}\n"
                f"read it with {reader} and pass the object in Python (dpg.fit), or convert it to an "
                "edge list,\nGraphML or npz; put ids that begin so into quotes"
            )


def head_of(path: Path) -> bytes:
    """Return the first lines of a file; nothing of one that only its reader can refuse."""
    try:
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rb") as file:
            head = b"".join(itertools.islice(file, _HEAD_LINES))
    except (OSError, EOFError, zlib.error):
        return b""
    return _uniform(head.removeprefix(b"\xef\xbb\xbf"))
