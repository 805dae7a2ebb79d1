"""Fast reading of the first two columns of text that holds plain numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.formats.edge_columns import EXPECTED, HEADER_OR_EDGE, Columns, refuse_line
from lightning_dpg.graph.node_names import is_missing

_GAPS = np.isin(np.arange(256), list(b" \t,\r\n"))
_PART = 2**23
"""Bytes that are read at a time, which takes about 25 bytes of memory for each of them."""


class _Part(NamedTuple):
    """Words and numbers of some of the lines."""

    ids: NDArray[np.uint64]
    lines: NDArray[np.int64]
    is_other: NDArray[np.bool_]
    is_negative: NDArray[np.bool_]
    alone: int | None
    """First line with a single word."""
    are_cells: bool
    """Whether the first words of all lines are their first cells, none of them empty."""
    has_zeros: bool
    """Whether an id begins with a zero that is not all of it."""


def read_integers(
    path: Path, content: bytes, where: Columns, keep_gaps: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]] | None:
    """Read the two ids of each line if all of them are plain numbers.

    Returns:
        The ids ``(L, 2)`` and the numbers of their lines ``(L,)``, counted from 0; None if the
        file holds names.
    """
    if any(mark.encode() in content for mark in f'"{where.other_separators}'):
        return None  # a cell may hold separators, or the separators differ from line to line
    parts = list(_parts(content, where.separator))
    alone = next((part.alone for part in parts if part.alone is not None), None)
    if alone is not None and where.separator != " ":
        return None  # an empty cell, or a line end in quotes
    if alone is not None:
        refuse_line(path, alone, EXPECTED)
    lines = np.concatenate([part.lines for part in parts])
    if not len(lines):
        return None
    is_other = np.concatenate([part.is_other for part in parts])
    others = lines[is_other]
    # One line that differs from all others is a header or a slip, not two more names.
    if (keep_gaps and len(others)) or len(others) == 1 < len(lines) - 1:
        if not keep_gaps and _lacks_id(content, int(others[0]), where.separator):
            return None
        way_out = "correct the line, or begin it with # to skip it"
        if is_other[0] and where.are_given:
            return None
        if is_other[0]:
            way_out = HEADER_OR_EDGE
        expected = "two integers, as on the other lines"
        refuse_line(path, int(others[0]), expected, way_out)
    if len(others):
        return None
    negative = lines[np.concatenate([part.is_negative for part in parts])]
    if len(negative):
        refuse_line(path, int(negative[0]), "integer ids of 0 or more")
    if where.separator != " " and not all(part.are_cells for part in parts):
        return None
    if not keep_gaps and any(part.has_zeros for part in parts):
        return None  # 007 is a name of its own
    return np.concatenate([part.ids for part in parts]), lines


def _lacks_id(content: bytes, line: int, separator: str) -> bool:
    """Return whether one of the first two cells of a line, counted from 0, is a missing value."""
    text = content.split(b"\n", line + 1)[line].decode(errors="replace")
    cells = text.split() if separator == " " else text.split(separator)
    return any(is_missing(cell.strip(' "')) for cell in cells[:2])


def _parts(content: bytes, separator: str) -> Iterator[_Part]:
    """Read some lines at a time."""
    start = first_line = 0
    while start < len(content):
        stop = content.find(b"\n", start + _PART) + 1 or len(content)
        buffer = np.frombuffer(content, np.uint8, stop - start, start)
        starts, ends, lines, alone = _first_two_words(buffer)
        ids, is_integer, is_negative = _parse_integers(buffer, starts, ends)
        is_other: NDArray[np.bool_] = np.any(~is_integer, axis=1)
        has_minus: NDArray[np.bool_] = np.any(is_negative, axis=1)
        yield _Part(
            ids,
            lines + first_line,
            is_other,
            has_minus,
            None if alone is None else alone + first_line,
            separator == " " or _are_neighbors(buffer, separator, starts, ends),
            bool(((buffer[starts] == ord("0")) & (ends - starts > 1)).any()),
        )
        start = stop
        first_line += int((buffer == ord("\n")).sum())


def _are_neighbors(
    buffer: NDArray[np.uint8], separator: str, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> bool:
    """Return whether the first words of all lines are their first cells as a whole, none of them empty."""
    after = buffer[np.minimum(ends[:, 1], len(buffer) - 1)]
    if not np.isin(after[ends[:, 1] < len(buffer)], [ord(separator), ord("\n")]).all():
        return False
    marks = np.cumsum(buffer == ord(separator))
    between = marks[starts[:, 1] - 1] - marks[ends[:, 0] - 1]
    is_first = buffer[np.maximum(starts[:, 0] - 1, 0)] != ord(separator)
    return bool((between == 1).all() and is_first.all())


def _first_two_words(
    buffer: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int | None]:
    """Find the first two words of each line that is neither blank nor a comment.

    Returns:
        Starts and ends, both ``(L, 2)``, the lines' numbers ``(L,)``, counted from 0, and the
        number of the first line with a single word, if there is one.
    """
    is_word = np.zeros(len(buffer) + 2, dtype=bool)
    is_word[1:-1] = ~_GAPS[buffer]
    changes = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, ends = changes[::2], changes[1::2]
    line = np.searchsorted(np.flatnonzero(buffer == ord("\n")), starts)
    # The last word has no follower; a line number that does not exist stands in for it.
    line = np.append(line, -1)
    first = np.flatnonzero(np.diff(line[:-1], prepend=-1))
    first = first[~np.isin(buffer[starts[first]], list(b"#%"))]
    is_alone = line[first + 1] != line[first]
    alone = int(line[first[is_alone][0]]) if is_alone.any() else None
    pair = np.stack([first[~is_alone], first[~is_alone] + 1], axis=1)
    return starts[pair], ends[pair], line[first[~is_alone]], alone


def _parse_integers(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return absolute values of the words, a mask of integers, and a mask of minus signs."""
    is_negative = (buffer[starts] == ord("-")) & (ends - starts > 1)
    starts = starts + is_negative
    lengths = ends - starts
    values = np.zeros(starts.shape, dtype=np.uint64)
    most_digits = 19  # 64 bits hold them all
    is_integer = lengths <= most_digits
    for place in range(min(int(lengths.max(initial=0)), most_digits)):
        inside = place < lengths
        # Bytes below "0" wrap round to large numbers.
        digits = buffer[np.minimum(starts + place, len(buffer) - 1)] - np.uint8(ord("0"))
        is_integer &= (digits < 10) | ~inside
        values = np.where(inside, values * np.uint64(10) + digits, values)
    return values, is_integer, is_negative
