"""Amounts and times of transfers: their columns in a table of edges, and the rules for their cells.

Each rule looks at one row alone, so that a row which is added or removed changes no other row:

* an amount is rounded to 1/100;
* a time is that of the clock on the wall: as it is written or, of a stamp with a zone, in the zone of
  the settings;
* a row outside of the window of times is no transfer;
* a row without an amount or without a time is no transfer either. An amount of 0 or a day of its own
  would be made up, and a refusal would show that there is such a row.

Other texts are errors of the file, which its owner sees before anything is learned.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.formats.columns import UNIX, Columns
from lightning_dpg.graph.kind import CENTS
from lightning_dpg.graph.node_names import GraphFormatError, is_missing

_LARGEST = 1e13
"""Amounts above it, which every bound clips, would leave the range of whole numbers."""
_NUMBER = re.compile(r"[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?")
_STAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?( ?(Z|UTC|[-+][0-9]{2}(:?[0-9]{2})?))?)?"
)
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1)


class Cells(NamedTuple):
    """Cells of a column: numbers, dates and times of numpy, or texts."""

    values: NDArray[Any] | Sequence[str]
    are_instants: bool = False
    """Whether the dates and times are in UTC, and not those of a clock."""


class EdgeValues(NamedTuple):
    """Amounts and times of rows (private)."""

    amounts: Tensor | None
    """In hundredths and not clipped, shape ``(T,)``; None without amounts."""
    times: Tensor | None
    """Seconds of the clock since the beginning of 1970, shape ``(T,)``; None without times."""
    summary: str
    """Part of a line for the owner."""


class _Numbers(NamedTuple):
    """Whole numbers of the rows, and which rows have none."""

    values: NDArray[np.int64]
    is_absent: NDArray[np.bool_]


Place = Callable[[int], str]
"""Name the file and the line of a row."""


def read_values(
    given: Columns, cells: Sequence[Cells], place: Place, origin: str
) -> tuple[EdgeValues, NDArray[np.bool_]]:
    """Read the amounts and times of all rows.

    Args:
        given: The columns.
        cells: Their cells, in the order of ``given.values``.
        place: Names the place of a row, counted from 0.
        origin: Name of the whole table.

    Returns:
        The values of the rows that are transfers, and which rows these are.

    Raises:
        GraphFormatError: If a cell is neither empty nor an amount or a time, or if no row is a transfer.
    """
    amounts = None if given.weight is None else _amounts(cells[0], given, place)
    times = None if given.time is None else _times(cells[-1], given, place)
    read = [part for part in (amounts, times) if part is not None]
    has_values = ~np.logical_or.reduce([part.is_absent for part in read])
    is_inside = np.ones(len(has_values), dtype=bool)
    if times is not None and given.window is not None:
        first, last = map(_seconds, given.window)
        is_inside = (times.values >= first) & (times.values < last + _DAY)
    keep = has_values & is_inside
    kept, absent, outside = (
        int(rows.sum()) for rows in (keep, ~has_values, has_values & ~is_inside)
    )
    if not kept:
        raise GraphFormatError(
            f"{origin}: no row is a transfer; outside of the window: {outside:,}, without an "
            f"amount or a time: {absent:,}\nexpected rows of the days in columns.time_window\n"
            "set it to the days that the table is meant to hold (--time-window FIRST,LAST)"
        )
    summary = f"; rows of transfers: {kept:,}"
    if amounts is not None:
        above = int((amounts.values[keep] > given.largest).sum())
        summary += f", amounts from {str(given.weight)!r}, above {given.weight_max:,g}: {above:,}"
    if given.window is not None:
        days = " to ".join(day.date().isoformat() for day in given.window)
        summary += f", times from {str(given.time)!r}, rows outside of {days}: {outside:,}"
    summary += f", rows without one: {absent:,}"
    return EdgeValues(_chosen(amounts, keep), _chosen(times, keep), summary), keep


def _chosen(part: _Numbers | None, keep: NDArray[np.bool_]) -> Tensor | None:
    return None if part is None else torch.from_numpy(part.values[keep])


def kept_rows(
    names: Sequence[str], pairs: NDArray[np.int64], keep: NDArray[np.bool_]
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the rows that are transfers, and the names that occur in them.

    Args:
        names: Names of all nodes.
        pairs: Both ends of each row as positions in ``names``, shape ``(L, 2)``.
        keep: Which rows are transfers.
    """
    used, positions = np.unique(pairs[keep], return_inverse=True)
    return [names[node] for node in used.tolist()], positions.reshape(-1, 2).astype(np.int64)


