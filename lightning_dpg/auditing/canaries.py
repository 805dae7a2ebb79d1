"""Canaries of an audit: pairs of nodes without an edge, some of which become training edges."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.worst_cases import transfers_of_canaries
from lightning_dpg.datamodules import GraphSetDataModule, SubgraphDataModule
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.datamodules.transfers import joined
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import share_attributes
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pair_numbers import num_pairs

_MOST_CANARIES = 1000
# A set of few graphs has fewer canaries than the guesses need.
_FEW_GRAPHS = 100


class CanarySites(NamedTuple):
    """Places for canaries in the data of a data module.

    Attributes:
        known_graph: Graph of the training edges without canaries, on all N nodes.
        full_graph: Graph of the pairs that are edges, for training or not.
        part_of: Number of the graph of each node, ascending, shape ``(N,)``; both ends share a
            graph.
        original: Number of each node in the private data, shape ``(N,)``. Where nodes of two graphs
            are the same private node, a pair can be an edge of one of the graphs only.
        enough: Largest number of canaries that do not yet mask each other.
        insert: Makes pairs of shape ``(P, 2)`` training edges.
    """

    known_graph: Data
    full_graph: Data
    part_of: Tensor
    original: Tensor
    enough: int
    insert: Callable[[Tensor], None]


def find_sites(data: pl.LightningDataModule, num_transfers: int = 1) -> CanarySites:
    """Find the places for canaries in a data module that has been set up.

    Args:
        data: The data module.
        num_transfers: Transfers of each canary, if the data have any.

    Raises:
        CommandError: If its records are not edges, or if an edge can occur twice.
    """
    if isinstance(data, GraphSetDataModule):
        return _sites_in_set(data)
    if hasattr(data, "train_graph"):
        return _sites_in_graph(data, num_transfers)
    raise CommandError(
        f"audit inserts edges, and {type(data).__name__} holds none\n"
        "take the configuration of another method, see: python -m lightning_dpg list"
    )


def default_count(sites: CanarySites) -> int:
    """Return the default number of canaries."""
    return min(_MOST_CANARIES, sites.enough, max(1, available_pairs(sites) // 2))


def available_pairs(sites: CanarySites) -> int:
    """Return the number of pairs without an edge."""
    sizes = torch.bincount(sites.part_of)
    return sum(num_pairs(size) for size in sizes.tolist()) - sites.full_graph.num_edges // 2


def spread_non_edges(sites: CanarySites, count: int, generator: torch.Generator) -> Tensor:
    """Draw different non-edges, spread over graphs and nodes as evenly as random matchings are.

    Canaries at the same node mask each other in its degree; canaries in one graph mask each other
    in its edge count.

    Args:
        sites: Places for canaries.
        count: Number of pairs P.
        generator: Source of the draw.

    Returns:
        Rows ``i < j`` of shape ``(P, 2)`` in random order.
    """
    available, num_nodes = available_pairs(sites), len(sites.part_of)
    if not 0 < count <= available // 2:
        raise CommandError(
            f"{count} canaries are more than half of the {available} pairs without an edge\n"
            f"set --canaries to {available // 2} or less, or take a sparser graph"
        )
    canaries = torch.empty(0, 2, dtype=torch.long)
    occupied = _keys(undirected_edges(sites.full_graph), sites.original)
    # A matching holds a given pair of n nodes with a probability of 1 / n or more.
    for _ in range(10 * int(torch.bincount(sites.part_of).max())):
        pairs = _random_matchings(sites.part_of, generator)
        keys = _keys(pairs, sites.original)
        _, first = np.unique(keys.numpy(), return_index=True)
        new = np.sort(first[~np.isin(keys.numpy()[first], occupied.numpy())])
        canaries, occupied = torch.cat([canaries, pairs[new]]), torch.cat([occupied, keys[new]])
        if len(canaries) >= count:
            chosen = canaries[:count]
            return chosen[torch.randperm(count, generator=generator)]
    raise CommandError(
        f"only {len(canaries)} different pairs without an edge were found among {num_nodes} nodes\n"
        f"set --canaries to {len(canaries) // 2} or less"
    )


def _random_matchings(part_of: Tensor, generator: torch.Generator) -> Tensor:
    """Return a random matching of the nodes of each graph, one pair of each graph at a time."""
    nodes = torch.randperm(len(part_of), generator=generator)
    nodes = nodes[part_of[nodes].argsort(stable=True)]
    sizes = torch.bincount(part_of)
    rank = torch.arange(len(part_of)) - (sizes.cumsum(0) - sizes)[part_of]
    place = torch.nonzero((rank % 2 == 0) & (rank + 1 < sizes[part_of])).flatten()
    # The order of the matchings is random, too.
    place = place[torch.randperm(len(place), generator=generator)]
    place = place[rank[place].argsort(stable=True)]
    return torch.stack([nodes[place], nodes[place + 1]], 1).sort(dim=1).values


def _keys(pairs: Tensor, original: Tensor) -> Tensor:
    """Number the pairs of nodes of the private data: ``(P, 2)`` to ``(P,)``."""
    first, second = original[pairs].sort(dim=1).values.T
    return first * len(original) + second


def _sites_in_graph(data: Any, num_transfers: int) -> CanarySites:
    if data.space.kind != "undirected":
        raise CommandError(
            f"audit inserts undirected edges, and the graph is {data.space.kind}\n"
            "audit the method on an undirected graph: its noise is the same"
        )
    nodes = torch.arange(data.num_nodes)

    def insert(pairs: Tensor) -> None:
        edges, names = torch.cat([data.edges, pairs]), data.train_graph.node_names
        graph = make_graph(edges, len(nodes), names)
        data.train_graph = share_attributes(graph, data.train_graph)
        data.edges = undirected_edges(data.train_graph)
        if (known := data.records.transfers) is not None:
            added = transfers_of_canaries(pairs, known.bounds, num_transfers)
            data.transfers = joined(data.transfers, added)
            data.train_transfers = joined(known, added)

    part_of = torch.zeros_like(nodes)
    return CanarySites(data.train_graph, data.graph, part_of, nodes, len(nodes) // 2, insert)


def _sites_in_set(data: GraphSetDataModule) -> CanarySites:
    if data.max_occurrences > 1:
        raise CommandError(
            "audit inserts an edge into one graph, and one edge can be "
            f"{data.max_occurrences} edges of this set\nset data.init_args.max_occurrences to 1"
        )
    union = make_graph(data.edges, len(data.graph_of))
    original = torch.arange(len(data.graph_of))
    if isinstance(data, SubgraphDataModule):  # its nodes are those of one graph, by name
        names = [name for graph in data.graphs for name in graph.node_names]
        original = torch.from_numpy(np.unique(names, return_inverse=True)[1])

    def insert(pairs: Tensor) -> None:
        graph = make_graph(torch.cat([data.edges, pairs]), len(data.graph_of))
        data.edges = undirected_edges(graph)
        parts = split_graphs(graph, data.sizes.tolist())
        for old, part in zip(data.graphs, parts, strict=True):
            old.edge_index = part.edge_index  # keep labels and features

    enough = min(max(len(data.sizes), _FEW_GRAPHS), len(original) // 2)
    return CanarySites(union, union, data.graph_of, original, enough, insert)
