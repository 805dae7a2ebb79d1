"""Public nodes and attributes of a release, for attackers and for fits on parts of the data."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_reading
from lightning_dpg.datamodules.node_attributes import FROM_GRAPH, own_attributes
from lightning_dpg.datamodules.nodes import Nodes
from lightning_dpg.graph.attributes import NodeAttributes, encode
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.alignment import add_nodes
from lightning_dpg.release.release import Release


def on_released_nodes(graph: Data, release: Release | None) -> Data:
    """Add the nodes of a release that an edge list does not name, because they have no edge."""
    method = None if release is None else release.method
    if not isinstance(method, Synthesizer | NodeClassifier) or method.node_names is None:
        return graph
    names = method.node_names
    if not set(graph.node_names) < set(names):
        return on_published_nodes(graph, names)
    number = {name: place for place, name in enumerate(names)}
    places = torch.tensor([number[name] for name in graph.node_names])
    return method.space.graph(places[space_of(graph).edges(graph)], names)


def on_published_nodes(graph: Data, names: Iterable[str]) -> Data:
    """Add published nodes to a graph that names some of them; those of a side are not known."""
    names = list(names)
    if space_of(graph).kind == "bipartite" or {*graph.node_names}.isdisjoint(names):
        return graph
    return add_nodes(graph, dict.fromkeys(names))


def public_attributes(
    release: Release | None, graph: Data, source: Any, settings: Mapping[str, Any] | None
) -> NodeAttributes | None:
    """Find the public attributes of the nodes of a graph, in their order.

    A release has the attributes of its method. Without them, a configuration with
    ``nodes.attributes: from_graph`` takes the attributes of the graph itself, and so does a release of
    classes without a configuration.

    Args:
        release: The attacked release, if it is one.
        graph: The real graph.
        source: The name, the path or the object that the graph was read from.
        settings: Configuration to fit again with, if there is one.

    Returns:
        The attributes; None if the attacker has none, or if they are in a table that the
        configuration names.
    """
    attributes = None if release is None else getattr(release.method, "node_attributes", None)
    if release is not None and attributes is not None:
        number = {name: place for place, name in enumerate(release.method.node_names)}
        if set(number) == set(graph.node_names):
            order = torch.tensor([number[name] for name in graph.node_names])
            rows: NodeAttributes = attributes.of_nodes(order)
            return rows
    nodes = Nodes.of(None if settings is None else settings["data"]["init_args"].get("nodes"))
    is_of_classes = release is not None and isinstance(release.method, NodeClassifier)
    if nodes.attributes != FROM_GRAPH and not (is_of_classes and settings is None):
        return None
    source = getattr(source, "source", source)  # of a data module
    table = own_attributes(load_reading(source, undirected=True), space_of(graph).kind)
    found = encode(table, graph.node_names, nodes.policies)
    return None if found.is_empty else found  # where all columns are private


def with_own_attributes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Adapt a configuration to parts of the data whose files hold the attributes of the nodes."""
    section = settings["data"]
    data = dict(section["init_args"])
    if "nodes" in data:
        data["nodes"] = {**data["nodes"], "attributes": FROM_GRAPH, "policy": None, "column": None}
    return {**settings, "data": section | {"init_args": data}}