def _amounts(column: Cells, given: Columns, place: Place) -> _Numbers:
    signs = given.decimal or ".", given.thousands or ""
    name, expected = str(given.weight), f"numbers such as 1234{signs[0]}56"
    numbers, is_absent = _numbers(column, name, place, "an amount", expected, *signs)
    negative = np.flatnonzero(numbers < 0)
    if len(negative):
        raise GraphFormatError(
            f"{place(int(negative[0]))}: a negative amount in column {name!r}\n"
            "expected amounts of 0 or more\n"
            "write it as a transfer in the other direction, or leave the line out"
        )
    return _Numbers(np.rint(np.minimum(numbers, _LARGEST) * CENTS).astype(np.int64), is_absent)


def _numbers(
    column: Cells,
    name: str,
    place: Place,
    what: str,
    expected: str,
    decimal: str = ".",
    thousands: str = "",
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of a column, 0 where there is none."""
    cells = column.values
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        numbers = cells.astype(np.float64)
        is_absent, is_bad = np.isnan(numbers), np.isinf(numbers)
    else:
        # A number in single precision has the digits that it has as a column of numbers.
        texts = [str(float(c) if isinstance(c, np.floating) else c).strip() for c in cells]
        is_absent = np.array([is_missing(text) for text in texts], dtype=bool)
        point, mark = re.escape(decimal), re.escape(thousands)
        whole = rf"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
        form = re.compile(rf"[-+]?({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][-+]?[0-9]+)?")
        is_number = np.array([bool(form.fullmatch(text)) for text in texts], dtype=bool)
        plain = (text.replace(thousands, "").replace(decimal, ".") for text in texts)
        numbers = np.array(
            [float(text) if is_one else 0.0 for text, is_one in zip(plain, is_number, strict=True)]
        )
        is_bad = ~is_absent & (~is_number | np.isinf(numbers))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise GraphFormatError(
            f"{place(row)}: a cell in column {name!r} is not {what}\n"
            f"expected {expected}, without a sign of a currency\n"
            "name other signs: columns.decimal and columns.thousands (--decimal , --thousands .)\n"
            "correct the line, or leave the cell empty: such a row is no transfer"
        )
    return np.where(is_absent, 0.0, numbers), is_absent


def _times(column: Cells, given: Columns, place: Place) -> _Numbers:
    """Return the times of the clock in seconds since 1970."""
    cells, name = column.values, str(given.time)
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        if given.time_format is not None:
            raise GraphFormatError(
                f"{place(0)}: column {name!r} holds dates and times already, and not texts\n"
                f"leave out columns.time_format, which is {given.time_format!r}"
            )
        is_absent = np.isnat(cells)
        seconds = cells.astype("datetime64[s]").astype(np.int64)
        is_zoned = np.full(len(cells), column.are_instants)
    elif given.time_format in UNIX:
        expected = f"whole numbers, as columns.time_format is {given.time_format!r}"
        numbers, is_absent = _numbers(column, name, place, "a number of seconds", expected)
        far = 2.0**53
        units = np.floor(np.clip(numbers, -far, far)).astype(np.int64)
        seconds, is_zoned = units // UNIX[given.time_format], np.ones(len(units), dtype=bool)
    else:
        texts = [str(cell).strip() for cell in cells]
        is_absent = np.array([is_missing(text) for text in texts], dtype=bool)
        seconds, is_zoned = _of_texts(texts, is_absent, given, place)
    return _Numbers(_on_the_wall(seconds, is_zoned, is_absent, given, place), is_absent)


def _of_texts(
    texts: Sequence[str], is_absent: NDArray[np.bool_], given: Columns, place: Place
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the seconds of texts since 1970, in UTC where a text has a zone, and where it has one."""
    seconds = np.zeros(len(texts), dtype=np.int64)
    is_zoned = np.zeros(len(texts), dtype=bool)
    has_clock: bool | None = None
    for row in np.flatnonzero(~is_absent).tolist():
        text = texts[row]
        if given.time_format is not None:
            seconds[row], is_zoned[row] = _in_format(
                text, given.time_format, str(given.time), place, row
            )
            continue
        found = _STAMP.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            plain = re.sub(" (?=[-+Z])", "", text.replace("UTC", "Z"))
            seconds[row], is_zoned[row] = _moment(datetime.fromisoformat(plain))
        except ValueError:
            raise _no_time(place(row), text, str(given.time)) from None
        if has_clock is None:
            has_clock = found[1] is not None
        if has_clock != (found[1] is not None):
            one, other = ("a time of day", "none") if has_clock else ("no time of day", "one")
            raise GraphFormatError(
                f"{place(row)}: column {str(given.time)!r} has {other}, and rows before have {one}\nexpected one form in all rows\nwrite all rows with a time of day, or all "
                "rows without it"
            )
    return seconds, is_zoned


def _in_format(text: str, form: str, name: str, place: Place, row: int) -> tuple[int, bool]:
    """Return the seconds of a text in a given format, and whether it has a zone."""
    try:
        stamp = datetime.strptime(text, form)
    except ValueError:
        raise GraphFormatError(
            f"{place(row)}: a time in column {name!r} is not written as columns.time_format says, "
            f"{form!r}\nexpected this format in all rows\ncorrect the line, leave the cell "
            "empty (such a row is no transfer), or write all rows as 2026-01-31 14:05"
        ) from None
    return _moment(stamp)


def _moment(stamp: datetime) -> tuple[int, bool]:
    """Return the seconds of a time since 1970, in UTC if it has a zone, and whether it has one."""
    if stamp.tzinfo is None:
        return _seconds(stamp), False
    offset = stamp.utcoffset() or timedelta()
    return _seconds(stamp.replace(tzinfo=None)) - int(offset.total_seconds()), True


def _no_time(where: str, text: str, name: str) -> GraphFormatError:
    """Build the error that refuses a text which is no time."""
    ways = "'%d/%m/%Y' if the day comes first, '%m/%d/%Y' if the month does"
    if _NUMBER.fullmatch(text):
        ways = "unix for seconds since 1970, unix_ms for milliseconds, or '%Y%m%d'"
    return GraphFormatError(
        f"{where}: a cell in column {name!r} is no day and time that is read unasked\n"
        "expected 2026-01-31 or 2026-01-31 14:05:00 in all rows, with or without a zone such as +01:00\n"
        f"or say how all rows are written, by columns.time_format (--time-format):\n{ways}\n"
        "an empty cell makes its row no transfer"
    )


def _on_the_wall(
    seconds: NDArray[np.int64],
    is_zoned: NDArray[np.bool_],
    is_absent: NDArray[np.bool_],
    given: Columns,
    place: Place,
) -> NDArray[np.int64]:
    """Return seconds of the clock, with instants in the zone of the settings.

    Raises:
        GraphFormatError: If some stamps have a zone and others have none, or if the settings name no
            zone where the stamps have one, or one where they have none.
    """
    rows = np.flatnonzero(~is_absent)
    if not len(rows):
        return seconds

    def first_cell(found: NDArray[np.int64]) -> str:
        row = int(found[0])
        return f"{place(row)}, column {str(given.time)!r}"

    zoned, odd = bool(is_zoned[rows[0]]), rows[is_zoned[rows] != is_zoned[rows[0]]]
    if len(odd):
        raise GraphFormatError(
            f"{first_cell(odd)}: a time with{'out' if zoned else ''} a zone, and rows before it "
            f"{'have one' if zoned else 'have none'}\n"
            "expected a zone in all rows, or in none\nwrite the zone of each stamp, such as "
            "2026-01-31 14:05+01:00, or write all of them by one clock"
        )
    if zoned and given.zone is None:
        raise GraphFormatError(
            f"{first_cell(rows)}: a moment with a zone, or counted in UTC\n"
            "expected columns.time_zone: the days and hours of a release are those of one clock\n"
            "name its zone (--time-zone Europe/Berlin, or UTC)"
        )
    if not zoned and given.zone is not None:
        raise GraphFormatError(
            f"{first_cell(rows)}: a time without a zone, and columns.time_zone is {given.zone.key}\n"
            "leave it out: times without a zone are taken as they are written"
        )
    if given.zone is None or given.window is None:
        return seconds
    first, last = (_seconds(day) for day in given.window)
    # Others are outside of the window in every zone, and perhaps no moment of a calendar.
    near = (seconds >= first - 2 * _DAY) & (seconds < last + 3 * _DAY)
    moments, places = np.unique(seconds[near], return_inverse=True)
    offsets = [_offset(moment, given.zone) for moment in moments.tolist()]
    wall = seconds.copy()
    wall[near] += np.array(offsets, dtype=np.int64)[places]
    return wall


def _offset(moment: int, zone: ZoneInfo) -> int:
    """Return the seconds by which a clock is ahead of UTC."""
    offset = datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset()
    return int((offset or timedelta()).total_seconds())


def _seconds(stamp: datetime) -> int:
    """Return the seconds of a clock since the beginning of 1970, rounded down."""
    return (stamp - _EPOCH) // timedelta(seconds=1)
