"""Reading of a graph for fits, evaluations, attacks and comparisons, in the words of all commands."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from lightning_dpg import datamodules
from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.loading import GraphSource
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.kind import Kind
from lightning_dpg.run.python_errors import readable_errors
from lightning_dpg.run.source import Form, data_settings, form_of, nested


def read(
    data: GraphSource,
    *,
    nodes: str | list[str] | None = None,
    names: Literal["auto", "ids", "numbers"] | None = None,
    source: str | int | None = None,
    target: str | int | None = None,
    undirected: bool = False,
    kind: Kind | None = None,
    missing_ids: Literal["refuse", "drop"] | None = None,
    weight: str | int | None = None,
    weight_max: float | None = None,
    time: str | int | None = None,
    time_window: str | Sequence[str | date] | None = None,
    time_format: str | None = None,
    time_zone: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    comments: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    attributes: Any = None,
    table: str | None = None,
    where: str | None = None,
) -> EdgeListDataModule:
    """Read a private graph once, for ``fit``, ``evaluate``, ``attack`` and ``benchmark``.

    Args:
        data: Built-in name, path, pattern of files or URL of a database, or an object of networkx,
            PyTorch Geometric, scipy, numpy, pandas or Ibis.
        nodes: Ids of all nodes (public), or a file of them; of a database TABLE(COLUMN).
        names: What a release calls the nodes: ``ids``, or ``numbers`` in a secret order; by default
            numbers for ids that were read off the edges, and ids that are listed.
        source: Column of the first id of each edge, by name or by number from 1 on.
        target: Column of the second id.
        undirected: Whether to drop the directions of a directed graph.
        kind: Kind of the graph; by default ``undirected``.
        missing_ids: ``refuse`` rows without an id, which is the default, or ``drop`` them.
        weight: Column of the amounts of transfers, for methods that learn them.
        weight_max: Largest amount that counts (public); larger ones are clipped to it.
        time: Column of the times of transfers, likewise.
        time_window: First and last day of the data (public).
        time_format: Format of the times in directives of ``strptime``, ``unix`` or ``unix_ms``; by
            default that of ISO 8601.
        time_zone: Zone of the clock, for times with a zone and for seconds since 1970.
        separator: Mark between the cells of an edge list: comma, semicolon, tab, bar or space.
        header: Whether the first row of an edge list holds the names of the columns.
        comments: Marks that begin a line of an edge list that is no row, such as ``#``, or ``none``.
        decimal: Decimal sign of amounts in text.
        thousands: Sign between thousands of amounts in text.
        attributes: Public attributes of the nodes: a file or a table with a row per node, of a
            database also TABLE(COLUMN), or ``from_graph``.
        table: Table of a database.
        where: Condition in SQL that a row of a table must fulfill. It is public.

    Returns:
        The data module, whose ``graph`` is a graph of PyTorch Geometric (private).

    Raises:
        CommandError: If the data or a setting is refused.

    Example:
        >>> import pandas as pd
        >>> import lightning_dpg as dpg
        >>> transfers = pd.DataFrame({"payer": ["a", "b"], "eur": [1, 2], "payee": ["b", "c"]})
        >>> data = dpg.read(transfers, source="payer", target="payee", nodes=["a", "b", "c", "d"])
        >>> data.graph.num_nodes
        4
    """
    given = {
        "nodes": nodes,
        "names": names,
        "source": source,
        "target": target,
        "undirected": undirected or None,
        "kind": kind,
        "missing_ids": missing_ids,
        "weight": weight,
        "weight_max": weight_max,
        "time": time,
        "time_window": time_window,
        "time_format": time_format,
        "time_zone": time_zone,
        "separator": separator,
        "header": header,
        "comments": comments,
        "decimal": decimal,
        "thousands": thousands,
        "attributes": attributes,
        "table": table,
        "where": where,
    }
    with readable_errors():
        module = data_of(data, {name: value for name, value in given.items() if value is not None})
        if not isinstance(module, EdgeListDataModule):
            raise CommandError(
                f"{data}: a set of graphs, expected one graph\ngive it to fit as it is"
            )
        return module


def data_of(data: Any, given: Mapping[str, Any], form: Form | None = None) -> Any:
    """Build the data module of one graph or of a set of graphs, and set it up.

    Args:
        data: Name, path, URL or object of one graph; name or folder of a set.
        given: Settings of :class:`lightning_dpg.run.source.Reading` by name.
        form: Form of the data; by default that of their name, and a graph for an object.

    Returns:
        An ``EdgeListDataModule``, ``EdgeTableDataModule`` or ``TUGraphDataModule``.
    """
    if isinstance(data, str | Path):
        section = data_settings(str(data), given, form)
    else:
        is_table = hasattr(data, "get_backend")  # of Ibis
        section = data_settings(None, given, "table" if is_table else "graph")
        section["init_args"]["source" if is_table else "name"] = data
    return set_up(section)


def real_graph(name: str, given: Mapping[str, Any]) -> Any:
    """Return a real graph for an evaluation or an attack, which read files themselves.

    Args:
        name: Built-in name, path, URL, or name of a set.
        given: Settings of :class:`lightning_dpg.run.source.Reading` by name.

    Returns:
        The name; a data module of a table, and where more than the kind is given.
    """
    is_plain = given.keys() <= {"kind", "undirected"}
    return name if is_plain and form_of(name, given) != "table" else data_of(name, given)


def set_up(section: Mapping[str, Any], stage: str = "fit") -> Any:
    """Build the data module of a section ``data``, and read its data.

    Args:
        section: Class and arguments, as :func:`lightning_dpg.run.source.data_settings` has them.
        stage: Stage of Lightning.
    """
    name = section["class_path"]
    module_class = getattr(datamodules, name) if "." not in name else find_class(name)
    module = module_class(**nested(section["init_args"]))
    module.prepare_data()
    module.setup(stage)
    return module
