r"""Dendrograms: binary trees over the nodes of a graph, whose branches give edge probabilities.

A branch divides its nodes into two sides. Of the m pairs between the sides, e are edges; the
probability of an edge between two nodes is e / m of the one branch that divides them. The
log-likelihood of the graph is :math:`\sum (e \ln (e / m) + (m - e) \ln (1 - e / m))` over all
branches.

The functions take a *dendrogram* as integers of shape ``(N, 3)``. Column 0 lists the nodes so that
each branch holds neighboring places. Row k >= 1 is the branch that divides place k - 1 from place
k, and holds places ``start`` to ``stop - 1`` (columns 1 and 2); row 0 holds no place.

* Clauset, Moore, Newman, "Hierarchical structure and the prediction of missing links in networks",
  2008.
"""

import functools
import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import xlogy
from torch import Tensor

from lightning_dpg.errors import Refusal

MAX_NODES = 20_000
"""Largest number of nodes: each branch keeps a bit per node, and more take gigabytes."""
_PAIRS = 10_000
_RENAMINGS = 99
_BLOCK = 8192


class Dendrogram:
    """A dendrogram with moves and the changes of its log-likelihood.

    A branch below the root touches three subtrees: its two sides and the other side of the branch
    above. A move exchanges the latter with one of the sides. There are two moves per such
    branch; one move undoes another, and all dendrograms can be reached. A move counts edges of the
    smallest of the subtrees, by the bits that each branch has for its nodes.

    Args:
        edges: Edges of shape ``(M, 2)`` (private).
        num_nodes: Number of nodes N.
        rng: Source of the first dendrogram, which is drawn without edges.
    """

    def __init__(self, edges: NDArray[np.int64], num_nodes: int, rng: np.random.Generator) -> None:
        if not 0 < num_nodes <= MAX_NODES:
            raise Refusal(f"a dendrogram takes from 1 to {MAX_NODES} nodes, got {num_nodes}")
        # Leaves have the numbers of their nodes; then come the root and all other branches.
        self._first, count = num_nodes, 2 * num_nodes - 1
        self.num_moves = max(2 * (num_nodes - 2), 0)
        self._adjacent = [0] * num_nodes
        for i, j in edges.tolist():
            self._adjacent[i] |= 1 << j
            self._adjacent[j] |= 1 << i
        self._bits = [1 << i for i in range(num_nodes)] + [0] * (num_nodes - 1)
        self._size = [1] * num_nodes + [0] * (num_nodes - 1)
        self._left, self._right, self._above = [0] * count, [0] * count, [0] * count
        self._edges, self._value = [0] * count, [0.0] * count
        self._join(rng)
        self._move = (0, 0, 0, 0, 0, 0, 0.0, 0.0)

    @property
    def utility(self) -> float:
        """Log-likelihood (private)."""
        return math.fsum(self._value)

    def gain(self, move: int) -> float:
        """Return the change of the log-likelihood by a move; branch b has moves 2 b and 2 b + 1."""
        branch = self._first + 1 + (move >> 1)
        above = self._above[branch]
        left, right = self._left, self._right
        inner, outer = left[branch], right[branch]
        if move & 1:
            inner, outer = outer, inner
        new = left[above]
        if new == branch:
            new = right[above]
        bits, size = self._bits, self._size
        num_inner, num_outer, num_new = size[inner], size[outer], size[new]
        both = self._edges[branch] + self._edges[above]
        if num_outer <= num_inner and num_outer <= num_new:
            below = self._edges[above] - self._count(outer, bits[new])
        elif num_inner <= num_new:
            below = self._count(inner, bits[new])
        else:
            below = self._count(new, bits[inner])
        value = _value(below, num_inner * num_new)
        value_above = _value(both - below, num_outer * (num_inner + num_new))
        self._move = (branch, above, inner, outer, new, below, value, value_above)
        return value + value_above - self._value[branch] - self._value[above]

    def make(self) -> None:
        """Make the move of the last call of :meth:`gain`."""
        branch, above, inner, outer, new, below, value, value_above = self._move
        self._edges[above] += self._edges[branch] - below
        self._edges[branch] = below
        self._value[branch], self._value[above] = value, value_above
        self._left[branch], self._right[branch] = inner, new
        self._left[above], self._right[above] = branch, outer
        self._above[new], self._above[outer] = branch, above
        self._bits[branch] = self._bits[inner] | self._bits[new]
        self._size[branch] = self._size[inner] + self._size[new]

    def state(self) -> Tensor:
        """Return the dendrogram alone, ``(N, 3)``; sides are ordered by their smallest node."""
        rows = np.zeros((self._first, 3), dtype=np.int64)
        waiting, place = [(self._top, 0)], 0
        while waiting:
            branch, start = waiting.pop()
            if branch < self._first:
                rows[place, 0] = branch
                place += 1
                continue
            sides = [self._left[branch], self._right[branch]]
            sides.sort(key=lambda side: self._bits[side] & -self._bits[side])
            middle = start + self._size[sides[0]]
            rows[middle, 1:] = start, start + self._size[branch]
            waiting += [(sides[1], middle), (sides[0], start)]
        return torch.from_numpy(rows)

    @property
    def _top(self) -> int:
        """The root: a branch, or the only node."""
        return min(self._first, len(self._bits) - 1)

    def _join(self, rng: np.random.Generator) -> None:
        """Join random subtrees until only the root is left."""
        roots = list(range(self._first))
        draws = rng.random((self._first, 2))
        for branch in range(len(self._bits) - 1, self._first - 1, -1):
            sides = []
            for draw in draws[branch - self._first]:
                at = int(draw * len(roots))
                roots[at], roots[-1] = roots[-1], roots[at]
                sides.append(roots.pop())
            first, second = sides
            self._left[branch], self._right[branch] = sides
            self._above[first] = self._above[second] = branch
            self._bits[branch] = self._bits[first] | self._bits[second]
            self._size[branch] = self._size[first] + self._size[second]
            small, large = sorted(sides, key=self._size.__getitem__)
            self._edges[branch] = self._count(small, self._bits[large])
            pairs = self._size[first] * self._size[second]
            self._value[branch] = _value(self._edges[branch], pairs)
            roots.append(branch)

    def _count(self, branch: int, bits: int) -> int:
        """Count edges between the nodes of a branch and the nodes of ``bits``."""
        if branch < self._first:
            return (self._adjacent[branch] & bits).bit_count()
        total, waiting = 0, [branch]
        while waiting:
            branch = waiting.pop()
            while branch >= self._first:
                waiting.append(self._left[branch])
                branch = self._right[branch]
            total += (self._adjacent[branch] & bits).bit_count()
        return total


