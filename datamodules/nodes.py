"""Settings of data modules: the nodes of a graph, and the columns of its relation."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias
from zoneinfo import ZoneInfo

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.datamodules.node_attributes import AttributeSource
from lightning_dpg.datamodules.private_columns import Domain, read_domains
from lightning_dpg.datamodules.private_labels import domain
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.conversion import NodeSet
from lightning_dpg.formats.text_rows import TextForm
from lightning_dpg.formats.transfer_columns import UNIX, TransferColumns
from lightning_dpg.graph.attributes import PRIVATE, PRIVATE_LABEL, Policy
from lightning_dpg.graph.drawn_tables import CENTS

if TYPE_CHECKING:
    Classes: TypeAlias = str | Sequence[object]
    ColumnNames: TypeAlias = str | Sequence[str]
    Domains: TypeAlias = str | Mapping[str, Sequence[object]]
    Days: TypeAlias = str | Sequence[str | date]
else:
    # For the command line:
    Classes = str | list[str] | list[int]
    ColumnNames = str | list[str]
    Domains = str | dict[str, list[str] | list[float]]
    Days = str | list[str]


@dataclass(frozen=True)
class Nodes:
    """Nodes of a graph, and the public facts about them.

    Attributes:
        ids: Ids of all nodes (public), or a file of them: one per line, or a table in CSV or
            Parquet. ``from_edges``: the ids that occur on the private lines of an edge list, which
            becomes an assumption of the guarantee. By default the node table of the graph or, of an
            edge list, ``from_edges``. For :class:`EdgeTableDataModule` also a ``TABLE(COLUMN)`` of
            its database, such as ``customers(id)``, or ``FILE(COLUMN)``.
        column: Column of the table of nodes that holds the ids.
        names: ``numbers`` publishes numbers from 0 to N - 1 in a secret random order instead of
            ids, and leaves a key file in the run folder; ``ids`` publishes the ids. ``auto`` takes
            numbers for ids that were read off the private lines, which nobody has listed, and where
            columns are private: a drawn row beside a name would be taken for that of its bearer.
        left: Ids of all left nodes of a bipartite graph (public), in a form of ``ids``. By default
            the sides are those of the graph or, of an edge list, of its two columns.
        right: Ids of all right nodes (public).
        side_column: Column of the table of nodes that holds the side, one of two values.
        attributes: Public attributes: a table in CSV, TSV or Parquet with a row per node, whose ids
            are also the nodes unless ``ids`` is given or the graph is bipartite; or ``from_graph``:
            those in the graph itself. For :class:`EdgeTableDataModule` also a ``TABLE(COLUMN)`` of
            its database, with the column of ids. By default none are used or published.
        policy: Policy of each attribute by its name. ``public``, the default, finds out whether
            it holds numbers, categories or text; ``number``, ``category``, ``text`` and ``label``
            (classes) say so; ``drop`` leaves it out; ``private`` makes it a private column, which
            :class:`Attributed` protects at ``privacy.row_epsilon``, and other methods refuse;
            ``private_label`` makes it the classes of the nodes, which methods of classes protect at
            that budget. Which nodes have a label stays public.
        classes: All classes that the private label can have (public), also as a text with commas.
            They must not be collected from the labels.
        private_columns: Columns of the table whose policy is ``private``, also as a text with commas.
        domains: All values of each private column (public) by its name, or a YAML file of them: a
            list of texts for categories, or of ascending numbers for borders of bins. A number
            outside of the bins counts in the outer one. All other values are ``other``, which each
            domain has, and so are empty cells unless a domain names ``missing``. The values must not
            be collected from the data.
    """

    ids: str | Sequence[str] | None = None
    column: str | None = None
    names: Literal["auto", "ids", "numbers"] = "auto"
    left: str | Sequence[str] | None = None
    right: str | Sequence[str] | None = None
    side_column: str | None = None
    attributes: AttributeSource | None = None
    policy: dict[str, Policy] | None = None
    classes: Classes | None = None
    private_columns: ColumnNames | None = None
    domains: Domains | None = None

    def __post_init__(self) -> None:
        """Refuse another word for names, and private labels or columns without their values."""
        if self.names not in ("auto", "ids", "numbers"):
            raise Refusal(f"names must be 'auto', 'ids' or 'numbers', got {self.names!r}")
        _ = self.value_domains  # refused before anything is read
        labels = [name for name, policy in self.policies.items() if policy == PRIVATE_LABEL]
        if len(labels) > 1:
            raise Refusal(f"nodes.policy: {' and '.join(labels)} are private labels, expected one")
        if labels:
            domain(self.classes)
        elif self.classes is not None:
            raise Refusal(
                "nodes.classes are those of a private label, and no column is one\n"
                "name it (--data.nodes.policy.COLUMN private_label), or leave the classes out: "
                "those of public labels are read from the column"
            )

    def are_numbered(self, node_set: NodeSet) -> bool:
        """Return whether a release has numbers in place of the ids, with the meaning of ``auto``.

        Args:
            node_set: Origin of the ids. Ids from 0 to the largest one tell their number only.
        """
        if self.names != "auto":
            return self.names == "numbers"
        return bool(self.value_domains) or node_set is NodeSet.LINES

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """Policy of each attribute that has one, private columns included.

        Raises:
            Refusal: If a private column has another policy as well.
        """
        given = self.private_columns or ()
        listed = given.split(",") if isinstance(given, str) else given
        columns = [str(name).strip() for name in listed]
        policies: dict[str, Policy] = dict(self.policy or {})
        for name in columns:
            if policies.setdefault(name, "private") != PRIVATE:
                raise Refusal(
                    f"nodes.private_columns: {name} has the policy {policies[name]!r}\n"
                    "name it in one of private_columns and policy"
                )
        return policies

    @cached_property
    def value_domains(self) -> dict[str, Domain]:
        """Domain of each private column (public).

        Raises:
            GraphFormatError: If one is missing, of no private column, or of another form.
        """
        columns = [name for name, policy in self.policies.items() if policy == PRIVATE]
        return read_domains(self.domains, columns) if columns or self.domains is not None else {}

    @classmethod
    def of(cls, settings: "NodesGiven") -> "Nodes":
        """Build nodes from ids alone, or from the settings of a configuration."""
        if isinstance(settings, Nodes):
            return settings
        return cls(**settings) if isinstance(settings, Mapping) else cls(settings)


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

    @classmethod
    def of(cls, settings: "ColumnsGiven") -> "Columns":
        """Build columns from the settings of a configuration."""
        return cls(**settings) if isinstance(settings, Mapping) else settings

    @property
    def pair(self) -> tuple[str, str] | None:
        """Both columns; None to recognize them."""
        if self.source is None and self.target is None:
            return None
        if self.source is None or self.target is None:
            raise MisconfigurationException(
                "set both columns.source and columns.target, or neither"
            )
        return str(self.source), str(self.target)

    @cached_property
    def text(self) -> TextForm:
        """What is said of the form of an edge list in text."""
        return TextForm.of(self.separator, self.header, self.comments)

    @property
    def drops_missing(self) -> bool:
        """Whether rows without an id are dropped."""
        return self.missing_ids == "drop"

    @cached_property
    def transfers(self) -> TransferColumns | None:
        """Columns of amounts and times; None if neither is named.

        Raises:
            Refusal: If a bound or a window is missing.
        """
        if self.weight is None and self.time is None:
            return None
        return TransferColumns(
            None if self.weight is None else str(self.weight),
            None if self.weight is None else _bound(self.weight_max),
            None if self.time is None else str(self.time),
            None if self.time is None else _window(self.time_window),
            self.time_format if self.time_format is None else _format(self.time_format),
            None if self.time_zone is None else _zone(self.time_zone),
            *_signs(self.decimal, self.thousands),
        )

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
        _ = whole.transfers  # refused before anything is read
        return whole


_MOST = 1e9
"""Largest bound of amounts: sums of many millions of them stay whole numbers of 64 bits."""


def _bound(bound: float | None) -> float:
    """Return a bound of amounts.

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
    return float(bound)


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


