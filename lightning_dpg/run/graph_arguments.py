"""Graphs and sets of graphs as arguments of commands without a configuration, and their names."""

from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
from torch_geometric.data import Data

from lightning_dpg.datamodules import (
    EdgeListDataModule,
    GraphSetDataModule,
)
from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS, SET_ASSUMPTIONS
from lightning_dpg.datamodules.loading import BUILT_IN, load_reading
from lightning_dpg.datamodules.tu import TUGraphDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.formats.kinds import in_kind
from lightning_dpg.graph.attributes import attach, encode
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.node_names import NoEdgesError
from lightning_dpg.run.loggers import public_name

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
