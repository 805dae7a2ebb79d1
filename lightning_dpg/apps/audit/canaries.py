"""Canaries of an audit: pairs of nodes without an edge, some of which become training edges.

A guarantee holds for all attributes, for all classes and for all edges of others. So an audit may
choose them as worst cases of a proof, and an attacker knows them. With those of the data, a canary
moves most sums by less than their sensitivity.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules import GraphSetDataModule, SubgraphDataModule
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.datamodules.transfers import joined, ordered
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import NodeAttributes, attach, attributes_of, share_attributes
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pair_numbers import num_pairs
from lightning_dpg.graph.transfer_counts import DAY, largest_amount, window_of
from lightning_dpg.interfaces import TransferBounds, Transfers
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.meaning import CLIP, MAX_EDGES

_CANARIES_OF_PAIR = 4
"""Canaries with the same two rows, by default: few, since each hides the others."""


class Star(NamedTuple):
    """A canary of the relation ``edges_of_node``: edges of one node that come or go together.

    Attributes:
        leaves: Number D of its edges.
        others: Largest number of votes of the other classes that the center keeps without the star.
    """

    leaves: int
    others: int

    def num_nodes(self, num_classes: int) -> int:
        """Number of nodes of one star and of the neighbors that its center keeps."""
        return 1 + self.leaves + self.others * (num_classes - 1)


def star_of(method: PrivateModule, budget: Budget) -> Star:
    """Return the largest canary that a method of the relation ``edges_of_node`` hides.

    Args:
        method: Method whose plan names the number of edges that it hides together.
        budget: Budget of the run.
    """
    entry, *_ = (entry for entry in method.plan(budget, 1) if MAX_EDGES in entry.public)
    leaves, clip = int(entry.public[MAX_EDGES]), float(entry.public.get(CLIP, 0.0))
    # So many that the clipped votes of the center turn from one side of the ball to the other.
    return Star(leaves, min(math.ceil(clip), leaves // 2))


def make_twins(data: Any, pairs: Tensor) -> None:
    """Give both nodes of each pair the attributes of the first one, and one class.

    Two nodes with equal rows move a product of rows further than any others. Pairs without a common
    node become twins.

    Args:
        data: Data module, after its setup; nodes of a set of graphs have no attributes.
        pairs: Pairs of shape ``(P, 2)``.
    """
    graph = getattr(data, "train_graph", None)
    given = None if graph is None else attributes_of(graph)
    if given is None:
        return
    x, y = given.x.clone(), None if given.y is None else given.y.clone()
    first, second = pairs.unbind(1)
    x[second] = x[first]
    if y is not None and given.y is not None:
        known = torch.where(y[first] >= 0, y[first], y[second])
        y[first] = y[second] = known
        if not torch.equal(torch.unique(y), torch.unique(given.y)):
            y = given.y  # a class would lose its only nodes
    _replace(data, data.edges, NodeAttributes(x, given.names, y))


def plant_stars(data: Any, star: Star, count: int | None, generator: torch.Generator) -> Tensor:
    """Prepare nodes for stars that move clipped votes of neighbors as far as they can be moved.

    The center and the leaves of a star have equal attributes and one known class. They lose their
    edges, so that the leaves have no other votes. The center is linked with nodes of each other
    class: the directions of all classes add up to 0, so that its votes turn by the star.

    Args:
        data: Data module of one graph, after its setup.
        star: Form of the stars.
        count: Number of stars P; by default they take half of the nodes.
        generator: Source of the choice of nodes.

    Returns:
        Edges of the stars, which are not in the data yet, shape ``(P, D, 2)``.

    Raises:
        CommandError: If there are no classes, or too few nodes.
    """
    given = attributes_of(data.train_graph)
    if given is None or given.y is None:
        raise CommandError("audit plants stars of nodes with a class, and the data have no classes")
    classes = torch.unique(given.y[given.y >= 0])
    size, num_nodes = star.num_nodes(len(classes)), int(data.num_nodes)
    count = max(1, num_nodes // size // 2) if count is None else count
    nodes = _groups(num_nodes, count, size, "edges", "max_edges", generator)
    center, leaves = nodes[:, :1], nodes[:, 1 : 1 + star.leaves]
    others = nodes[:, 1 + star.leaves :]
    x, y = given.x.clone(), given.y.clone()
    x[leaves] = x[center]
    own = torch.arange(count) % len(classes)
    y[nodes[:, : 1 + star.leaves]] = classes[own][:, None]
    further = torch.arange(1, len(classes)).repeat(star.others)
    y[others] = classes[(own[:, None] + further) % len(classes)]
    is_free = ~torch.isin(data.edges, nodes).any(1)
    kept = _from(center, others).flatten(0, 1)
    _replace(data, torch.cat([data.edges[is_free], kept]), NodeAttributes(x, given.names, y))
    return _from(center, leaves)


class RowCanaries(NamedTuple):
    """Nodes with one of two rows each.

    Attributes:
        nodes: Their numbers, shape ``(P,)``.
        second: Their second rows, shape ``(P, J)``.
        known: Rows of all nodes, where the canaries have their first rows, shape ``(N, J)``.
    """

    nodes: NDArray[np.int64]
    second: NDArray[np.int64]
    known: NDArray[np.int64]

    def insert(self, data: Any, inserted: NDArray[np.bool_]) -> None:
        """Give the chosen canaries their second rows, and all other nodes the known ones."""
        rows = self.known.copy()
        rows[self.nodes[inserted]] = self.second[inserted]
        data.private_columns = data.private_columns._replace(values=torch.from_numpy(rows))


def plant_rows(
    data: Any, max_weight: int, count: int | None, generator: torch.Generator
) -> RowCanaries:
    """Prepare nodes whose rows move tables and mixing by all of their sensitivities.

    A canary has ``max_weight`` edges, to nodes without other edges that have the last value of each
    column. So each of its edges weighs 1. Its two rows differ in all columns: they have the values
    2 p and 2 p + 1 for a number p, which canaries share where there are more of them than pairs of
    values. Of all other nodes, edges and rows stay.

    Args:
        data: Data module with private columns, after its setup.
        max_weight: Largest weight of all edges of a node together.
        count: Number of canaries P; by default four for each p, as far as there is room.
        generator: Source of the choice of nodes.

    Returns:
        The canaries, whose edges are in the data already.

    Raises:
        CommandError: If there are no private columns, or too few nodes.
    """
    if data.private_columns is None:
        raise CommandError("audit plants rows of private columns, and the data have none")
    sizes = np.array([len(values) for values in data.private_columns.domains.values()])
    pairs = np.maximum((sizes - 1) // 2, 1)
    num_nodes, size = int(data.num_nodes), 1 + max_weight
    usual = min(_CANARIES_OF_PAIR * int(pairs.max()), num_nodes // size)
    count = usual if count is None else count
    nodes = _groups(num_nodes, count, size, "neighbors", "max_weight", generator)
    first = 2 * (np.arange(count)[:, None] % pairs)
    rows = data.private_columns.values.numpy().copy()
    rows[nodes.numpy()] = sizes - 1
    rows[nodes[:, 0].numpy()] = first
    is_free = ~torch.isin(data.edges, nodes).any(1)
    edges = torch.cat([data.edges[is_free], _from(nodes[:, :1], nodes[:, 1:]).flatten(0, 1)])
    _replace(data, edges, attributes_of(data.train_graph))
    return RowCanaries(nodes[:, 0].numpy(), first + 1, rows)


def _groups(
    num_nodes: int, count: int, size: int, what: str, setting: str, generator: torch.Generator
) -> Tensor:
    """Choose different nodes for each canary, shape ``(count, size)``."""
    most = num_nodes // size
    if not 0 < count <= most:
        raise CommandError(
            f"{count} canaries with their {what} take {count * size} of {num_nodes} nodes\n"
            f"set --canaries to {most} or less, or take a larger graph or a smaller {setting}"
        )
    return torch.randperm(num_nodes, generator=generator)[: count * size].view(count, size)


def transfers_of_canaries(pairs: Tensor, bounds: TransferBounds, number: int) -> Transfers:
    """Return transfers that move counts and sums as far as one relation can move them.

    All transfers of a pair have the largest amount and one time, on a day that its nodes decide: so
    canaries share few days.

    Args:
        pairs: Canaries of shape ``(P, 2)``.
        bounds: Bounds of amounts and times (public).
        number: Transfers of a canary, as many as count.
    """
    all_pairs = pairs.repeat_interleave(number, 0)
    amounts = times = None
    if bounds.weight_max is not None:
        amounts = torch.full((len(all_pairs),), largest_amount(bounds.weight_max))
    if bounds.window is not None:
        times = all_pairs.sum(1) % window_of(*bounds.window).days * DAY
    return ordered(Transfers(all_pairs, amounts, times, bounds))


def _from(center: Tensor, ends: Tensor) -> Tensor:
    """Return the edges from centers ``(P, 1)`` to their ends ``(P, K)``, shape ``(P, K, 2)``."""
    return torch.stack([center.expand_as(ends), ends], 2).sort(dim=2).values


def _replace(data: Any, edges: Tensor, attributes: NodeAttributes | None) -> None:
    """Replace the training edges and the attributes of a data module; its source stays as it is."""
    graph = make_graph(edges, data.num_nodes, data.train_graph.node_names)
    if attributes is not None:
        attach(graph, attributes)
    data.train_graph, data.edges = graph, undirected_edges(graph)


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