def _value(edges: int, pairs: int) -> float:
    """Return the log-likelihood of a branch."""
    if edges in (0, pairs):
        return 0.0
    rest = pairs - edges
    return edges * math.log(edges / pairs) + rest * math.log(rest / pairs)


def log_likelihoods(edges: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log-likelihoods of branches that divide ``pairs`` with ``edges``: shape ``(K,)``."""
    rest, most = pairs - edges, np.maximum(pairs, 1)
    values: NDArray[np.float64] = xlogy(edges, edges / most) + xlogy(rest, rest / most)
    return values


def branch_pairs(dendrogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the node pairs that each branch divides: ``(N, 3)`` to ``(N,)``."""
    middle = np.arange(len(dendrogram))
    return (middle - dendrogram[:, 1]) * (dendrogram[:, 2] - middle) * (dendrogram[:, 2] > 0)


def dividing_branch(dendrogram: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the branch that divides each pair of different nodes.

    Args:
        dendrogram: Dendrogram of shape ``(N, 3)``.
        pairs: Pairs of shape ``(P, 2)``.

    Returns:
        Rows of the dendrogram, shape ``(P,)``.
    """
    place = np.empty(len(dendrogram), dtype=np.int64)
    place[dendrogram[:, 0]] = np.arange(len(dendrogram))
    low, high = np.sort(place[pairs], axis=1).T
    sizes = dendrogram[:, 2] - dendrogram[:, 1]
    # Row k of the table of level l is the largest branch from k to k + 2^l - 1.
    table = np.arange(len(sizes))
    branches, level = np.zeros(len(pairs), dtype=np.int64), np.frexp(high - low)[1] - 1
    for step in range(int(level.max(initial=-1)) + 1):
        at_level = level == step
        first, last = table[low[at_level] + 1], table[high[at_level] + 1 - 2**step]
        branches[at_level] = np.where(sizes[first] > sizes[last], first, last)
        shifted = table[2**step :]
        table = np.where(
            sizes[table[: len(shifted)]] > sizes[shifted], table[: len(shifted)], shifted
        )
    return branches


def branch_edges(dendrogram: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the edges of shape ``(M, 2)`` that each branch divides: shape ``(N,)``."""
    return np.bincount(dividing_branch(dendrogram, edges), minlength=len(dendrogram))


def draw_branches(
    dendrogram: NDArray[np.int64], counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw ``counts`` different pairs among the pairs that each branch divides, uniformly.

    Args:
        dendrogram: Dendrogram of shape ``(N, 3)``.
        counts: Edges of each branch, shape ``(N,)``.
        rng: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j``, in no order.
    """
    pairs = branch_pairs(dendrogram)
    used = np.flatnonzero(counts)
    nothing = np.empty(0, dtype=np.int64)
    numbers = [rng.choice(pairs[k], counts[k], replace=False, shuffle=False) for k in used]
    branches = np.repeat(used, counts[used])
    widths = (dendrogram[:, 2] - np.arange(len(dendrogram)))[branches]
    first, second = np.divmod(np.concatenate([nothing, *numbers]), np.maximum(widths, 1))
    places = np.stack([dendrogram[branches, 1] + first, branches + second], axis=1)
    return np.sort(dendrogram[places, 0], axis=1)


class _WithoutEdges(Dendrogram):
    """A dendrogram of a graph without edges, for which no edge is counted."""

    def _count(self, branch: int, bits: int) -> int:
        return 0


@functools.lru_cache(maxsize=16)
def memory_of_start(num_nodes: int, steps: int, start_seed: int) -> tuple[float, float]:
    """Correlate log sizes of branches after a chain with log sizes at its start.

    On the graph without edges all dendrograms have the same likelihood: each move is accepted, and
    all dendrograms are equally likely in the end, whatever the names of the nodes. A chain that has
    forgotten its start is as correlated with it as the same dendrogram with renamed nodes. A chain
    mixes more slowly on some graphs; a chain that remembers here has not forgotten there, either.

    Args:
        num_nodes: Number of nodes N.
        steps: Number of steps.
        start_seed: Public seed of the first dendrogram.

    Returns:
        The correlation over random node pairs, of the sizes of their dividing branches; and the
        95th of 100 such correlations under random names. Both are 0 below three nodes, public, and
        equal for equal arguments.
    """
    if num_nodes < 3:
        return 0.0, 0.0
    rng = np.random.default_rng(start_seed)
    chain = _WithoutEdges(np.empty((0, 2), dtype=np.int64), num_nodes, rng)
    first = rng.integers(num_nodes, size=_PAIRS)
    second = (first + rng.integers(1, num_nodes, size=_PAIRS)) % num_nodes
    pairs = np.stack([first, second], axis=1)
    start = _log_sizes(chain.state().numpy(), pairs)
    for block in range(0, steps, _BLOCK):
        for move in rng.integers(chain.num_moves, size=min(_BLOCK, steps - block)).tolist():
            chain.gain(move)
            chain.make()
    end = chain.state().numpy()

    def correlation(names: NDArray[np.int64]) -> float:
        return float(np.corrcoef(start, _log_sizes(end, names[pairs]))[0, 1])

    memory = correlation(np.arange(num_nodes))
    renamed = [correlation(rng.permutation(num_nodes)) for _ in range(_RENAMINGS)]
    return memory, sorted([memory, *renamed])[94]


def _log_sizes(dendrogram: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log node counts of the branches that divide pairs, shape ``(P,)``."""
    branches = dividing_branch(dendrogram, pairs)
    sizes: NDArray[np.float64] = np.log((dendrogram[:, 2] - dendrogram[:, 1])[branches])
    return sizes
