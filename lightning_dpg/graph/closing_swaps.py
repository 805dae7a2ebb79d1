"""Simple graphs of given degrees, rewired until they have a given number of triangles."""

import heapq
from collections.abc import Iterator, Sequence
from random import Random

_SHUFFLES = 3  # random swaps per edge before triangles are counted
_ATTEMPTS = 40  # swaps per edge that are tried to reach the number of triangles


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
