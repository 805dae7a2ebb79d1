"""SQL of amounts and times: the cells of a table as whole numbers, by the rules of files.

The rules are those of :mod:`lightning_dpg.formats.transfer_columns`. Each looks at one row alone.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lightning_dpg.datamodules.table_engine import TableEngine
from lightning_dpg.formats.transfer_columns import (
    LARGEST,
    STAMP,
    UNIX,
    TransferColumns,
    already_dates,
)
from lightning_dpg.graph.drawn_transfers import CENTS
from lightning_dpg.graph.node_names import MISSING_NAMES, GraphFormatError

NEGATIVE, NO_NUMBER = -1, -2
"""Amounts of cells that are none."""
NO_TIME, DAY, CLOCK, MOMENT = range(4)
"""Forms of times: none, a day, a day and time of day, and one with a zone."""
_NUMBER = (
    "[-+]?([0-9]{1,100}([.][0-9]{0,100})?|[.][0-9]{1,100})([eE][-+]?[0-9]{1,2})?"  # none overflows
)
_FAR = 2**53
_HOUR = 3600


class _Dialect(NamedTuple):
    """Expressions of an engine."""

    text: str
    real: str
    matches: str
    rounded: str
    """A number rounded to a whole one, to the even one of two that are as near."""
    is_nan: str
    is_finite: str
    days: str
    """Days of a date since 1970."""
    seconds: str
    """Seconds of a date and time without a zone since 1970, rounded down."""
    moment: str
    """Seconds of a moment since 1970, rounded down."""


_MICROSECONDS = "({0} - (({0} % 1000000) + 1000000) % 1000000) // 1000000"
_DIALECTS = {
    "duckdb": _Dialect(
        "TEXT",
        "DOUBLE",
        "REGEXP_FULL_MATCH({}, '{}')",
        "ROUND_EVEN({}, 0)",
        "ISNAN({})",  # statistics of Parquet, which know no NaN, make a comparison with it false
        "ISFINITE({})",
        "CAST({} - DATE '1970-01-01' AS BIGINT)",
        _MICROSECONDS.format("EPOCH_US(CAST({0} AS TIMESTAMP))"),
        _MICROSECONDS.format("EPOCH_US({0})"),
    ),
    "postgres": _Dialect(
        "TEXT",
        "DOUBLE PRECISION",
        "{} ~ '^({})$'",
        "ROUND({})",
        "{} = CAST('NaN' AS DOUBLE PRECISION)",
        "ISFINITE({})",
        "CAST({} - DATE '1970-01-01' AS BIGINT)",
        "CAST(FLOOR(EXTRACT(EPOCH FROM {})) AS BIGINT)",
        "CAST(FLOOR(EXTRACT(EPOCH FROM {})) AS BIGINT)",
    ),
    "pyspark": _Dialect(
        "STRING",
        "DOUBLE",
        "{} RLIKE '^({})$'",
        "RINT({})",
        "ISNAN({})",
        "{} IS NOT NULL",
        "CAST(DATEDIFF({}, DATE '1970-01-01') AS BIGINT)",
        "CAST(DATEDIFF(CAST({0} AS DATE), DATE '1970-01-01') AS BIGINT) * 86400 + HOUR({0}) * 3600 "
        "+ MINUTE({0}) * 60 + SECOND({0})",
        "UNIX_SECONDS({})",
    ),
}


def value_rows(
    engine: TableEngine, rows: str, given: TransferColumns, types: Mapping[str, str], place: str
) -> str:
    """Return the SQL of rows with whole numbers in place of the cells of amounts and times.

    Columns ``amount`` (in hundredths) and ``time`` (seconds since 1970) are NULL in rows without one, and
    ``form`` is that of the time. ``amount_text`` and ``time_text`` are the cells for an error.

    Args:
        engine: The engine.
        rows: The rows in SQL, with the cells as ``amount_cell`` and ``time_cell``.
        given: The columns.
        types: Types in Arrow of both cells, by the names of their columns.
        place: Name of the table for an error.

    Raises:
        GraphFormatError: If a column has a type whose cells are no amounts or times.
    """
    cells = _Cells(engine, _DIALECTS[engine.dialect])
    stages = list[dict[str, str]]()
    if given.weight is not None:
        kind = _kind(types[given.weight])
        if kind not in ("number", "text"):
            raise _unfit(place, given.weight, types[given.weight], "numbers, or texts of numbers")
        stages += [*cells.number("amount", kind), cells.amount(kind)]
    if given.time is not None:
        stages += cells.times(given, types[given.time], place)
    sql = rows
    for number, stage in enumerate(stages):
        added = ", ".join(f"{expression} AS {name}" for name, expression in stage.items())
        sql = f"SELECT *, {added} FROM ({sql}) AS stage_{number}"
    return sql


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


class _Cells(NamedTuple):
    """Stages of the SQL of cells: expressions by the names of the columns that they add."""

    engine: TableEngine
    dialect: _Dialect

    def number(self, name: str, kind: str) -> list[dict[str, str]]:
        """Add the number of a cell, whether there is none, and whether it is no number."""
        cell, dialect = f"{name}_cell", self.dialect
        if kind == "number":
            number = f"CAST({cell} AS {dialect.real})"
            infinite = ", ".join(f"CAST('{word}' AS {dialect.real})" for word in _INFINITE)
            return [
                {f"{name}_number": number, f"{name}_text": f"CAST({cell} AS {dialect.text})"},
                {
                    f"{name}_absent": f"({cell} IS NULL OR {dialect.is_nan.format(f'{name}_number')})",
                    f"{name}_odd": f"({name}_number IN ({infinite}))",
                },
            ]
        text = f"{name}_text"
        matches = dialect.matches.format(text, _NUMBER)
        return [
            {text: self._text(cell)},
            {f"{name}_absent": self._is_missing(text), f"{name}_odd": f"(NOT {matches})"},
            {
                f"{name}_number": f"CAST(CASE WHEN {name}_absent OR {name}_odd THEN '0' ELSE {text} END "
                f"AS {dialect.real})"
            },
        ]

    def amount(self, kind: str) -> dict[str, str]:
        """Add the amount in hundredths."""
        bounded = f"LEAST(GREATEST(amount_number, 0), {LARGEST:.0f})"
        cents = f"CAST({self.dialect.rounded.format(f'{bounded} * {CENTS}')} AS BIGINT)"
        return {
            "amount": f"CASE WHEN amount_absent THEN NULL WHEN amount_odd THEN {NO_NUMBER} "
            f"WHEN amount_number < 0 THEN {NEGATIVE} ELSE {cents} END"
        }

    def times(self, given: TransferColumns, arrow_type: str, place: str) -> list[dict[str, str]]:
        """Add the seconds of a time, and its form."""
        kind, name, form = _kind(arrow_type), str(given.time), given.time_format
        if form in UNIX:
            if kind not in ("number", "text"):
                raise _unfit(
                    place, name, arrow_type, f"numbers, as columns.time_format is {form!r}"
                )
            return [*self.number("time", kind), *self._unix(UNIX[form])]
        if kind in ("day", "clock", "moment"):
            if form is not None:
                raise already_dates(place, name, form)
            return self._stamps(kind)
        if kind != "text":
            raise _unfit(
                place,
                name,
                arrow_type,
                "dates, timestamps or texts such as 2026-01-31 14:05; for seconds since 1970 set\n"
                "columns.time_format to unix, or for milliseconds to unix_ms (--time-format unix)",
            )
        if form is not None:
            raise GraphFormatError(
                f"{place}: column {name!r} holds texts, and columns.time_format {form!r} is for files that "
                "EdgeListDataModule reads\nexpected texts such as 2026-01-31 14:05, or timestamps\n"
                "make a view that casts the texts to timestamps, and read the view without the format"
            )
        return self._texts()

    def _unix(self, per_second: int) -> list[dict[str, str]]:
        number = f"LEAST(GREATEST(time_number, -{_FAR}), {_FAR})"
        rest = f"MOD(MOD(time_units, {per_second}) + {per_second}, {per_second})"
        seconds = f"CAST((time_units - {rest}) / {per_second} AS BIGINT)"
        return [
            {"time_units": f"CAST(FLOOR({number}) AS BIGINT)"},
            {
                "time": f"CASE WHEN time_absent THEN NULL ELSE {seconds} END",
                "form": f"CASE WHEN time_absent THEN NULL WHEN time_odd THEN {NO_TIME} ELSE {MOMENT} END",
            },
        ]

    def _stamps(self, kind: str) -> list[dict[str, str]]:
        dialect = self.dialect
        is_finite = dialect.is_finite.format("time_cell")
        seconds = {
            "day": f"{dialect.days.format('time_there')} * 86400",
            "clock": dialect.seconds.format("time_there"),
            "moment": dialect.moment.format("time_there"),
        }[kind]
        form = {"day": DAY, "clock": CLOCK, "moment": MOMENT}[kind]
        return [
            {
                "time_there": f"CASE WHEN {is_finite} THEN time_cell END",
                "time_text": f"CAST(time_cell AS {dialect.text})",
            },
            {
                "time": f"CAST({seconds} AS BIGINT)",
                "form": f"CASE WHEN time_cell IS NULL THEN NULL WHEN time_there IS NULL THEN {NO_TIME} "
                f"ELSE {form} END",
            },
        ]

    def _texts(self) -> list[dict[str, str]]:
        """Read texts by the places of their characters, which the pattern fixes up to the minute."""
        matches = self.dialect.matches.format("time_text", STAMP.pattern)
        zoned = "(time_sign > 0 OR SUBSTR(time_rest, LENGTH(time_rest), 1) IN ('Z', 'C'))"
        is_leap = "(MOD(time_y, 4) = 0 AND MOD(time_y, 100) <> 0) OR MOD(time_y, 400) = 0"
        last = f"CASE WHEN time_m IN (4, 6, 9, 11) THEN 30 WHEN time_m <> 2 THEN 31 WHEN {is_leap} THEN 29 "
        last += "ELSE 28 END"
        of_zone = f"{_whole('time_zone', 1)} * 3600 + {_whole('time_zone', 3)} * 60"
        day = self.dialect.days.format(
            "CAST(CASE WHEN time_is_day THEN SUBSTR(time_stamp, 1, 10) ELSE '1970-01-01' END AS DATE)"
        )
        return [
            {"time_text": self._text("time_cell")},
            {"time_absent": self._is_missing("time_text"), "time_fits": f"({matches})"},
            {
                "time_stamp": "CASE WHEN time_fits AND NOT time_absent THEN time_text "
                "ELSE '1970-01-01' END"
            },
            {"time_rest": "SUBSTR(time_stamp, 17)"},
            {
                "time_y": _whole("time_stamp", 1, 4),
                "time_m": _whole("time_stamp", 6),
                "time_d": _whole("time_stamp", 9),
                "time_hour": _whole("time_stamp", 12),
                "time_minute": _whole("time_stamp", 15),
                "time_second": _whole(
                    "CASE WHEN SUBSTR(time_rest, 1, 1) = ':' THEN time_rest ELSE '' END", 2
                ),
                "time_sign": "POSITION('+' IN time_rest) + POSITION('-' IN time_rest)",
            },
            {
                "time_zone": "CASE WHEN time_sign > 0 THEN REPLACE(SUBSTR(time_rest, time_sign + 1), ':', '') "
                "ELSE '' END",
                "time_is_day": "(time_fits AND time_y > 0 AND time_m BETWEEN 1 AND 12 "
                f"AND time_d BETWEEN 1 AND {last})",
            },
            {
                "time": f"{day} * 86400 + time_hour * 3600 + time_minute * 60 + time_second - ({of_zone}) * "
                "CASE WHEN POSITION('+' IN time_rest) > 0 THEN 1 ELSE -1 END",
                "form": f"CASE WHEN time_absent THEN NULL WHEN NOT time_is_day OR time_hour > 23 "
                f"OR time_minute > 59 OR time_second > 59 THEN {NO_TIME} "
                f"WHEN LENGTH(time_stamp) = 10 THEN {DAY} WHEN {zoned} THEN {MOMENT} ELSE {CLOCK} END",
            },
        ]

    def _text(self, cell: str) -> str:
        return f"TRIM(BOTH '{self.engine.spaces}' FROM CAST({cell} AS {self.dialect.text}))"

    def _is_missing(self, text: str) -> str:
        words = ", ".join(f"'{word}'" for word in sorted(MISSING_NAMES))
        return f"({text} IS NULL OR LOWER({text}) IN ({words}))"


_INFINITE = ("Infinity", "-Infinity")


def _whole(text: str, start: int, length: int = 2) -> str:
    """Return the SQL of the number in some characters of a text, 0 where there are none."""
    return f"CAST('0' || SUBSTR({text}, {start}, {length}) AS BIGINT)"


def _kind(arrow_type: str) -> str:
    """Return what a type of Arrow holds."""
    if re.fullmatch(r"u?int\d+|halffloat|float|double", arrow_type):
        return "number"
    if arrow_type.startswith("date32"):
        return "day"
    if arrow_type.startswith("timestamp"):
        return "moment" if "tz=" in arrow_type else "clock"
    is_nested = "<" in arrow_type and not arrow_type.startswith(("dictionary", "extension"))
    if arrow_type.startswith("decimal") or ("string" in arrow_type and not is_nested):
        return "text"  # the text of a decimal is exact
    return "other"


def _unfit(place: str, name: str, arrow_type: str, expected: str) -> GraphFormatError:
    return GraphFormatError(
        f"{place}: column {name!r} holds {arrow_type}\nexpected {expected}\n"
        "make a view that casts it, and read the view"
    )
