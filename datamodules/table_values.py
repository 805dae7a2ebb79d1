"""Amounts and times of a table on a server as whole numbers, from columns that hold numbers and times.

The rules are those of :mod:`lightning_dpg.formats.transfer_columns`. Each looks at one row alone.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import ibis  # of the extra 'tables'

from lightning_dpg.datamodules.table_engine import Chosen
from lightning_dpg.formats.columns import UNIX, Columns
from lightning_dpg.formats.transfer_columns import (
    LARGEST,
    RowCounts,
    already_dates,
    described,
    window_seconds,
    zone_missing,
    zone_unneeded,
)
from lightning_dpg.graph.kind import CENTS
from lightning_dpg.graph.node_names import GraphFormatError

_DAY, _HOUR = 86_400, 3600
_INFINITE, _OUTSIDE = -2, -1

RowOf = Callable[[Any], list[int]]
"""Run a query of Ibis for one row of counts."""


class KeptRows(NamedTuple):
    """The rows of a table that are transfers (private).

    Attributes:
        rows: The rows in Ibis: ``source`` and ``target``, ``amount`` in hundredths, not clipped, and ``time``
            of the clock in seconds since the beginning of the window, as far as there are any.
        left_out: Number of the others.
        summary: Part of a line for the owner.
    """

    rows: Any
    left_out: int
    summary: str


def ibis_type(chosen: Chosen, name: str, given: Columns, *, is_time: bool) -> str:
    """Return the type in Ibis of a column of amounts or times.

    Raises:
        GraphFormatError: If it holds neither numbers nor times, or if the settings say otherwise.
    """
    kind = chosen.types[name]
    is_number = (
        re.match(r"u?int\d|halffloat|float|double|decimal", kind) or "type_name=numeric" in kind
    )
    if not is_time or given.time_format in UNIX:
        if is_time and kind.startswith(("date32", "timestamp")):
            raise already_dates(chosen.place, name, str(given.time_format))
        if is_number:
            return "string"  # whatever it is: a cast makes a float of it
        expected = "a column of numbers"
    else:
        if kind.startswith(("date32", "timestamp")):
            if given.time_format is not None:
                raise already_dates(chosen.place, name, given.time_format)
            shown = f"{chosen.place}: a cell in column {name!r}"
            if "tz=" in kind and given.zone is None:
                raise zone_missing(shown)
            if "tz=" not in kind and given.zone is not None:
                raise zone_unneeded(shown, given.zone)
            return "date" if kind[0] == "d" else f"timestamp({'UTC' if 'tz=' in kind else ''!r})"
        expected = (
            "a column of dates or timestamps; for seconds since 1970 set\n"
            "columns.time_format to unix, or for milliseconds to unix_ms (--time-format unix)"
        )
    raise GraphFormatError(
        f"{chosen.place}: column {name!r} holds {kind}\nexpected {expected}\n"
        "make a view that casts it, and read the view"
    )


def amount_of(cell: Any) -> Any:
    """Return amounts in hundredths, rounded as files are: NULL is none, and below 0 is no amount.

    No literal is a float: Ibis does not translate them for Spark unless it has a connection of its own.
    """
    number, is_absent = _number(cell)
    scaled = ibis.least(ibis.greatest(number, 0), int(LARGEST)) * CENTS
    whole = scaled.floor()
    rest = (scaled - whole.cast("float64")) * 2
    is_up = (rest > 1) | ((rest == 1) & (whole % 2 == 1))
    cents = whole + ibis.ifelse(is_up, 1, 0)
    return ibis.cases(
        (is_absent, ibis.null("int64")),
        (number.isinf(), _INFINITE),
        (number < 0, -1),
        else_=cents,
    ).cast("int64")


def time_of(cell: Any, given: Columns) -> Any:
    """Return seconds of the clock since the beginning of the window: NULL is none, -1 is outside."""
    assert given.window is not None  # the settings have one for each column of times
    first, last = (day.date() for day in given.window)
    start, end = window_seconds(given.window)
    if given.time_format not in UNIX and (given.zone is None):
        day = cell.date() if cell.type().is_timestamp() else cell
        is_inside = (day >= _literal(first)) & (day <= _literal(last))
        seconds = day.delta(_literal(first), unit="day") * _DAY
        if cell.type().is_timestamp():
            second = cell.second().cast("float64").floor()  # of Spark with its fraction
            seconds = seconds + cell.hour() * _HOUR + cell.minute() * 60 + second
        inside = ibis.ifelse(is_inside, seconds, _OUTSIDE)
        return ibis.ifelse(cell.isnull(), ibis.null("int64"), inside).cast("int64")
    is_absent = cell.isnull()
    if given.time_format in UNIX:
        number, is_absent = _number(cell)
        moment = number / UNIX[given.time_format]
    else:
        moment = cell.epoch_seconds().cast("float64")
    # Moments two days from the window are outside of it in every zone.
    near = ibis.least(ibis.greatest(moment, start - 2 * _DAY), end + 2 * _DAY).floor()
    changes = (
        [] if given.zone is None else clock_changes(given.zone, start - 2 * _DAY, end + 2 * _DAY)
    )
    cases = [(near >= since, near + ahead - start) for since, ahead in reversed(changes)]
    seconds = ibis.cases(*cases, else_=near - start) if cases else near - start
    inside = ibis.ifelse((seconds >= 0) & (seconds < end - start), seconds, _OUTSIDE)
    return ibis.ifelse(is_absent, ibis.null("int64"), inside).cast("int64")


def _literal(day: date) -> Any:
    return ibis.literal(day.isoformat()).cast("date")


def _number(cell: Any) -> tuple[Any, Any]:
    """Return numbers, 0 where there is none, and where that is."""
    number = cell.cast("float64")
    is_absent = cell.isnull() | number.isnan()
    return ibis.ifelse(is_absent, 0, number), is_absent


def clock_changes(zone: ZoneInfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return by how many seconds a clock is ahead of UTC between two moments (public).

    Args:
        zone: Zone of the clock.
        first: The first moment, in seconds since 1970.
        last: The last one.

    Returns:
        Moments from which a number of seconds holds, and these numbers, in ascending order.
    """
    changes = [(first, _ahead(zone, first))]
    for hour in range(first, last, _HOUR):
        before, after = _ahead(zone, hour), _ahead(zone, hour + _HOUR)
        if before != after:
            low, high = hour, hour + _HOUR
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _ahead(zone, middle) == before else (low, middle)
            changes.append((high, after))
    return changes


