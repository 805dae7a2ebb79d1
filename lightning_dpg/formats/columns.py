"""What the user says of the columns of a relation, checked before anything is read. It needs no PyTorch."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias
from zoneinfo import ZoneInfo

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.text_rows import TextForm
from lightning_dpg.graph.kind import CENTS
from lightning_dpg.graph.node_names import GraphFormatError

if TYPE_CHECKING:
    Days: TypeAlias = str | Sequence[str | date]
else:
    Days = str | list[str]  # for the command line

UNIX = {"unix": 1, "unix_ms": 1000}
"""Formats of times that are numbers, with their units in a second since 1970."""


@dataclass(frozen=True)
class Columns:
    """Columns of an edge list or a table that hold the relation.

    Attributes:
        source: Column of the first id of each edge, by name or, in a file without a header, by number
            from 1 on. By default the first two columns of an edge list; of a table those with names
            such as ``source`` and ``target``.
        target: Column of the second id.
        missing_ids: Whether to ``refuse`` rows without an id or to ``drop`` them.
        weight: Column of the amounts, by name or by number from 1 on, for methods that learn them.
            By default none are read. Each row then is a transfer, and one without an amount or
            without a time is left out.
        weight_max: Largest amount that counts (public); larger ones are clipped to it.
        time: Column of the times, likewise.
        time_window: First and last day of the data (public), such as ``2026-01-01,2026-06-30``; rows
            of other days are left out.
        time_format: Format of the times in directives of ``strptime``, such as ``%d/%m/%Y %H:%M``, or
            ``unix`` and ``unix_ms`` for seconds and milliseconds since 1970. By default that of
            ISO 8601, such as ``2026-01-31 14:05``.
        time_zone: Zone of the clock, such as ``Europe/Berlin``, for times with a zone and for seconds
            since 1970. Other times are taken as they are written.
        separator: Mark between the cells of an edge list: ``comma``, ``semicolon``, ``tab``, ``bar`` or
            ``space``. By default that of the header or, without one, that by which all rows agree.
        header: Whether the first row of an edge list holds the names of the columns. By default it
            does if they are known or named.
        comments: Marks that begin a line of an edge list that is no row, or ``none``. By default
            ``#`` and ``%`` do, and ids that begin so are refused.
        decimal: Decimal sign of amounts in text.
        thousands: Sign between thousands of amounts in text. By default none is read.
    """

    source: str | int | None = None
    target: str | int | None = None
    missing_ids: Literal["refuse", "drop"] = "refuse"
    weight: str | int | None = None
    weight_max: float | None = None
    time: str | int | None = None
    time_window: Days | None = None
    time_format: str | None = None
    time_zone: str | None = None
    separator: str | None = None
    header: bool | None = None
    comments: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        """Refuse another word for missing ids, and bounds that are none or belong to no column."""
        _ = self.text
        if self.missing_ids not in ("refuse", "drop"):
            raise Refusal(f"missing_ids must be 'refuse' or 'drop', got {self.missing_ids!r}")
        for column, settings in _SETTINGS_OF.items():
            for name, check in settings.items():
                if (value := getattr(self, name)) is None:
                    continue
                if getattr(self, column) is None:
                    raise Refusal(
                        f"columns.{name} is set, and columns.{column} names no column\n"
                        f"name it (--{column} NAME), or leave columns.{name} out"
                    )
                check(value)
        if self.thousands == (self.decimal or "."):
            raise Refusal(
                f"columns.thousands is {self.thousands!r}, and so is the decimal sign\nset columns.decimal "
                "(--decimal ,)"
            )
        if self.weight_max is not None:
            object.__setattr__(self, "weight_max", float(self.weight_max))

    @property
    def pair(self) -> tuple[str, str] | None:
        """Both columns of ids; None to recognize them.

        Raises:
            Refusal: If one of them is set alone.
        """
        if self.source is None and self.target is None:
            return None
        if self.source is None or self.target is None:
            raise Refusal("set both columns.source and columns.target, or neither")
        return str(self.source), str(self.target)

    @cached_property
    def text(self) -> TextForm:
        """What is said of the form of an edge list in text."""
        return TextForm.of(self.separator, self.header, self.comments)

    @property
    def drops_missing(self) -> bool:
        """Whether rows without an id are dropped."""
        return self.missing_ids == "drop"

    @property
    def values(self) -> list[str]:
        """Columns of amounts and times that are read, in this order."""
        return [str(name) for name in (self.weight, self.time) if name is not None]

    @property
    def largest(self) -> int:
        """Largest amount that counts in hundredths; 0 without amounts."""
        return 0 if self.weight_max is None else round(self.weight_max * CENTS)

    @cached_property
    def window(self) -> tuple[datetime, datetime] | None:
        """First and last day of the times, both at midnight; None without times.

        Raises:
            Refusal: If it is missing.
        """
        return None if self.time is None else _window(self.time_window)

    @cached_property
    def zone(self) -> ZoneInfo | None:
        """Zone of the clock, for stamps with a zone and for seconds since 1970."""
        return None if self.time_zone is None else _zone(self.time_zone)

    def completed(self, facts: Mapping[str, Any]) -> "Columns":
        """Return the columns with bounds that are public facts of a data set, where none are set.

        Args:
            facts: ``weight_max`` and ``time_window`` of the data set, as far as they are public.

        Raises:
            Refusal: If a bound of a column is still missing.
        """
        whole = self
        for column, name in (("weight", "weight_max"), ("time", "time_window")):
            if getattr(self, column) is not None and getattr(self, name) is None and name in facts:
                whole = replace(whole, **{name: facts[name]})
        if whole.weight is not None:
            _bound(whole.weight_max)
        _ = whole.window  # refused before anything is read
        return whole


def refuse_columns(columns: Columns, origin: str) -> None:
    """Refuse columns of data that are no table of edges.

    Raises:
        GraphFormatError: If any are named.
    """
    if columns.values:
        raise GraphFormatError(
            f"{origin}: columns.weight and columns.time are for tables of edges\n"
            "expected an edge list in text or CSV, a Parquet file or a DataFrame, with a row per transfer"
        )
    if columns.pair is not None:
        raise GraphFormatError(
            f"{origin}: columns.source and columns.target are for edge lists and tables only"
        )


_MOST = 1e9
"""Largest bound of amounts: sums of many millions of them stay whole numbers of 64 bits."""


def _bound(bound: float | None) -> None:
    """Check a bound of amounts.

    Raises:
        Refusal: If it is missing, or no positive number of hundredths.
    """
    if bound is None:
        raise Refusal(
            "columns.weight_max is missing: the largest amount that counts; larger ones are clipped\n"
            "set it (--weight-max 1000) from public knowledge, such as a limit of a payment or a usual\n"
            "salary. A number that was looked up in the data would be a read that nobody pays.\n"
            "Totals lose what is clipped, and the noise of totals grows with the bound"
        )
    cents = bound * CENTS if 0 < bound <= _MOST else 0.0
    if cents < 1 or abs(cents - round(cents)) > 1e-6:
        raise Refusal(
            f"columns.weight_max must be a positive number with at most two decimals, up to {_MOST:,.0f}, "
            f"got {bound}\ngive larger amounts in another unit, such as thousands"
        )


def _window(days: Days | None) -> tuple[datetime, datetime]:
    """Return the first and the last day of a window, both at midnight.

    Raises:
        Refusal: If it is missing, or not two days in their order.
    """
    if days is None:
        raise Refusal(
            "columns.time_window is missing: the first and last day of the data; others are left out\n"
            "set it (--time-window 2026-01-01,2026-06-30) from public knowledge, such as the quarter of\n"
            "the export. Days that were looked up in the data would be a read that nobody pays"
        )
    texts = [str(day).strip() for day in (days.split(",") if isinstance(days, str) else days)]
    try:
        first, last = (
            datetime.fromisoformat(text) if _DAY.fullmatch(text) else _refuse_window(days)
            for text in texts
        )
    except ValueError:
        _refuse_window(days)
    return (first, last) if first <= last else _refuse_window(days)


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _refuse_window(days: Days) -> NoReturn:
    shown = days if isinstance(days, str) else ",".join(map(str, days))
    raise Refusal(
        f"columns.time_window must be the first and the last day, such as 2026-01-01,2026-06-30, got "
        f"{shown[:60]!r}"
    )


def _format(form: str) -> None:
    """Check a format of times.

    Raises:
        Refusal: If it does not tell year, month and day, or tells a zone by its abbreviation.
    """
    if form in UNIX:
        return
    example = datetime(2013, 11, 25, 16, 7, 8, tzinfo=UTC)
    try:
        read = datetime.strptime(example.strftime(form), form)
    except ValueError:
        read = datetime.min
    if read.date() != example.date() or "%Z" in form:
        raise Refusal(
            f"columns.time_format {form!r} does not tell the day, or tells the zone by %Z, which is "
            "ambiguous\nexpected directives of strptime with year, month and day, such as '%d/%m/%Y "
            "%H:%M', with %z for a zone\nor unix, unix_ms for seconds and milliseconds since 1970"
        )


def _zone(name: str) -> ZoneInfo:
    """Return a zone by its name.

    Raises:
        Refusal: If there is none.
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no name, a folder, or unknown
        raise Refusal(
            f"columns.time_zone: {name[:60]!r} is no zone that is known here\n"
            "expected a name such as Europe/Berlin or UTC; where zones are missing: pip install tzdata"
        ) from None


def _sign(sign: str) -> None:
    """Check a sign within numbers.

    Raises:
        Refusal: If it is none.
    """
    if sign not in (".", ",", "'", " ", "_"):
        raise Refusal(
            f"columns.decimal and columns.thousands must be signs such as , and . got {sign[:9]!r}"
        )


_SETTINGS_OF: dict[str, dict[str, Callable[[Any], object]]] = {
    "weight": {"weight_max": _bound, "decimal": _sign, "thousands": _sign},
    "time": {"time_window": _window, "time_format": _format, "time_zone": _zone},
}
"""Settings of each column of values, with the function that reads and checks them."""
