"""Law of node labels that favors edges within groups, and blocks of nodes that move together."""

import itertools
import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Variance of the log acceptance that a block of this many nodes has at most, about.
_SPREAD = 0.5
_TRIES = 8
# Public seed of the partition into blocks.
_SEED = 0
_LEAST_WEIGHT = 0.5


class GroupedLabels:
    r"""The law :math:`e^{\beta u(z)} h(z)` of labels z, with u the number of edges of equal labels.

    :math:`\log h(z) = -M \log (T^2 + (e^\beta - 1) \sum_k T_k^2)`, where :math:`T_k` is the sum of
    the weights of the nodes of label k, and T that of all. It is the likelihood of M edges that
    link nodes in proportion to their weights, and :math:`e^\beta` times as often within a group.
    Hence no group grows because it is large.

    A block is a set of nodes without an edge between two of them. Given the labels outside, the edges
    of its nodes are independent, and only h couples them. A proposal for a node takes h as if the
    other nodes of the block had the labels of those outside; the ratio that :meth:`log_ratio` gives
    corrects this exactly. A block of one node is an exact heat bath.

    Args:
        edges: Edges of shape ``(M, 2)`` (private).
        weights: Weight of each node, a function of released values, shape ``(N,)``.
        num_labels: Number of labels K.
        num_edges: The M of h, public or released.
        rate: :math:`\beta`, positive.

    Attributes:
        edges: The edges (private).
        blocks: Nodes of each block; every node is in one (private).
        labels: Current label of each node, shape ``(N,)``.
    """

    def __init__(
        self,
        edges: NDArray[np.int64],
        weights: NDArray[np.float64],
        num_labels: int,
        num_edges: int,
        rate: float,
    ) -> None:
        self.num_nodes, self.num_labels = len(weights), num_labels
        self.edges = edges
        self._weights = np.maximum(weights, _LEAST_WEIGHT)
        self._rate, self._contrast, self._num_edges = rate, math.expm1(rate), num_edges
        self._total = float(self._weights.sum())
        starts, neighbors = _adjacency(edges, self.num_nodes)
        self.blocks = independent_blocks(starts, neighbors, self._block_size)
        order = np.concatenate(self.blocks)
        self._bounds = np.r_[0, np.cumsum([len(block) for block in self.blocks])].tolist()
        degrees = np.diff(starts)[order]
        self._ends = np.r_[0, np.cumsum(degrees)][self._bounds].tolist()
        within = np.arange(len(order)) - np.repeat(self._bounds[:-1], np.diff(self._bounds))
        self._cells = np.repeat(within, degrees) * num_labels
        places = np.repeat(starts[order], degrees) + _ranks(degrees)
        self._neighbors = neighbors[places]
        self.reset(np.zeros(self.num_nodes, dtype=np.int64))

    @cached_property
    def _block_size(self) -> int:
        """Nodes of a block whose moves are mostly accepted, by released values."""
        volume = self._total**2 * (1 + self._contrast / self.num_labels)
        pull = self._contrast * self._num_edges * float(np.mean(self._weights**2))
        return max(1, int(min(_SPREAD * volume / max(pull, 1e-9), self.num_nodes)))

    def reset(self, labels: NDArray[np.int64]) -> None:
        """Set all labels."""
        self.labels = labels.astype(np.int64)
        self._totals = np.bincount(self.labels, self._weights, self.num_labels)

    def propose(self, block: int, power: float) -> NDArray[np.float64]:
        """Cumulative weights of the labels of each node of a block, shape ``(size, K)``."""
        nodes, size = self.blocks[block], self.num_labels
        first, last = self._ends[block], self._ends[block + 1]
        cells = self._cells[first:last] + self.labels[self._neighbors[first:last]]
        counts = np.bincount(cells, minlength=len(nodes) * size).reshape(-1, size)
        own = self._weights[nodes]
        outside = self._totals - np.bincount(self.labels[nodes], own, size)
        rest = self._total - own.sum()
        others = (self._total - own) / rest if len(nodes) < self.num_nodes else own
        center = others[:, None] * outside
        squares = (center**2).sum(axis=1, keepdims=True) + own[:, None] * (
            2 * center + own[:, None]
        )
        self._log_h = power * self._log_prior(squares)
        logits = power * self._rate * counts + self._log_h
        self._nodes, self._own, self._outside, self._power = nodes, own, outside, power
        weights: NDArray[np.float64] = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights.cumsum(axis=1)

    def log_ratio(self, new: NDArray[np.int64]) -> float:
        """Weight over proposal of new labels of the proposed block, less that of the current ones."""
        return self._excess(new) - self._excess(self.labels[self._nodes])

    def move(self, new: NDArray[np.int64]) -> None:
        """Set the labels of the proposed block."""
        self.labels[self._nodes] = new
        self._totals = self._outside + np.bincount(new, self._own, self.num_labels)

    def laws(self) -> NDArray[np.float64]:
        """Law of the label of each node given the current labels of all others, shape ``(N, K)``."""
        size, own = self.num_labels, self._weights[:, None]
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        cells = ends[:, 0] * size + self.labels[ends[:, 1]]
        counts = np.bincount(cells, minlength=self.num_nodes * size).reshape(-1, size)
        others = self._totals - own * (self.labels[:, None] == np.arange(size))
        squares = (others**2).sum(axis=1, keepdims=True) + own * (2 * others + own)
        logits = self._rate * counts + self._log_prior(squares)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        laws: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return laws

    def _excess(self, labels: NDArray[np.int64]) -> float:
        """Log prior of labels of the block, less the sum of what proposals took for it."""
        totals = self._outside + np.bincount(labels, self._own, self.num_labels)
        exact = self._power * float(self._log_prior(np.array(totals @ totals)))
        return exact - float(self._log_h[np.arange(len(labels)), labels].sum())

    def _log_prior(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of h for sums of squared totals; zero where all nodes have different labels."""
        prior: NDArray[np.float64] = -self._num_edges * np.log1p(
            self._contrast * squares / self._total**2
        )
        return prior


def independent_blocks(
    starts: NDArray[np.int64], neighbors: NDArray[np.int64], size: int
) -> list[NDArray[np.int64]]:
    """Partition nodes into blocks of about ``size`` nodes without an edge inside.

    Nodes of the largest degrees come first, each into a random block without a neighbor of it, or into
    the first one if a few tries find none.

    Args:
        starts: Where the neighbors of each node begin, and the end, shape ``(N + 1,)``.
        neighbors: Neighbors of all nodes, one node after the other.
        size: Wanted number of nodes of a block.
    """
    num_nodes = len(starts) - 1
    rng = np.random.default_rng(_SEED)
    count = -(-num_nodes // size)
    place = np.full(num_nodes, -1)
    tries = rng.integers(count, size=(num_nodes, _TRIES)).tolist()
    bounds = starts.tolist()
    for node in np.argsort(-np.diff(starts), kind="stable").tolist():
        blocks = set(place[neighbors[bounds[node] : bounds[node + 1]]].tolist())
        candidates = itertools.chain(tries[node], itertools.count())
        place[node] = next(block for block in candidates if block not in blocks)
    order = np.argsort(place, kind="stable")
    sizes = np.bincount(place)
    return [block for block in np.split(order, np.cumsum(sizes)[:-1]) if len(block)]


def _adjacency(
    edges: NDArray[np.int64], num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbors of all nodes, one node after the other, and where those of each begin."""
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    starts = np.r_[0, np.cumsum(np.bincount(both[:, 0], minlength=num_nodes))]
    return starts, np.ascontiguousarray(both[:, 1])


def _ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 to count - 1 for each count, one after the other."""
    total = int(counts.sum())
    return np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
