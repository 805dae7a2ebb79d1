"""Data of a call, a command or a run, opened: graphs and sets of graphs in any form, and their names."""

import copy
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytorch_lightning as pl
from torch_geometric.data import Data

from lightning_dpg import datamodules
from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule, TUGraphDataModule
from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS, SET_ASSUMPTIONS
from lightning_dpg.datamodules.database import BUILT_IN_DATABASES, DatabaseDataModule
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.datamodules.loading import BUILT_IN, GraphSource, load_reading
from lightning_dpg.datamodules.table_source import parquet_file
from lightning_dpg.errors import BookError, CommandError, Refusal
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.formats.kinds import in_kind
from lightning_dpg.graph.attributes import attach, encode
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.kind import Kind
from lightning_dpg.graph.node_names import SECRET_NUMBERS, NoEdgesError
from lightning_dpg.graph.pair_space import without_directions
from lightning_dpg.interfaces import HasIdentity, Identity
from lightning_dpg.release.release import Release
from lightning_dpg.release.writer import KEY
from lightning_dpg.run.loggers import public_name
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run.source import Form, config_beside, data_settings, form_of, nested, section_of
from lightning_dpg.run_folder import CONFIGURATION, SCHEMA


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
    given = dict(locals())  # all arguments but the data are settings
    del given["data"]
    given["undirected"] = undirected or None
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
        The name; a data module of a table, unless it is one Parquet file, and where more than the kind
        is given.
    """
    is_file = parquet_file(name) is not None or form_of(name, given) != "table"
    return name if is_file and given.keys() <= {"kind", "undirected"} else data_of(name, given)


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


# Sets with an assumption are cut from files in the folder of real data, whatever these hold.
_PUBLIC_SETS = {*BUILT_IN_SETS} - {*SET_ASSUMPTIONS}
_PUBLIC: dict[type, set[str]] = {
    EdgeListDataModule: {*BUILT_IN},
    GraphSetDataModule: _PUBLIC_SETS,
    TUGraphDataModule: _PUBLIC_SETS,
}
"""Names under which each data module reads a public graph.

