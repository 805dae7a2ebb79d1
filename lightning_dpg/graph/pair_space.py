"""Pairs of nodes that may be linked: of an undirected, a directed or a bipartite graph.

A directed graph is a two-sided graph, too: each node is a sender on the first side and a receiver on
the second, and no node is linked to itself.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.kind import EDGES
from lightning_dpg.graph.kind import Kind as Kind  # noqa: PLC0414  part of this interface
from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks


class Part(NamedTuple):
    """Consecutive entries of the degree vector that are of one sort, such as in-degrees.

    Attributes:
        start: First entry.
        stop: Entry behind the last one.
        largest: Largest possible degree.
        ends_per_edge: How much one edge adds to the sum of the entries.
    """

    start: int
    stop: int
    largest: int
    ends_per_edge: int


@dataclass(frozen=True)
class PairSpace(ABC):
    """The pairs that may be linked; each is one record of the private data, linked or not.

    Args:
        num_nodes: Number of nodes N (public).
        num_left: Number of left nodes (public), which have the first numbers; None without sides.

    Attributes:
        kind: Kind of the graphs.
        record: Unit of protection in words.
    """

    num_nodes: int
    num_left: int | None = None
    kind: ClassVar[Kind]
    record: ClassVar[str]

    @property
    @abstractmethod
    def num_pairs(self) -> int:
        """Number of pairs that may be linked."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Parts of the degree vector: one, or one for each side of the pairs."""

    @abstractmethod
    def numbers(self, pairs: Tensor) -> Tensor:
        """Number pairs in lexicographic order: ``(P, 2)`` to ``(P,)``, from 0 on."""

    @abstractmethod
    def pairs(self, numbers: Tensor) -> Tensor:
        """Return the pairs of numbers: ``(P,)`` to ``(P, 2)``."""

    @abstractmethod
    def ends(self, pairs: Tensor) -> Tensor:
        """Return the entries of the degree vector that pairs ``(P, 2)`` add to: ``(P, 2)``."""

    def from_ends(self, ends: Tensor) -> Tensor:
        """Return the pairs of two entries of the degree vector, the inverse of :meth:`ends`."""
        return ends

    @abstractmethod
    def graph(self, edges: Tensor, node_names: Sequence[str] | None = None) -> Data:
        """Build the graph of edges of shape ``(P, 2)``; repeated ones are merged."""

    @abstractmethod
    def edges(self, graph: Data) -> Tensor:
        """Return each edge of a graph once, in lexicographic order, ``(M, 2)``."""

    @property
    def num_ends(self) -> int:
        """Length of the degree vector."""
        return self.parts[-1].stop

    def degrees(self, edges: Tensor) -> Tensor:
        """Count the edges of shape ``(M, 2)`` at each entry of the degree vector."""
        return torch.bincount(self.ends(edges).flatten(), minlength=self.num_ends)

    def draw(self, edges: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw different pairs that are not in ``edges``, each set of them being equally likely.

        Args:
            edges: Pairs of shape ``(M, 2)`` that differ, in lexicographic order.
            count: Number of pairs to draw.
            generator: Source of the draw.

        Returns:
            Pairs of shape ``(count, 2)`` in lexicographic order.
        """
        available = self.num_pairs - len(edges)
        if not 0 <= count <= available:
            raise Refusal(f"count must lie between 0 and the {available} non-edges, got {count}")
        # Non-edge number r has as many edges before it as edges have at most r non-edges before.
        before = self.numbers(edges) - torch.arange(len(edges))
        chosen = distinct_integers(available, count, generator)
        chosen += torch.searchsorted(before, chosen, right=True)
        return self.pairs(chosen)


@dataclass(frozen=True)
class UndirectedPairs(PairSpace):
    """Pairs i < j of N nodes."""

    kind: ClassVar[Kind] = "undirected"
    record: ClassVar[str] = EDGES["undirected"]

    @property
    def num_pairs(self) -> int:
        """N (N - 1) / 2."""
        return num_pairs(self.num_nodes)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The degrees of all nodes."""
        return (Part(0, self.num_nodes, max(self.num_nodes - 1, 0), 2),)

    def numbers(self, pairs: Tensor) -> Tensor:
        """Number pairs in lexicographic order."""
        return pair_ranks(pairs, self.num_nodes)

    def pairs(self, numbers: Tensor) -> Tensor:
        """Return the pairs of numbers."""
        return pairs_of_ranks(numbers, self.num_nodes)

    def ends(self, pairs: Tensor) -> Tensor:
        """Return the pairs: the degree of a node counts its edges."""
        return pairs

    def from_ends(self, ends: Tensor) -> Tensor:
        """Return the pairs of two nodes in any order, as rows ``i < j``."""
        return ends.sort(dim=1).values

    def graph(self, edges: Tensor, node_names: Sequence[str] | None = None) -> Data:
        """Build the graph of edges in any orientation."""
        return make_graph(edges, self.num_nodes, node_names)

    def edges(self, graph: Data) -> Tensor:
        """Return each edge once, as a row ``i < j``."""
        return undirected_edges(graph)


@dataclass(frozen=True)
class DirectedPairs(PairSpace):
    """Ordered pairs (i, j) of N nodes, i and j being different."""

    kind: ClassVar[Kind] = "directed"
    record: ClassVar[str] = EDGES["directed"]

    @property
    def num_pairs(self) -> int:
        """N (N - 1)."""
        return self.num_nodes * (self.num_nodes - 1)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The out-degrees of all nodes, then their in-degrees."""
        size, most = self.num_nodes, max(self.num_nodes - 1, 0)
        return Part(0, size, most, 1), Part(size, 2 * size, most, 1)

    def numbers(self, pairs: Tensor) -> Tensor:
        """Number pairs in lexicographic order."""
        first, second = pairs.long().T
        return first * (self.num_nodes - 1) + second - (second > first).long()

    def pairs(self, numbers: Tensor) -> Tensor:
        """Return the pairs of numbers."""
        others = max(self.num_nodes - 1, 1)
        first, second = numbers // others, numbers % others
        return torch.stack([first, second + (second >= first).long()], dim=1)

    def ends(self, pairs: Tensor) -> Tensor:
        """Return the places of the out-degree of i and of the in-degree of j."""
        return pairs + torch.tensor([0, self.num_nodes], device=pairs.device)

    def from_ends(self, ends: Tensor) -> Tensor:
        """Return the pairs of a sender and a receiver."""
        return ends - torch.tensor([0, self.num_nodes], device=ends.device)

    def graph(self, edges: Tensor, node_names: Sequence[str] | None = None) -> Data:
        """Build a graph whose ``edge_index`` of shape ``(2, M)`` holds each ordered pair once."""
        graph = make_graph(edges, self.num_nodes, node_names)  # checks its arguments
        edges = edges.cpu().long()
        numbers = torch.unique(self.numbers(edges[edges[:, 0] != edges[:, 1]]))
        graph.edge_index = self.pairs(numbers).T.contiguous()
        graph.kind = self.kind
        return graph

    def edges(self, graph: Data) -> Tensor:
        """Return each ordered pair once."""
        edge_index: Tensor = graph.edge_index
        return edge_index.T.contiguous()


@dataclass(frozen=True)
class BipartitePairs(PairSpace):
    """Pairs of a left and a right node. The left ones have the numbers from 0 to ``num_left`` - 1.

    A row of a pair holds the left node first, which is the smaller number.
    """

    kind: ClassVar[Kind] = "bipartite"
    record: ClassVar[str] = EDGES["bipartite"]

    @property
    def _left(self) -> int:
        return self.num_left or 0

    @property
    def _right(self) -> int:
        return self.num_nodes - self._left

    @property
    def num_pairs(self) -> int:
        """Product of the sizes of both sides."""
        return self._left * self._right

    @property
    def parts(self) -> tuple[Part, ...]:
        """The degrees of the left nodes, then those of the right ones."""
        left, right = self._left, self._right
        return Part(0, left, right, 1), Part(left, left + right, left, 1)

    def numbers(self, pairs: Tensor) -> Tensor:
        """Number pairs in lexicographic order."""
        return pairs[:, 0].long() * self._right + pairs[:, 1] - self._left

    def pairs(self, numbers: Tensor) -> Tensor:
        """Return the pairs of numbers."""
        right = max(self._right, 1)
        return torch.stack([numbers // right, numbers % right + self._left], dim=1)

    def ends(self, pairs: Tensor) -> Tensor:
        """Return the pairs: the degree of a node counts its edges."""
        return pairs

    def graph(self, edges: Tensor, node_names: Sequence[str] | None = None) -> Data:
        """Build an undirected graph with ``sides`` of shape ``(N,)``: 0 is left and 1 is right."""
        edges = edges.cpu().long()
        is_right = edges >= self._left
        if bool((is_right[:, 0] == is_right[:, 1]).any()):
            raise ValueError("edges of a bipartite graph must link a left node and a right node")
        graph = make_graph(edges, self.num_nodes, node_names)
        graph.kind = self.kind
        graph.sides = (torch.arange(self.num_nodes) >= self._left).long()
        return graph

    def edges(self, graph: Data) -> Tensor:
        """Return each edge once, the left node first."""
        return undirected_edges(graph)


def pair_space(kind: str, num_nodes: int, num_left: int | None = None) -> PairSpace:
    """Return the pairs of a kind of graph.

    Args:
        kind: ``undirected``, ``directed`` or ``bipartite``.
        num_nodes: Number of nodes N (public).
        num_left: Number of left nodes of a bipartite graph (public).
    """
    if kind == "bipartite" and num_left is not None:
        return BipartitePairs(num_nodes, num_left)
    spaces: dict[str, type[PairSpace]] = {"undirected": UndirectedPairs, "directed": DirectedPairs}
    if kind not in spaces:
        raise Refusal(f"kind must be undirected, directed or bipartite, got {kind!r}")
    return spaces[kind](num_nodes)


def space_of(graph: Data) -> PairSpace:
    """Return the pairs of a graph that a :class:`PairSpace` or :func:`make_graph` has built."""
    kind = getattr(graph, "kind", "undirected")
    num_left = int((graph.sides == 0).sum()) if kind == "bipartite" else None
    return pair_space(kind, int(graph.num_nodes), num_left)


def apart(graph: Data) -> tuple[Data, Tensor]:
    """Return the nodes of a graph, without edges, and each edge once, ``(M, 2)``: see :func:`joined`."""
    nodes = copy.copy(graph)
    nodes.edge_index = graph.edge_index.new_empty(2, 0)
    return nodes, space_of(graph).edges(graph)


def joined(nodes: Data, edges: Tensor) -> Data:
    """Return the graph of nodes and edges, which takes twice the memory of its edges."""
    graph = copy.copy(nodes)
    graph.edge_index = space_of(nodes).graph(edges, nodes.node_names).edge_index
    return graph


def without_directions(graph: Data) -> Data:
    """Return the undirected graph of a directed one; other graphs as they are."""
    space = space_of(graph)
    if space.kind != "directed":
        return graph
    return make_graph(space.edges(graph), space.num_nodes, graph.node_names)


def distinct_integers(high: int, count: int, generator: torch.Generator) -> Tensor:
    """Draw a uniform set of ``count`` integers below ``high``, sorted."""
    if 2 * count > high:
        return torch.randperm(high, generator=generator)[:count].sort().values
    integers = torch.empty(0, dtype=torch.long)
    while len(integers) < count:
        new = torch.randint(high, (count - len(integers),), generator=generator)
        integers = torch.unique(torch.cat([integers, new]))
    return integers
