"""Checks of the amounts and times of a table, before anything is learned, and its rows that are transfers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lightning_dpg.datamodules.table_cells import (
    CLOCK,
    DAY,
    MOMENT,
    NEGATIVE,
    NO_NUMBER,
    NO_TIME,
    clock_changes,
)
from lightning_dpg.formats.transfer_columns import (
    UNIX,
    RowCounts,
    TransferColumns,
    described,
    negative_amount,
    no_number,
    no_time,
    window_seconds,
    zone_missing,
    zone_unneeded,
)
from lightning_dpg.graph.node_names import GraphFormatError

_DAY = 86_400

RowOf = Callable[[Any], list[Any]]
"""Run a query of Ibis of one row."""


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


def kept_rows(rows: Any, row_of: RowOf, given: TransferColumns, place: str) -> KeptRows:
    """Refuse cells that are no amount or time, and choose the rows that are transfers.

    Args:
        rows: Rows in Ibis with the columns of :func:`lightning_dpg.datamodules.table_cells.value_rows`.
        row_of: Runs a query.
        given: The columns.
        place: Name of the table for an error.

    Raises:
        GraphFormatError: If a cell is neither empty nor an amount or a time, or if no row is a transfer.
    """
    import ibis

    if given.weight is not None:
        _check_amounts(rows, row_of, given.weight, place)
    length = 0
    if given.time is not None and given.window is not None:
        first, end = window_seconds(given.window)
        length = end - first
        rows = rows.mutate(time=_clock(rows, row_of, given, place) - first)
    has_values = is_inside = ibis.literal(True)
    is_above = ibis.literal(False)
    names = ["source", "target"]
    if given.weight is not None:
        has_values = has_values & rows.amount.notnull()
        is_above = rows.amount > given.largest
        names.append("amount")
    if given.time is not None:
        has_values = has_values & rows.form.notnull()
        is_inside = (rows.time >= 0) & (rows.time < length)
        names.append("time")
    is_kept = has_values & is_inside
    counts = [int(count or 0) for count in row_of(
        rows.aggregate(
            kept=is_kept.sum(),
            absent=(~has_values).sum(),
            outside=(has_values & ~is_inside).sum(),
            above=(is_kept & is_above).sum(),
        )
    )]  # fmt: skip
    found = RowCounts(*counts)
    summary = described(given, found, place)
    return KeptRows(rows.filter(is_kept).select(*names), found.absent + found.outside, summary)


def _check_amounts(rows: Any, row_of: RowOf, name: str, place: str) -> None:
    """Refuse cells that are no amounts."""
    bad = rows.filter(rows.amount < 0)
    codes = [NO_NUMBER, NEGATIVE]  # in the order of files
    counts = row_of(bad.aggregate(**{f"n{-code}": (bad.amount == code).sum() for code in codes}))
    for code, count in zip(codes, counts, strict=True):
        if not int(count or 0):
            continue
        cell = _example(bad.filter(bad.amount == code).amount_text, row_of)
        if code == NEGATIVE:
            raise negative_amount(place, cell, name)
        raise no_number(place, cell, name, "an amount", "numbers such as 1234.56")


def _clock(rows: Any, row_of: RowOf, given: TransferColumns, place: str) -> Any:
    """Return the seconds of the clock of all rows; refuse times of other forms."""
    name, forms = str(given.time), (NO_TIME, DAY, CLOCK, MOMENT)
    counts = row_of(rows.aggregate(**{f"form_{k}": (rows.form == k).sum() for k in forms}))
    there = {form for form, count in zip(forms, counts, strict=True) if int(count or 0)}

    def cell(form: int) -> str:
        return _example(rows.filter(rows.form == form).time_text, row_of)

    if NO_TIME in there and given.time_format in UNIX:
        expected = f"whole numbers, as columns.time_format is {given.time_format!r}"
        raise no_number(place, cell(NO_TIME), name, "a number of seconds", expected)
    if NO_TIME in there:
        raise no_time(place, cell(NO_TIME), name)
    if len(there) > 1:
        one, other = sorted(there)[:2]
        raise GraphFormatError(
            f"{place}: column {name!r} holds {_FORMS[one]}, such as {cell(one)!r}, and {_FORMS[other]}, such "
            f"as {cell(other)!r}\nexpected one form in all rows\nmake a view that writes all of them in one "
            "form, and read the view"
        )
    for form in there:
        shown = f"{place}: {cell(form)!r} in column {name!r}"
        if form == MOMENT and given.zone is None:
            raise zone_missing(shown)
        if form != MOMENT and given.zone is not None:
            raise zone_unneeded(shown, given.zone)
    if given.zone is None or given.window is None:
        return rows.time
    first, end = window_seconds(given.window)
    # Other moments are outside of the window in every zone.
    return _ahead(rows.time, clock_changes(given.zone, first - 2 * _DAY, end + 2 * _DAY))


_FORMS = {
    DAY: "days without a time of day",
    CLOCK: "days with a time of day",
    MOMENT: "times with a zone",
}


def _ahead(times: Any, changes: list[tuple[int, int]]) -> Any:
    """Return moments by a clock, see :func:`clock_changes`."""
    import ibis

    (_, before), *others = changes
    if not others:
        return times + before
    cases = [(times >= moment, times + ahead) for moment, ahead in reversed(others)]
    return ibis.cases(*cases, else_=times + before)


def _example(cells: Any, row_of: RowOf) -> str:
    """Return one of some cells, of which there is one."""
    return str(row_of(cells.as_table().limit(1))[0])[:40]
