"""A hard stop for rows that were read as names of nodes.

A reader that cuts a line at the wrong place takes a row, or a part of one, for a name. The graph would be
a wrong one, and where ids are published free of epsilon the release would hold the private row. The check
looks at the names that were read, whatever the reader was and whatever a release calls the nodes. Names
that the owner has listed are public, and are not checked.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np

from lightning_dpg.formats.conversion import GraphReading, NodeSet
from lightning_dpg.formats.edge_columns import HEADERS, recognized_header
from lightning_dpg.formats.text_rows import SEPARATORS
from lightning_dpg.graph.node_names import GraphFormatError

_MARKS = re.compile(r'[\s,;|:(){}\[\]">→]')
"""What a row has between its cells, or around them."""
_ODD = re.compile(r'[:(){}\[\]">→]')
_CUTS = str.maketrans(dict.fromkeys(',;|()[]"→', " "))
_BRACKETS = {"(": ")", "[": "]"}
_GUID = re.compile(r"\{[0-9A-Fa-f-]+\}")
_WORDS = "|".join(word for pair in HEADERS for word in pair)
_HEADER = re.compile(
    rf"(?<![a-z])(?:{_WORDS})(?![a-z])|(?:{_WORDS.title()})(?![a-z])"
    rf"|(?<![A-Z])(?:{_WORDS.upper()})(?![A-Za-z])"
)
"""A word of a header, as ``recognized_header`` parts words."""


def refuse_rows(reading: GraphReading) -> None:
    """Refuse a graph some of whose names are rows.

    Args:
        reading: The graph as it was read (private). Built-in graphs and lists of nodes pass.

    Raises:
        GraphFormatError: With the number of such names, and none of them.
    """
    if reading.node_set in (NodeSet.BUILT_IN, NodeSet.LIST):
        return
    names = reading.nodes.node_names
    origin = reading.origin
    if all(map(str.isdigit, names)):
        return
    are_of_rows = reading.node_set is NodeSet.LINES
    refuse_row_names(names, origin, are_of_rows=are_of_rows)
    links = reading.links.numpy()
    if are_of_rows and reading.header is None:
        _refuse_cut_lines([names[first] for first in np.unique(links[:, 0])], origin)
    own = reading.header or ()
    are_words = np.array([name in own or _is_word_of_header(name) for name in names])
    for row in np.unique(links[are_words[links].all(axis=1)], axis=0):
        pair = tuple(names[end] for end in row)
        if pair == own or recognized_header(pair):
            raise _refused(origin, "an edge links the words of a header")


def refuse_row_names(
    names: Sequence[str], origin: str, *, are_of_rows: bool, header: Sequence[str] = ()
) -> None:
    """Refuse names that are rows, or parts of one.

    Args:
        names: Names of all nodes (private).
        origin: Place that the error names.
        are_of_rows: Whether the names are ids of private rows. Those of a table of nodes may hold an
            arrow, and one word that is a name of its own, as New York and York.
        header: Names of the columns of ids, where the edges are not at hand.

    Raises:
        GraphFormatError: With the number of such names, and none of them.
    """
    known = set(names)
    if header and known.issuperset(header):
        raise _refused(origin, "the names of both columns are among them")
    marked = [name for name in names if _MARKS.search(name)]
    text = " ".join(marked)
    # Names of two words, of which none is a name of its own, are the usual case.
    if not _ODD.search(text) and known.isdisjoint(text.translate(_CUTS).split()):
        return
    if found := sum(_is_row(name, known, are_of_rows) for name in marked):
        what = (
            "braces, brackets or quotes without their ends, an arrow, or the name of another node"
        )
        raise _refused(origin, f"{found:,} of {len(names):,} names of nodes hold {what}")


def _refuse_cut_lines(cells: Collection[str], origin: str) -> None:
    """Refuse rows without a header whose first cells are rows of another separator.

    A line ``a b x|y`` is cut at the bar, which its third cell holds: its first cell is ``a b x``.

    Raises:
        GraphFormatError: If there is a separator that each first cell holds twice or more.
    """
    for mark, separator in SEPARATORS.items():
        if all(len(cell.split(None if mark == " " else mark)) > 2 for cell in cells):
            held = f"all first cells hold three cells or more that a {separator} separates"
            raise _refused(origin, held)


def _is_word_of_header(name: str) -> bool:
    """Return whether a name may be that of a column; ids such as ``payer 1`` are numbered."""
    return re.search(r"\d", name) is None and _HEADER.search(name) is not None


def _is_row(name: str, names: set[str], are_of_rows: bool) -> bool:
    """Return whether a name is a row or a part of one, by itself and beside all names."""
    if _ODD.search(name) and not _is_closed(name):
        return True
    if are_of_rows and ("->" in name or "=>" in name or "→" in name):
        return True
    if name.count(":") == 1 and names.issuperset(name.split(":")):
        return True
    text = name.translate(_CUTS).replace("->", " ").replace("=>", " ").replace(": ", " ")
    cells = text.removesuffix(":").split()
    if not cells or cells == [name]:
        return False
    return not names.isdisjoint(cells) if are_of_rows else names.issuperset(cells)


def _is_closed(name: str) -> bool:
    """Return whether brackets and quotes have their other end, and braces are those of a GUID."""
    if "{" in name or "}" in name:
        return _GUID.fullmatch(name) is not None
    opened: list[str] = []
    for character in name:
        if character in _BRACKETS:
            opened.append(_BRACKETS[character])
        elif character in ")]" and (not opened or opened.pop() != character):
            return False
    return not opened and name.count('"') % 2 == 0


def _refused(origin: str, problem: str) -> GraphFormatError:
    return GraphFormatError(
        f"{origin}: rows were read as names of nodes: {problem}\n"
        "expected ids; a header in the separator of the lines, such as 'source target', decides, with\n"
        "columns.source and columns.target\n(--source NAME --target NAME)\n"
        "if the names are right, list them: nodes (--nodes FILE)"
    )
