"""Edges swapped in pairs, which keeps all degrees: towards pairs of high scores, or a number of triangles."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.graph.pair_numbers import are_among
from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs

# Pairs whose vectors a processor's cache holds.
_PAIRS_AT_ONCE = 1024
_LOOP = -1  # no number of a pair
_SHUFFLES = 3  # random swaps per edge before triangles are counted
_ATTEMPTS = 40  # swaps per edge that are tried to reach the number of triangles


def swap_by_scores(
    edges: Tensor,
    num_nodes: int,
    score: Callable[[Tensor], Tensor],
    rounds: int,
    generator: torch.Generator,
    *,
    space: PairSpace | None = None,
) -> Tensor:
    r"""Swap ends of edges by the Metropolis rule for :math:`P(G) \propto e^{\sum_{ij \in G} s_{ij}}`.

    All degrees stay. In each round the edges are put into pairs at random; the pair (a, b), (c, d)
    becomes (a, d), (c, b) with probability :math:`\min(1, e^{s_{ad} + s_{cb} - s_{ab} - s_{cd}})`,
    unless that makes a loop or a repeated edge. Parts of a score that belong to one end cancel. In
    directed and bipartite graphs both degrees of a node, or the degrees of both sides, stay.
    Cycles of three directed edges are not reversed, so a few directed graphs are out of reach.

    Args:
        edges: Different edges of shape ``(M, 2)``, pairs of ``space``.
        num_nodes: Number of nodes.
        score: From pairs of shape ``(P, 2)`` to scores s of shape ``(P,)``.
        rounds: Number of rounds.
        generator: Source of the draws.
        space: Pairs that may be linked; by default all pairs ``i < j``.

    Returns:
        Edges of shape ``(M, 2)``, pairs of ``space``, in no order.
    """
    space = UndirectedPairs(num_nodes) if space is None else space
    has_order = len(space.parts) > 1
    half = len(edges) // 2
    # First ends, second ends, numbers and scores of the edges: vectors are faster to choose from than
    # rows, and edges that are put into the drawn order are changed in place.
    state = [*edges.T.contiguous(), space.numbers(edges), score(edges).double()]
    for _ in range(rounds if half else 0):
        order = torch.randperm(len(edges), generator=generator)
        first, second, numbers, scores = state = [each.index_select(0, order) for each in state]
        (a, c), (b, d) = (each[: 2 * half].view(2, half) for each in (first, second))
        if not has_order:
            flip = torch.rand(half, generator=generator) < 0.5
            c, d = torch.where(flip, d, c), torch.where(flip, c, d)
        ends = torch.cat([a, c]), torch.cat([d, b])
        if not has_order:
            ends = torch.minimum(*ends), torch.maximum(*ends)
        pairs = torch.stack(ends).T
        new_numbers, new_scores = space.numbers(pairs), score(pairs).double()
        new_numbers[ends[0] == ends[1]] = _LOOP
        gain = (new_scores - scores[: 2 * half]).view(2, half).sum(0)
        uniform = torch.rand(half, generator=generator, dtype=torch.double)
        likely = torch.nonzero(uniform.log() < gain)[:, 0]
        places = torch.stack([likely, likely + half])
        moves = places[:, _are_new(new_numbers[places], numbers)].flatten()
        for each, values in zip(state, (*ends, new_numbers, new_scores), strict=True):
            each.index_copy_(0, moves, values.index_select(0, moves))
    return torch.stack(state[:2], 1)


def score_of_images(
    first: Tensor, second: Tensor, factor: float = 1.0
) -> Callable[[Tensor], Tensor]:
    """Build a score of pairs from products of vectors that are computed once.

    Args:
        first: Vectors of the first ends, shape ``(N, r)``.
        second: Vectors of the second ends, shape ``(N, r)``.
        factor: Factor of the products.

    Returns:
        Function from pairs of shape ``(P, 2)`` to scores of shape ``(P,)``.
    """
    one, other = first.numpy(), second.numpy()

    def score(pairs: Tensor) -> Tensor:
        ends = pairs.T.numpy()
        blocks = [ends[:, k : k + _PAIRS_AT_ONCE] for k in range(0, len(pairs), _PAIRS_AT_ONCE)]
        # Rows by ``take`` and products by BLAS need half of the time of index_select and vecdot of torch.
        products = [np.vecdot(one.take(a, axis=0), other.take(b, axis=0)) for a, b in blocks]
        return factor * torch.from_numpy(np.concatenate([*products, one[:0, 0]]))

    return score


def _are_new(swapped: Tensor, existing: Tensor) -> Tensor:
    """Mask of swaps that make no loop, and no edge that exists or that others make.

    Args:
        swapped: Numbers of the pairs of each swap, shape ``(2, S)``.
        existing: Numbers of all edges, shape ``(M,)``.
    """
    numbers = swapped.flatten().numpy()
    ascending = np.sort(np.concatenate([numbers, existing.numpy()]))
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    is_taken = are_among(numbers, repeated) | (numbers == _LOOP)
    return torch.from_numpy(~is_taken.reshape(2, -1).any(axis=0))


class SwapGraph:
    """A simple graph whose edges are swapped in pairs, which keeps all degrees.

    The neighbors of a node are the bits of one integer; the triangles on an edge are then one
    operation. Before any swap, nodes of large degree are linked to each other, which closes more
    triangles than random graphs of these degrees have.

    Args:
        degrees: Wanted degrees; where no simple graph has them, some nodes get others.
        num_edges: Number of edges, at most all pairs of nodes.
        coins: Public source of the choices.
    """

    def __init__(self, degrees: Sequence[int], num_edges: int, coins: Random) -> None:
        self._coins = coins
        self._neighbors = [0] * len(degrees)
        self.edges: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int], int] = {}
        for pair in _havel_hakimi(degrees):
            self._add(*pair)
        self._fill(num_edges)

    def triangles(self) -> int:
        """Number of triangles."""
        return sum(self._common(*edge) for edge in self.edges) // 3

    def shuffle(self) -> None:
        """Swap random pairs of edges."""
        for _ in range(_SHUFFLES * len(self.edges)):
            self._swap(*self._random_swap())

    def connect(self) -> None:
        """Join all components, if there are edges enough: n - 1 or more for n nodes."""
        parts = self._components()
        while len(parts) > 1:
            if not self._join(parts):
                return
            parts = self._components()

    def reach_triangles(self, target: float, *, connected: bool) -> float:
        """Swap edges until the number of triangles is as near to a target as swaps bring it.

        Args:
            target: Wanted number of triangles.
            connected: Whether to reject swaps that disconnect the graph.

        Returns:
            Distance of the number of triangles to the target.
        """
        triangles = self.triangles()
        has_center = any(bits.bit_count() == len(self._neighbors) - 1 for bits in self._neighbors)
        checks = connected and not has_center
        for _ in range(_ATTEMPTS * len(self.edges)):
            if abs(triangles - target) <= 0.5:
                break
            closes = triangles < target and self._coins.random() < 0.5
            ends = self._closing_swap() if closes else self._random_swap()
            change = self._swap(*ends)
            if change is None:
                continue
            is_nearer = abs(triangles + change - target) <= abs(triangles - target)
            if is_nearer and not (checks and not self._is_connected()):
                triangles += change
            else:
                a, b, c, d = ends
                self._swap(a, c, b, d)  # back
        return abs(triangles - target)

    def _swap(self, a: int, b: int, c: int, d: int) -> int | None:
        """Replace edges ab and cd by ac and bd; the change in triangles, None if impossible."""
        if len({a, b, c, d}) < 4 or self._has(a, c) or self._has(b, d):
            return None
        change = -self._remove(a, b)
        change -= self._remove(c, d)
        change += self._add(a, c)
        return change + self._add(b, d)

    def _random_swap(self) -> tuple[int, int, int, int]:
        (a, b), (c, d) = self._coins.choice(self.edges), self._coins.choice(self.edges)
        return (a, b, c, d) if self._coins.random() < 0.5 else (a, b, d, c)

    def _closing_swap(self) -> tuple[int, int, int, int]:
        """A swap that links two neighbors of a node."""
        center, a = self._coins.choice(self.edges)
        if self._coins.random() < 0.5:
            center, a = a, center
        c = self._random_neighbor(center)
        return a, self._random_neighbor(a), c, self._random_neighbor(c)

    def _random_neighbor(self, node: int) -> int:
        bits = self._neighbors[node]
        for _ in range(self._coins.randrange(bits.bit_count())):
            bits &= bits - 1
        return (bits & -bits).bit_length() - 1

    def _join(self, parts: list[int]) -> bool:
        """Join two components by an edge that lies on a circle; False if no edge does."""
        for a, b in self.edges:
            self._remove_silently(a, b)
            is_bridge = not self._reached(a) >> b & 1
            self._insert_silently(a, b)
            if is_bridge:
                continue
            other = next(part for part in parts if not part >> a & 1)
            c = (other & -other).bit_length() - 1
            if self._neighbors[c]:
                self._swap(a, b, c, self._random_neighbor(c))
            else:
                self._remove(a, b)
                self._add(a, c)
            return True
        return False

    def _components(self) -> list[int]:
        rest, parts = (1 << len(self._neighbors)) - 1, []
        while rest:
            parts.append(self._reached((rest & -rest).bit_length() - 1))
            rest &= ~parts[-1]
        return parts

    def _is_connected(self) -> bool:
        return self._reached(0) == (1 << len(self._neighbors)) - 1

    def _reached(self, node: int) -> int:
        reached = front = 1 << node
        while front:
            neighbors = 0
            while front:
                low = front & -front
                neighbors |= self._neighbors[low.bit_length() - 1]
                front ^= low
            front = neighbors & ~reached
            reached |= front
        return reached

    def _fill(self, num_edges: int) -> None:
        """Add random edges up to a number."""
        size = len(self._neighbors)
        if 4 * num_edges > size * (
            size - 1
        ):  # more than half of all pairs: few random ones are free
            free = [(i, j) for j in range(size) for i in range(j) if not self._has(i, j)]
            for pair in self._coins.sample(free, max(num_edges - len(self.edges), 0)):
                self._add(*pair)
        while len(self.edges) < num_edges:
            i, j = self._coins.randrange(size), self._coins.randrange(size)
            if i != j and not self._has(i, j):
                self._add(i, j)

    def _has(self, a: int, b: int) -> bool:
        return bool(self._neighbors[a] >> b & 1)

    def _common(self, a: int, b: int) -> int:
        return (self._neighbors[a] & self._neighbors[b]).bit_count()

    def _add(self, a: int, b: int) -> int:
        """Add an edge; the number of triangles that it closes."""
        self._insert_silently(a, b)
        edge = (a, b) if a < b else (b, a)
        self._places[edge] = len(self.edges)
        self.edges.append(edge)
        return self._common(a, b)

    def _remove(self, a: int, b: int) -> int:
        """Remove an edge; the number of triangles that it closed."""
        place = self._places.pop((a, b) if a < b else (b, a))
        last = self.edges.pop()
        if place < len(self.edges):
            self.edges[place] = last
            self._places[last] = place
        self._remove_silently(a, b)
        return self._common(a, b)

    def _insert_silently(self, a: int, b: int) -> None:
        self._neighbors[a] |= 1 << b
        self._neighbors[b] |= 1 << a

    def _remove_silently(self, a: int, b: int) -> None:
        self._neighbors[a] &= ~(1 << b)
        self._neighbors[b] &= ~(1 << a)


def _havel_hakimi(degrees: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Link the node that lacks most edges to those that lack most of the others, and so on."""
    heap = [(-degree, node) for node, degree in enumerate(degrees) if degree > 0]
    heapq.heapify(heap)
    while heap:
        lacking, node = heapq.heappop(heap)
        others = [heapq.heappop(heap) for _ in range(min(-lacking, len(heap)))]
        for need, other in others:
            yield node, other
            if need < -1:
                heapq.heappush(heap, (need + 1, other))
