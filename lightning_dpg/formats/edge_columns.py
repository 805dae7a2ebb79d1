"""The columns of an edge list or a table that hold the relation: recognized, named or numbered."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.text_rows import (
    COMMENTS,
    SEPARATORS,
    agreed_separator,
    first_row,
    head_of,
    line_separators,
    refuse_line,
    split_line,
)
from lightning_dpg.graph.node_names import CLOSED, WAY_TO_CLOSE, GraphFormatError

HEADERS = [
    ("source", "target"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("sender", "receiver"),
    ("payer", "payee"),
    ("caller", "callee"),
    ("orig", "dest"),
    ("start", "end"),
]
"""Words of a header for the two ends of an edge."""
_ID_WORDS = """
id ids node nodes nodeid account acct accountid name user username userid customer client
person number nr no key address addr iban email mail phone member employee wallet ip code
vertex entity actor uid uuid guid company agent author paper page host index idx label hash
party station airport
"""
_OF_IDS = frozenset(_ID_WORDS.split())
"""Words beside them in the names of columns of ids."""
_OTHER_WORDS = """
date time day month year hour timestamp currency country city place location bank port lat
lon zone status type version balance amount price age
"""
_OF_OTHERS = frozenset(_OTHER_WORDS.split())
"""Words in the names of columns of other facts: ``from_date`` and ``to_date`` are no persons."""
NAME_COLUMNS = (
    "name the columns, or give their numbers: columns.source and columns.target\n"
    "(--source NAME --target NAME)"
)
HEADER_OR_EDGE = (
    "if it is a header, name the columns: columns.source and columns.target\n"
    "(--source NAME --target NAME), or say it: columns.header (--header)\n"
    "if it is an edge: --no-header"
)
# An amount or a date: no node id, unless the user names the column.
VALUE = r"^([-+]?[0-9]*[.][0-9]+([eE][-+]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?|[0-9]+:[0-9]{2}(:[0-9]{2}.*)?)$"


class Chosen(NamedTuple):
    """The columns of a table that are read.

    Attributes:
        names: Names of all columns.
        pair: Places of both columns of ids.
        values: Places of the columns of amounts and times, in the order in which they were asked for.
    """

    names: Sequence[str]
    pair: tuple[int, int]
    values: tuple[int, ...]

    @property
    def read(self) -> list[int]:
        """Places of all columns that are read."""
        return [*self.pair, *self.values]

    @property
    def ends(self) -> tuple[str, str]:
        """Names of both columns of ids."""
        return self.names[self.pair[0]], self.names[self.pair[1]]

    @property
    def others(self) -> list[str]:
        """Names of the columns that are not read."""
        return [name for place, name in enumerate(self.names) if place not in self.read]

    def __str__(self) -> str:
        """Summarize for the owner how a table was read."""
        first, second = self.ends
        return f"columns {first!r} and {second!r} of {len(self.names)}"


def choose(origin: str, names: Sequence[str], columns: Columns) -> Chosen:
    """Choose the columns of a table whose columns have names.

    Args:
        origin: Place that errors name.
        names: Names of all columns.
        columns: What is asked for. By default columns with names such as ``source`` and ``target``, or
            both columns if there are two.

    Raises:
        GraphFormatError: If there are no such columns, or none are recognized.
    """
    pair = chosen_columns(origin, names, columns.pair)
    return Chosen(names, pair, value_columns(origin, names, columns.values, pair))


class TextColumns(NamedTuple):
    """Cells of each line of text that are read."""

    separator: str
    chosen: Chosen
    header: tuple[str, str] | None
    are_given: bool

    @property
    def width(self) -> int:
        """Number of cells of each line."""
        return len(self.chosen.names)

    def __str__(self) -> str:
        """Summarize for the owner how the file was read."""
        first, second = self.chosen.pair
        header = f"; header {self.header[0]!r}, {self.header[1]!r}" if self.header else ""
        columns = f"columns {first + 1} and {second + 1} of {self.width}"
        return f"{SEPARATORS[self.separator]}; {columns}{header}"


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


def refuse_missing(
    origin: str | Path,
    num_missing: int,
    rows: int,
    first: str,
    *,
    drop: bool,
    may_be_names: bool = False,
) -> None:
    """Refuse rows without an id, unless they are to be dropped and leave others.

    Args:
        origin: Place that the error names.
        num_missing: Number of rows without an id.
        rows: Number of all rows.
        first: Where the first one is, such as ``line 3, column 2``.
        drop: Whether the rows are dropped.
        may_be_names: Whether a word such as ``null`` may be a name: then no option that drops it is
            named.
    """
    if num_missing and num_missing == rows:
        raise GraphFormatError(f"{origin}: each row lacks an id\nexpected two node ids per row")
    if num_missing and not drop:
        way_out = "set columns.missing_ids to drop (--missing-ids drop) to leave these rows out"
        if may_be_names:
            way_out = (
                "leave the cell of a missing id empty; a name such as 'Null' needs another form, such "
                "as 'Null, A.'"
            )
        raise GraphFormatError(
            f"{origin}: {num_missing:,} of {rows:,} rows lack an id, the first is {first}\n"
            f"expected two node ids per row\n{way_out}"
        )


def check_header(path: Path, columns: Columns) -> None:
    """Refuse columns that are not in the first line of an edge list, which is all that is read.

    Args:
        path: The file.
        columns: The columns, and the form of the file.

    Raises:
        GraphFormatError: If they are not there; the message is that of the reader.
    """
    content = head_of(path)
    if re.search(rb"^[^\S\n]*[^\s#%]", content, re.MULTILINE):
        find_columns(path, content, columns)


def column_names(path: Path) -> list[str]:
    """Return the cells of the first row of an edge list: the names of its columns, if it has any.

    Args:
        path: The file, of which the first lines are read.
    """
    content = head_of(path)
    if not re.search(rb"^[^\S\n]*[^\s#%]", content, re.MULTILINE):
        return []
    _, text, named = first_row(path, content)
    return split_line(text, named or (line_separators(text) or ["\t"])[0])


def find_columns(path: Path, content: bytes, columns: Columns) -> tuple[TextColumns, int]:
    """Find separator and columns from the first row and from the settings, else by agreement.

    A header decides what separates the cells below it. Without one, all rows have to agree.

    Args:
        path: The file.
        content: Its content.
        columns: The columns, and the form of the file.

    Returns:
        The columns, and the number of the first line behind the header.
    """
    form, asked, values = columns.text, columns.pair, columns.values
    line, text, named = first_row(path, content, form)
    separator = form.separator or named or (line_separators(text) or ["\t"])[0]
    cells = split_line(text, separator)
    are_numbers = asked is not None and all(column.isdecimal() for column in asked)
    are_names = any(not value.isdecimal() for value in values)
    is_header = form.header is True or (
        form.header is None
        and (
            are_names
            or recognized_header(cells) is not None
            or (asked is not None and not are_numbers)
        )
    )
    if not is_header and form.separator is None and named is None:
        comments = COMMENTS if form.comments is None else form.comments
        separator = agreed_separator(path, content, comments, line)
        cells = split_line(text, separator)
    if not cells:
        refuse_line(path, line, CLOSED, WAY_TO_CLOSE)
    place, width = f"{path}, line {line + 1}", len(cells)
    if are_numbers and asked is not None:
        pair = int(asked[0]) - 1, int(asked[1]) - 1
        check_columns(path, pair, max(width, 2))
    elif is_header:
        pair = chosen_columns(place, cells, asked)
    elif asked is not None:
        raise GraphFormatError(
            f"{path}: columns {' and '.join(asked)}, and columns.header says that there are no names\n"
            "expected their numbers, from 1 on"
        )
    else:
        pair = (0, 1)
    names = cells if is_header else [f"column {number + 1}" for number in range(width)]
    chosen = Chosen(names, pair, value_columns(place, names, values, pair))
    are_given = asked is not None or are_names
    header = chosen.ends if is_header else None
    return TextColumns(separator, chosen, header, are_given), line + is_header


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
    words = [{w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", cell)} for cell in cells]
    pairs = [
        (i, j)
        for i, one in enumerate(words)
        for j, other in enumerate(words)
        for source, target in HEADERS
        if source in one
        and target in other
        and one - {source} == other - {target}
        and _are_of_ids(one - {source}, alone=source != "start")
    ]
    return pairs[0] if len(pairs) == 1 else None


def _are_of_ids(words: set[str], *, alone: bool) -> bool:
    """Return whether the words beside those of the ends are those of ids, or may be none."""
    beside = {word for word in words if not word.isdecimal()}
    if not beside:
        return alone
    return not beside.isdisjoint(_OF_IDS) and beside.isdisjoint(_OF_OTHERS)