A class of a user may read any other graph, and so does ``SubgraphDataModule`` from a folder of real
data with a graph of that name.
"""


class GraphName(NamedTuple):
    """Name of a graph or set of graphs in a report.

    Attributes:
        name: Name; of a file, its name without folders and suffix.
        is_public: Whether it is built in, and everybody has it.
    """

    name: str
    is_public: bool


def name_of_graph(source: Any, data_class: type) -> GraphName:
    """Name a graph, which is public only if it is built in.

    Args:
        source: Name, path, data module or object.
        data_class: Class that reads it, unless it is a data module.
    """
    if isinstance(source, pl.LightningDataModule):
        data_class, source = type(source), getattr(source, "source", source)
    if isinstance(source, str) and source in _PUBLIC.get(data_class, ()):
        return GraphName(source, is_public=True)
    if isinstance(source, str | Path):
        return GraphName(public_name(source), is_public=False)
    return GraphName(f"{type(source).__name__} given in Python", is_public=False)


def load(
    name: Any,
    undirected: bool,
    kind: str = "undirected",
    *,
    attributes: bool = False,
    labels: str | None = None,
    nodes: list[str] | None = None,
) -> Data:
    """Load a graph by its name or from a file, or take an object.

    Args:
        name: Name, path, graph of another library, or data module.
        undirected: Whether to drop the directions of a directed graph.
        kind: Kind as which to read it: ``undirected``, ``directed`` or ``bipartite``.
        attributes: Whether to read its attributes of nodes as ``x``, ``y`` and ``attribute_names``,
            where there are any.
        labels: Attribute that holds the classes; by default ``y`` of whole numbers.
        nodes: Names of all nodes, by default those of the source.

    Raises:
        CommandError: If it is not readable.
        NoEdgesError: If it has no edges.
    """
    if isinstance(name, EdgeListDataModule):
        return _of_module(name, kind, nodes)
    try:
        reading = load_reading(name, undirected=undirected or kind != "undirected", nodes=nodes)
        graph = in_kind(reading, kind).graph
        table = reading.attributes() if attributes else None
        if table is not None:
            policies = {} if labels is None else {labels: "label"}
            attach(graph, encode(table, graph.node_names, policies))
        return graph
    except NoEdgesError:
        raise
    except GraphFormatError as error:
        raise CommandError(str(error)) from error


def _of_module(module: EdgeListDataModule, kind: str, nodes: list[str] | None) -> Data:
    """Return the graph of a data module, which has its own settings."""
    if module.kind != kind:
        raise CommandError(
            f"the data are read as {module.kind}, and {kind} is asked for\n"
            f"set kind to {kind} (--kind {kind})"
        )
    assert nodes is None  # of files of a release
    return module.graph


def load_set(name: Any, undirected: bool) -> Data:
    """Load a set of graphs by its name or from a folder, or take a list.

    Args:
        name: Name, path, or list of graphs.
        undirected: Whether to read links of one direction as undirected edges.

    Returns:
        Union of the graphs, with their numbers of nodes ``sizes`` of shape ``(G,)`` and their labels
        ``y`` of shape ``(G,)``, if any.

    Raises:
        CommandError: If it is not readable.
    """
    data = TUGraphDataModule(name, undirected=undirected)
    try:
        data.setup("fit")
    except GraphFormatError as error:
        raise CommandError(str(error)) from error
    union = make_graph(data.edges, len(data.graph_of))
    union.sizes, union.y = data.sizes, data.labels
    return union


NO_KEY = " (a number in secret order)"
"""What is added to published numbers of nodes whose key is not at hand: no node has such a name."""


def data_of_run(run: str | Path) -> EdgeListDataModule:
    """Read the private graph of a run, with the nodes and columns of its fit.

    The classes of the graph are the true labels where these are private: the data stay with their
    owner.

    Args:
        run: Folder of the run or of its release.

    Returns:
        The data module, set up.

    Raises:
        CommandError: If there is no configuration, if it names no file or no graph, or if the data
            are not readable.
    """
    config = config_beside(Path(run))
    if config is None:
        raise CommandError(
            f"{run}: no {CONFIGURATION} of a run, which says where its data are\n"
            f"give the data: FILE {run}"
        )
    section = section_of(config, "data")
    arguments: dict[str, Any] = section.get("init_args") or {}
    source = arguments.get("source", arguments.get("name"))
    if isinstance(source, str) and source.startswith("given in Python"):
        *_, whole = config.absolute().parents[:3]
        if (whole / SCHEMA).is_file():  # of one kind of a database
            kind = database_of_run(whole).relation(config.absolute().parent.name)
            kind.setup("fit")
            return kind
        raise CommandError(f"{config}: its data were {source}\ngive them: DATA {run}")
    try:
        module = set_up(section)
        if not isinstance(module, EdgeListDataModule):
            raise CommandError(f"{config}: its data are a set of graphs, expected one graph")
        if module.private_labels is not None:
            module.graph.y = module.private_labels.class_numbers()
        return module
    except (Refusal, OSError) as error:
        raise CommandError(
            f"{error}\n{config} says so: paths are those of the folder in which fit ran"
        ) from error


def database_of_run(run: Path) -> DatabaseDataModule:
    """Return the private database of a run.

    Args:
        run: Folder of the run.

    Raises:
        CommandError: If the folder is not that of a run of a database.
    """
    path = run / SCHEMA
    if not path.is_file():
        raise CommandError(f"{run}: no run of a database: there is no {SCHEMA}")
    name = path.read_text(encoding="utf-8").strip()
    data = DatabaseDataModule(name if name in BUILT_IN_DATABASES else path)
    data.read_key(run)
    return data


def data_of_rows(real: Any, release: Release | Path) -> EdgeListDataModule | None:
    """Return the data module of the private columns, or of the transfers, that a release has learned.

    Args:
        real: What the caller names as the real graph.
        release: The release, open or as a folder.

    Returns:
        The real graph itself if it is a data module that has some of them, or else the data of the run of
        the release; None if these are not known any more.
    """
    if isinstance(real, EdgeListDataModule) and (
        real.private_columns is not None or real.transfers is not None
    ):
        return real
    folder = release if isinstance(release, Path) else release.folder
    try:
        return None if folder is None or config_beside(folder) is None else data_of_run(folder)
    except CommandError:  # of data in Python, or of files that are elsewhere
        return None


def own_names(
    names: Sequence[str], statement: Mapping[str, Any], release: Path | None
) -> list[str]:
    """Return the names of published nodes that their owner knows, by the key in the folder of the run.

    Args:
        names: Names in the release.
        statement: Its privacy statement.
        release: Its folder.

    Returns:
        The names as they are, unless they are numbers in a secret order. Without the key these name no
        node of any graph: see :data:`NO_KEY`.

    Raises:
        CommandError: If the key is that of another release.
    """
    if SECRET_NUMBERS not in statement.get("assumptions", ()):
        return list(names)
    key = None if release is None else release.absolute().parent / KEY
    if key is None or not key.is_file():
        return [f"{name}{NO_KEY}" for name in names]
    with key.open(encoding="utf-8", newline="") as file:
        known = dict(csv.reader(file))
    if not known.keys() >= {*names}:
        raise CommandError(f"{key}: the key of another release, which numbers other nodes")
    return [known[name] for name in names]


def under_own_names(release: Release) -> Release:
    """Return a release whose method has the names of nodes that their owner knows.

    Args:
        release: The release, opened, whose own method stays as it is.
    """
    names = getattr(release.method, "node_names", None)
    if names is None:  # of a set
        return release
    method = copy.copy(release.method)
    method.node_names = own_names(names, release.statement, release.folder)
    return replace(release, method=method)


def of_known_nodes(release: Release) -> Release:
    """Return a release under the names that the owner of its nodes knows, for what depends on nodes.

    Raises:
        CommandError: If its nodes are numbers in a secret order, and their key is not at hand.
    """
    found = under_own_names(release)
    if any(name.endswith(NO_KEY) for name in getattr(found.method, "node_names", None) or ()):
        raise CommandError(
            f"{release.folder or 'the release'}: its nodes are numbered in a secret order, and the key is "
            f"not beside it\ngive its run, whose folder has the key {KEY}"
        )
    return found


def contents_of(module: object) -> Iterator[Identity]:
    """Content of a data module that is set up.

    Raises:
        BookError: If the module has no ``identity()``.
    """
    if not isinstance(module, HasIdentity):
        raise BookError(
            f"{type(module).__name__} has no identity(), by which the budget book recognizes data"
        )
    yield module.identity()


def contents_of_graph(graph: Data) -> Iterator[Identity]:
    """Contents under which a graph may be registered: as it is, and without its directions.

    Args:
        graph: The graph.
    """
    yield identity_of([graph])
    yield identity_of([without_directions(graph)])


def contents_of_set(source: Any, undirected: bool) -> Iterator[Identity]:
    """Content of a set of graphs.

    Args:
        source: Name, path, or list of graphs.
        undirected: Whether to read links of one direction as undirected edges.
    """
    data = TUGraphDataModule(source, undirected=undirected)
    data.setup("fit")
    yield data.identity()