def _format(form: str) -> str:
    """Return a format of times.

    Raises:
        Refusal: If it does not tell year, month and day, or tells a zone by its abbreviation.
    """
    if form in UNIX:
        return form
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
    return form


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


def _sign(sign: str) -> str:
    """Return a sign within numbers.

    Raises:
        Refusal: If it is none.
    """
    if sign not in (".", ",", "'", " ", "_"):
        raise Refusal(
            f"columns.decimal and columns.thousands must be signs such as , and . got {sign[:9]!r}"
        )
    return sign


def _signs(decimal: str | None, thousands: str | None) -> tuple[str, str]:
    """Return the decimal sign and the sign between thousands.

    Raises:
        Refusal: If they are the same.
    """
    if (decimal or ".") == thousands:
        raise Refusal(
            f"columns.thousands is {thousands!r}, and so is the decimal sign\nset columns.decimal "
            "(--decimal ,)"
        )
    return decimal or ".", thousands or ""


_SETTINGS_OF: dict[str, dict[str, Callable[[Any], object]]] = {
    "weight": {"weight_max": _bound, "decimal": _sign, "thousands": _sign},
    "time": {"time_window": _window, "time_format": _format, "time_zone": _zone},
}
"""Settings of each column of values, with the function that reads and checks them."""

if TYPE_CHECKING:
    NodesGiven: TypeAlias = Nodes | str | Sequence[str] | Mapping[str, Any] | None
    ColumnsGiven: TypeAlias = Columns | Mapping[str, Any]
else:
    NodesGiven, ColumnsGiven = Nodes, Columns  # which the command line takes as groups of options
