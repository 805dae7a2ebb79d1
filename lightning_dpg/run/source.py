"""Where data come from, in the words of all commands and of Python, and refusal of missing files."""

import dataclasses
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lightning_dpg.errors import CommandError
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.edge_columns import check_header
from lightning_dpg.formats.graph_places import graph_file
from lightning_dpg.formats.node_lists import check_node_file, given_names
from lightning_dpg.formats.text_rows import is_edge_list
from lightning_dpg.graph.kind import Kind
from lightning_dpg.graph.node_names import user_path
from lightning_dpg.run.configurations import read_yaml, refuse_foreign_code
from lightning_dpg.run.shipped import built_in_graphs, built_in_sets, configured_classes
from lightning_dpg.run.words import Setting
from lightning_dpg.run_folder import (
    CONFIGURATION,
    check_checkpoint_file,
    release_folder,
    release_in,
)

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


_OF_GRAPH: Mapping[str, str] = {
    "nodes": "nodes.ids",
    "names": "nodes.names",
    "attributes": "nodes.attributes",
    **{
        name: f"columns.{name}"
        for name in (
            *("source", "target", "missing_ids"),
            *("weight", "weight_max", "time", "time_window", "time_format", "time_zone"),
        )
    },
    "kind": "kind",
    "undirected": "undirected",
}
_TEXT = ("separator", "header", "comments", "decimal", "thousands")
_OPTIONS: Mapping[Form, Mapping[str, str]] = {
    "graph": {**_OF_GRAPH, **{name: f"columns.{name}" for name in _TEXT}},
    "table": {**_OF_GRAPH, "table": "table", "where": "where"},
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


def config_beside(folder: Path) -> Path | None:
    """Find the configuration in the folder of a run, or beside a release; None if there is none.

    Args:
        folder: Folder of a run or of a release.
    """
    inside = folder if release_in(folder) != folder else folder.absolute().parent
    config = inside / CONFIGURATION
    return config if folder.is_dir() and config.is_file() else None


def is_run(name: str) -> bool:
    """Return whether a name is the folder of a run, with a release and its configuration."""
    folder = Path(name).expanduser()
    return release_in(folder) != folder and config_beside(folder) is not None


def section_of(config: Path, section: str) -> dict[str, Any]:
    """Read a section of the configuration of a run that names shipped classes only.

    Args:
        config: Its file.
        section: ``data``, for instance.

    Raises:
        CommandError: If there is no such section, or if it names other code.
    """
    refuse_foreign_code(config, "give the data, or --config {}", section)
    content = read_yaml(config).get(section)
    if not isinstance(content, dict) or "class_path" not in content:
        raise CommandError(f"{config}: no section {section} of a run")
    return content


def check_run(folder: str, reading: Reading, command: str) -> None:
    """Refuse a folder that is not one of a run, and settings beside a run that has its own.

    Args:
        folder: The only word of a command line.
        reading: Settings of the command line.
        command: Name of the command.

    Raises:
        CommandError: If the data are not known, or are named twice.
    """
    if config_beside(Path(folder)) is None:
        raise CommandError(
            f"{folder}: no folder of a run with a {CONFIGURATION}\n"
            f"give a run, or the real graph and a release: {command} REAL RELEASE"
        )
    if given := list(reading.given()):
        raise CommandError(
            f"--{given[0].replace('_', '-')}: the data of a run are read as in its {CONFIGURATION}\n"
            f"leave it out, or give the real graph: {command} REAL {folder}"
        )


def method_and_epsilon(run: Path) -> tuple[str, float]:
    """Return the shipped configuration of the method of a run, or its own one, and its epsilon.

    Args:
        run: Folder of the run.

    Raises:
        CommandError: If it is no folder of a run.
    """
    config = config_beside(run)
    if config is None:
        raise CommandError(f"{run}: no folder of a run with a {CONFIGURATION}")
    name = section_of(config, "model")["class_path"].rpartition(".")[2]
    epsilon = read_yaml(config).get("privacy", {}).get("epsilon", 1)
    return configured_classes().get(name, str(config)), float(epsilon)


_QUICK_BYTES = 4_000_000
"""Size below which a list of nodes is read twice."""


def refuse_missing_graph(name: str, reading: Reading = Reading()) -> None:
    """Refuse a graph that is nowhere. Names of sets, tables, folders of runs and databases pass.

    Args:
        name: Built-in name, name in the folder of real data, or path.
        reading: How it is read.

    Raises:
        GraphFormatError: If there is no such graph; the message is that of its reader.
    """
    user_path(name)  # of which a form is known
    if form_of(name, reading.given()) == "graph":
        graph_file(name, built_in_graphs())


def refuse_missing_published(name: str) -> None:
    """Refuse what was published if it is neither a release nor a graph.

    Args:
        name: Folder of a release or of a run, or a graph.

    Raises:
        GraphFormatError: If there is no such file.
    """
    user_path(name)
    if release_folder(name) is None:
        refuse_missing_graph(name)


def refuse_missing_inputs(
    real: str, published: Sequence[str] | None, reading: Reading, command: str
) -> None:
    """Refuse what a command compares with the real graph, and the graph, if one is nowhere.

    Args:
        real: The real graph or, alone, the folder of a run.
        published: Folders of releases or of runs, and graphs.
        reading: How the real graph is read.
        command: Name of the command.

    Raises:
        CommandError: If the folder is not one of a run, or has settings beside its own.
        GraphFormatError: If there is no such file.
    """
    if not published:
        check_run(real, reading, command)
        return
    refuse_missing_graph(real, reading)
    for name in published:
        refuse_missing_published(name)


def refuse_missing_files(command: str, settings: Sequence[Setting]) -> None:
    """Refuse a checkpoint, a list of nodes and a graph that are no files.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
        settings: Settings of its command line and of its files, later ones win.

    Raises:
        CommandError: If there is no such checkpoint, or none where the command needs one.
        GraphFormatError: If there is no such graph or list.
    """
    values = {(each.section, each.name): each.value for each in settings}
    is_written = ("ckpt_path", "") in values
    checkpoint = values.get(("ckpt_path", ""))
    if not is_written or isinstance(checkpoint, str):  # what is written may be an expression
        check_checkpoint_file(command, None if checkpoint == "null" else checkpoint)
    data_class = f"{values.get(('data', 'class_path'))}".rpartition(".")[2]
    if command == "predict" or data_class != "EdgeListDataModule":
        return
    nodes, graph = values.get(("data", "nodes.ids")), values.get(("data", "name"))
    if isinstance(nodes, str) and nodes not in ("null", "from_edges") and nodes[:1] != "[":
        path = user_path(nodes)
        check_node_file(path)
        if path.stat().st_size < _QUICK_BYTES:
            column = values.get(("data", "nodes.column"))
            given_names(path, column if isinstance(column, str) and column != "null" else None)
    if isinstance(graph, str) and graph != "null":
        file = graph_file(graph, built_in_graphs())
        names = ("source", "target", "weight", "time", "separator", "header", "comments")
        given = {name: values.get(("data", f"columns.{name}")) for name in names}
        told: dict[str, Any] = {
            name: str(value) for name, value in given.items() if value not in (None, "null")
        }
        if file is not None and is_edge_list(file.name) and told.keys() >= {"source", "target"}:
            header = told.pop("header", None)
            is_header = None if header is None else header.lower() == "true"
            check_header(file, Columns(**told, header=is_header))