def _ahead(zone: ZoneInfo, moment: int) -> int:
    offset = datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset()
    return int((offset or timedelta()).total_seconds())


def kept_rows(rows: Any, row_of: RowOf, given: Columns, place: str) -> KeptRows:
    """Refuse numbers that are no amounts, and choose the rows that are transfers.

    Args:
        rows: Rows in Ibis with the columns of :func:`amount_of` and :func:`time_of`.
        row_of: Runs a query.
        given: The columns.
        place: Name of the table for an error.

    Raises:
        GraphFormatError: If an amount is negative or infinite, or if no row is a transfer.
    """
    has_values = is_inside = rows.source.notnull()  # of all rows
    is_bad = is_above = ~has_values
    names = ["source", "target"]
    if given.weight is not None:
        has_values = has_values & rows.amount.notnull()
        is_bad, is_above = rows.amount < 0, rows.amount > given.largest
        names.append("amount")
    if given.time is not None:
        has_values = has_values & rows.time.notnull()
        is_inside = rows.time >= 0
        names.append("time")
    is_kept = has_values & is_inside
    bad, *counts = row_of(
        rows.aggregate(
            bad=is_bad.sum(),
            kept=is_kept.sum(),
            absent=(~has_values).sum(),
            outside=(has_values & ~is_inside).sum(),
            above=(is_kept & is_above).sum(),
        )
    )
    if bad:
        raise GraphFormatError(
            f"{place}: {bad:,} amounts in column {str(given.weight)!r} are negative or infinite\n"
            "expected amounts of 0 or more\n"
            "make a view that writes them as transfers in the other direction, or leave them out: where"
        )
    found = RowCounts(*counts)
    summary = described(given, found, place)
    return KeptRows(rows.filter(is_kept).select(*names), found.absent + found.outside, summary)
