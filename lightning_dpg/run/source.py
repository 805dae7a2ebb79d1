"""Where a graph or a set of graphs comes from, in the words that all commands and Python share."""

import dataclasses
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lightning_dpg.errors import CommandError
from lightning_dpg.graph.kind import Kind
from lightning_dpg.run.shipped_data import built_in_sets

Form = Literal["graph", "table", "set"]
"""One graph that is read into memory, one in a table that an engine reads, or a set of graphs."""

_CLASSES: Mapping[Form, str] = {
    "graph": "EdgeListDataModule",
    "table": "EdgeTableDataModule",
    "set": "TUGraphDataModule",
}
_SCHEMES = ("duckdb://", "postgresql://", "postgres://", "spark://")
_TABLES = (".parquet", ".duckdb")
_PATTERN = "*?["


@dataclass(frozen=True)
class Reading:
    """How a graph is read.

    Attributes:
        nodes: Ids of all nodes (public): a file of one id per line, FILE(COLUMN) of a table in CSV or
            Parquet, or TABLE(COLUMN) of the same database; by default the ids of the attributes, or
            those that occur in the edges.
        source: Column of the first id of each edge, by name or by number from 1 on.
        target: Column of the second id.
        undirected: Drop the directions of a directed graph.
        kind: Kind of the graph; by default ``undirected``.
        missing_ids: Rows without an id: ``refuse`` them, which is the default, or ``drop`` them.
        weight: Column of the amounts, for methods that learn them.
        weight_max: Largest amount that counts (public); larger ones are clipped to it.
        time: Column of the times, for methods that learn them.
        time_window: First and last day of the data (public), such as 2026-01-01,2026-06-30.
        time_format: Format of the times, such as %d/%m/%Y, unix or unix_ms; by default ISO 8601.
        time_zone: Zone of the clock, for times with a zone and for seconds since 1970.
        separator: Mark between the cells of an edge list: comma, semicolon, tab, bar or space.
        header: Whether the first row of an edge list holds the names of the columns.
        comments: Marks that begin a line of an edge list that is no row, such as #, or none.
        decimal: Decimal sign of amounts in text: . or ,
        thousands: Sign between thousands of amounts in text.
        attributes: Public attributes of the nodes: a file with a row per node, TABLE(COLUMN) of the
            same database with its column of ids, or ``from_graph``.
        table: Table of a database, NAME or SCHEMA.NAME.
        where: Condition in SQL that a row of a table must fulfill. It is public.
    """

    nodes: str | None = None
    source: str | None = None
    target: str | None = None
    undirected: bool = False
    kind: Kind | None = None
    missing_ids: Literal["refuse", "drop"] | None = None
    weight: str | None = None
    weight_max: float | None = None
    time: str | None = None
    time_window: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    separator: str | None = None
    header: bool | None = None
    comments: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    attributes: str | None = None
    table: str | None = None
    where: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, by name."""
        fields = {field: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {field.name: value for field, value in fields.items() if value != field.default}


_VALUES: Mapping[str, str] = {
    name: f"columns.{name}"
    for name in ("weight", "weight_max", "time", "time_window", "time_format", "time_zone")
}
_TEXT = ("separator", "header", "comments", "decimal", "thousands")
_OPTIONS: Mapping[Form, Mapping[str, str]] = {
    "graph": {
        "nodes": "nodes.ids",
        "names": "nodes.names",
        "attributes": "nodes.attributes",
        "source": "columns.source",
        "target": "columns.target",
        "missing_ids": "columns.missing_ids",
        **_VALUES,
        **{name: f"columns.{name}" for name in _TEXT},
        "kind": "kind",
        "undirected": "undirected",
    },
    "table": {
        "nodes": "nodes.ids",
        "names": "nodes.names",
        "attributes": "nodes.attributes",
        "source": "columns.source",
        "target": "columns.target",
        "missing_ids": "columns.missing_ids",
        **_VALUES,
        "kind": "kind",
        "undirected": "undirected",
        "table": "table",
        "where": "where",
    },
    "set": {"undirected": "undirected"},
}
"""Setting of the data module of each form, by the name of a setting of :class:`Reading`, and ``names``."""

_OF = {"graph": "a graph in a file", "table": "a table", "set": "a set of graphs"}


def form_of(name: str | None, given: Collection[str] = ()) -> Form:
    """Return the form of data by their name, without reading them.

    Args:
        name: Built-in name, name in the folder of real data, path, pattern of files or URL; None if
            only settings are known.
        given: Names of the settings that are given; ``table`` and ``where`` are those of a table.
    """
    if "table" in given or "where" in given:
        return "table"
    if name is None:
        return "graph"
    is_pattern = any(sign in name for sign in _PATTERN) and not Path(name).exists()
    if (
        name.startswith(_SCHEMES)
        or name.lower().removesuffix(".gz").endswith(_TABLES)
        or is_pattern
    ):
        return "table"
    return "set" if is_set(name) else "graph"


def is_set(name: str) -> bool:
    """Return whether data are a set of graphs: built in, of the folder of real data, or a folder."""
    root = os.environ.get("LIGHTNING_DPG_DATA")
    if root and "/" not in name and (Path(root).expanduser() / "tu" / name).is_dir():
        return True
    return name in built_in_sets() or Path(name).expanduser().is_dir()


def data_settings(
    name: str | None, given: Mapping[str, Any], form: Form | None = None
) -> dict[str, Any]:
    """Return the section ``data`` of a configuration.

    Args:
        name: Built-in name, name in the folder of real data, path, pattern of files or URL; None to
            leave that of another configuration.
        given: Settings of :class:`Reading` by name, without those that have their default.
        form: Form of the data; by default that of :func:`form_of`.

    Returns:
        Short name of the data module as ``class_path``, and its ``init_args`` that are given, in
        which a point separates a group from its setting, as in ``nodes.ids``.

    Raises:
        CommandError: If a setting is none of such data.
    """
    form = form or form_of(name, given)
    options = _OPTIONS[form]
    if others := [each for each in given if each not in options]:
        fitting = ", ".join(f"--{each.replace('_', '-')}" for each in options)
        raise CommandError(
            f"--{others[0].replace('_', '-')} is no option of {_OF[form]}"
            + (f", and {name} is one" if name else "")
            + f"\nthere are: {fitting}"
        )
    arguments = {options[key]: value for key, value in given.items()}
    if form == "graph" and isinstance(nodes := given.get("nodes"), str):
        arguments |= _file_and_column(nodes)
    if name is not None:
        is_file = name.endswith(".duckdb") and "://" not in name
        key = "source" if form == "table" else "name"
        arguments = {key: f"duckdb:///{name}" if is_file else name, **arguments}
    return {"class_path": _CLASSES[form], "init_args": arguments}


def _file_and_column(nodes: str) -> dict[str, str]:
    """Part ``customers.csv(Customer Id)`` into the file and its column of ids."""
    parts = re.fullmatch(r"(.+?)\((.+)\)", nodes)
    if parts is None or Path(nodes).expanduser().exists():
        return {"nodes.ids": nodes}
    return {"nodes.ids": parts[1], "nodes.column": parts[2].strip("\"'")}


def long_options(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section ``data`` as options of ``fit``, each with its value.

    Args:
        section: Result of :func:`data_settings`.
    """
    for name, value in section["init_args"].items():
        yield f"--data.{name}={str(value).lower() if isinstance(value, bool) else value}"


def nested(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with a dictionary for each group.

    Args:
        arguments: Arguments of :func:`data_settings`, such as ``{"nodes.ids": "people.txt"}``.
    """
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        group, point, field = name.partition(".")
        if point:
            found.setdefault(group, {})[field] = value
        else:
            found[name] = value
    return found
