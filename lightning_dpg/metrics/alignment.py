"""Two graphs on the same nodes, which are matched by name alone.

A list of edges does not name the nodes without an edge. A node that is in one graph only counts as a
node without an edge of the other.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch_geometric.data import Data

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.pair_space import space_of


class Alignment(NamedTuple):
    """Two graphs on the nodes of either; a node has one number in both."""

    graph: Data
    reference: Data
    """The reference; nodes that it lacked have the last numbers, and no edge."""
    note: str
    """Note on the matching of the nodes; empty if both graphs name the same ones."""


def align(graph: Data, reference: Data) -> Alignment | None:
    """Put two graphs on the nodes of either, the nodes of the reference first.

    Args:
        graph: Synthetic graph.
        reference: Real graph.

    Returns:
        Both graphs, or None if no name is common.
    """
    if graph.node_names == reference.node_names:
        return Alignment(graph, reference, "")
    if {*graph.node_names}.isdisjoint(reference.node_names):
        return None
    whole = add_nodes(reference, graph.node_names)
    space = space_of(graph)
    number = {name: place for place, name in enumerate(whole.node_names)}
    numbers = torch.tensor([number[name] for name in graph.node_names], dtype=torch.int32)
    edges = numbers[space.edges(graph)]
    if space.kind == "directed":
        renumbered = type(space)(whole.num_nodes).graph(edges, whole.node_names)
    else:  # Equal names may be on other sides: a bipartite graph is bipartite no more.
        renumbered = make_graph(edges, whole.num_nodes, whole.node_names)
    added = {
        "real": whole.num_nodes - reference.num_nodes,
        "synthetic": whole.num_nodes - graph.num_nodes,
    }
    renumbered.edge_index = renumbered.edge_index.to(graph.edge_index.dtype)  # memory
    return Alignment(renumbered, whole, _note({side: n for side, n in added.items() if n}))


def add_nodes(graph: Data, names: Iterable[str]) -> Data:
    """Add the named nodes that a graph lacks, without an edge and behind its own nodes.

    Args:
        graph: The graph; a bipartite one that gets nodes loses its sides.
        names: Names of nodes, of which those of the graph are left out.
    """
    own = {*graph.node_names}
    missing = [name for name in names if name not in own]
    if not missing:
        return graph
    nodes = [*graph.node_names, *missing]
    whole = Data(edge_index=graph.edge_index, num_nodes=len(nodes), node_names=nodes)
    if space_of(graph).kind == "directed":
        whole.kind = "directed"
    return whole


def _note(added: dict[str, int]) -> str:
    """Say how many nodes each graph got."""
    if not added:
        return ""
    counts = " and ".join(f"{count:,} to the {side} graph" for side, count in added.items())
    return f"nodes without an edge added: {counts}"
