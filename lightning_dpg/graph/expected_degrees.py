"""Random graphs of any kind with given expected degrees, in memory linear in their edges."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.pair_numbers import near_order, num_pairs, pair_keys, pairs_of_keys
from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs

PIECE = 2**21
"""Draws of a piece, which takes about 40 bytes for each of them."""
_SORTED = 2**20  # pairs of a block
_MOST_BINS = 2**16
# Deviations of the number of different pairs; a longer horizon costs one more pass in a billion.
_MARGIN = 6.0
_MOST_ROUNDS = 50
_TOLERANCE = 1e-3
_LARGEST_WEIGHT = 1e100
# Up to here all pairs are drawn at once, which also works where nearly all pairs are edges.
FEW_PAIRS = 2**20
MANY_EDGES = 1_000_000
"""From here on graphs are drawn in pieces, and releases hold no text formats by default."""


def weighted_pairs(
    weights: NDArray[np.float64], count: int, expected: float, seed: int, piece: int = PIECE
) -> Iterator[NDArray[np.int64]]:
    r"""Draw different pairs in proportion to the product of the weights of their ends.

    The law is the same as of draws one after the other, without loops and repeated pairs, until there
    are ``count`` pairs. If pair (i, j) is drawn at the times of a Poisson process of
    rate :math:`x_i x_j`, all draws together come in that order. The result is then the
    ``count`` pairs with the earliest first draws. Processes of different pairs are independent:
    pieces of rows i have random numbers of their own. A first pass over the pieces counts first
    draws by time and finds the time of the last pair wanted; the second one repeats the draws.

    Args:
        weights: Positive weights x, shape ``(N,)``.
        count: Number of pairs wanted, at most N (N - 1) / 2.
        expected: Expected number of different pairs until time 1; the result does not depend on it.
        seed: Seed of the draw.
        piece: Draws of a piece, unless a single row has more.

    Yields:
        Pairs of shape ``(P, 2)``, rows ``i < j`` in lexicographic order over all pieces; the last
        piece holds the few pairs about the last one in time.
    """
    if not count:
        return
    drawing = _Drawing(weights, count, expected, seed, piece)
    first_draws = drawing.first_draws_by_time()
    while first_draws.sum() < count:
        drawing.windows += 1
        first_draws = drawing.first_draws_by_time()
    last = int(np.searchsorted(np.cumsum(first_draws), count))
    parts, times = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for pairs, time in drawing.pieces():
        position = drawing.bins(time)
        yield pairs[position < last]
        parts.append(pairs[position == last])
        times.append(time[position == last])
    earliest = np.argsort(np.concatenate(times))[: count - int(first_draws[:last].sum())]
    yield np.concatenate(parts)[np.sort(earliest)]


class _Drawing:
    """Draws of all pairs until a horizon, which are equal whenever they are asked for."""

    def __init__(
        self, weights: NDArray[np.float64], count: int, expected: float, seed: int, piece: int
    ) -> None:
        self.seed, self.weights, self.windows = seed, weights, 1
        self.num_bins = min(count, _MOST_BINS)
        self.ends = np.cumsum(weights)
        # Row i has the pairs with all later nodes.
        self.later = np.maximum(self.ends[-1] - self.ends, 0.0)
        rates = weights * self.later
        total = float(rates.sum())
        enough = count / max(expected, 1.0) * (1 + _MARGIN / math.sqrt(count))
        self.first = min(enough, 2 * count / total)
        draws = np.cumsum(rates) * self.first
        marks = np.searchsorted(draws, np.arange(piece, draws[-1], piece))
        self.starts = np.unique(np.r_[0, marks, len(weights)])

    @property
    def horizon(self) -> float:
        """End of the last window; each window is as long as all before it."""
        return self.first * 2.0 ** (self.windows - 1)

    def bins(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Bins of times up to the horizon."""
        bins = (times / self.horizon * self.num_bins).astype(np.int64)
        return np.minimum(bins, self.num_bins - 1)

    def first_draws_by_time(self) -> NDArray[np.int64]:
        """Count first draws of pairs in each bin."""
        counts = np.zeros(self.num_bins, dtype=np.int64)
        for _, times in self.pieces():
            counts += np.bincount(self.bins(times), minlength=self.num_bins)
        return counts

    def pieces(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the pairs of each piece ``(P, 2)`` and their first draws ``(P,)``."""
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            keys, times = self._draws(start, stop, 0)
            for window in range(1, self.windows):
                later = self._draws(start, stop, window)
                keys, first = np.unique(np.concatenate([keys, later[0]]), return_index=True)
                times = np.concatenate([times, later[1]])[first]
            yield pairs_of_keys(keys, len(self.weights)), times

    def _draws(
        self, start: int, stop: int, window: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the different pairs drawn in a window as ascending numbers, and their first draws."""
        rng = np.random.default_rng((self.seed, start, window))
        begin = self.first * 2.0 ** (window - 1) if window else 0.0
        length = self.first * 2.0 ** max(window - 1, 0)
        later = self.later[start:stop]
        rows = np.repeat(
            np.arange(start, stop), rng.poisson(self.weights[start:stop] * later * length)
        )
        targets = self.ends[rows] + rng.random(len(rows)) * self.later[rows]
        order = near_order((targets * (2**40 / self.ends[-1])).astype(np.int64))
        columns = np.empty(len(rows), dtype=np.int64)
        columns[order] = np.searchsorted(self.ends, targets[order], side="right")
        # Sums are rounded: a target may lie behind the last end.
        columns = np.clip(columns, rows + 1, len(self.weights) - 1)
        keys = rows * len(self.weights) + columns
        keys.sort()
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        draws, times = np.diff(begins, append=len(keys)), rng.random(len(begins))
        # The first of k draws at uniform times, without the times of the others.
        again = np.flatnonzero(draws > 1)
        times[again] = 1 - times[again] ** (1 / draws[again])
        return keys[begins], begin + times * length


def sorted_blocks(numbers: NDArray[np.int64], num_nodes: int) -> Iterator[Tensor]:
    """Yield edges in lexicographic order and in blocks of shape ``(B, 2)``.

    Args:
        numbers: Numbers of the edges, see :func:`pair_keys`, shape ``(M,)``; sorted in place.
        num_nodes: Number of nodes N.
    """
    numbers.sort()
    for start in range(0, len(numbers), _SORTED):
        yield torch.from_numpy(pairs_of_keys(numbers[start : start + _SORTED], num_nodes))


def two_sided_edges(
    space: PairSpace, degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Tensor:
    """Draw different edges in proportion to the product of the weights of their ends.

    Args:
        space: Pairs of two parts.
        degrees: Expected degrees, integers of shape ``(num_ends,)``, as :meth:`PairSpace.degrees`.
        num_edges: Number of edges wanted, the sum of each part.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a pair of ``space``, in no order.
    """
    first, second = space.parts
    parts = degrees[first.start : first.stop], degrees[second.start : second.stop]
    few = space.num_pairs <= FEW_PAIRS
    # A large graph has few loops to leave out, and too many pairs to list.
    omit_loops = few and space.num_left is None
    weights = two_sided_weights(*(part.numpy() for part in parts), omit_loops=omit_loops)
    linkable = int((parts[0] > 0).sum()) * int((parts[1] > 0).sum())
    if space.num_left is None:
        linkable -= int(((parts[0] > 0) & (parts[1] > 0)).sum())
    count = min(num_edges, linkable)
    if not count:
        return torch.empty(0, 2, dtype=torch.long)
    if few:
        return earliest_pairs(space, np.concatenate(weights), count, generator)
    return _drawn_pairs(space, weights, count, generator)


def two_sided_weights(
    first: NDArray[np.int64], second: NDArray[np.int64], *, omit_loops: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Find weights x, y with :math:`\sum_j (1 - e^{-x_i y_j}) = d_i`, and likewise for y.

    Where edges are drawn repeatedly in proportion to :math:`x_i y_j`, the exponent is the expected
    number of draws of a pair, and the sum the number of different neighbors.

    Args:
        first: Degrees of the first side, shape ``(A,)``.
        second: Degrees of the second side, shape ``(B,)``.
        omit_loops: Whether entry i of both sides is the same node, which is not linked to itself.
            The memory is then A B numbers, and otherwise one for each pair of different degrees.

    Returns:
        Weights of shape ``(A,)`` and ``(B,)``.
    """
    if omit_loops:
        values, counts = [first, second], [np.ones(len(first)), np.ones(len(second))]
        places = [np.arange(len(first)), np.arange(len(second))]
    else:
        groups = [np.unique(d, return_inverse=True, return_counts=True) for d in (first, second)]
        values, places, counts = (list(part) for part in zip(*groups, strict=True))
    scale = np.sqrt(max(first.sum(), 1))
    x, y = (part / scale for part in values)

    def links() -> NDArray[np.float64]:
        linked: NDArray[np.float64] = -np.expm1(-np.outer(x, y))
        if omit_loops:
            np.fill_diagonal(linked, 0)
        return linked

    for _ in range(_MOST_ROUNDS):
        ratio = values[0] / np.maximum(links() @ counts[1], 1 / _LARGEST_WEIGHT)
        x = np.minimum(x * ratio, _LARGEST_WEIGHT)
        other = values[1] / np.maximum(counts[0] @ links(), 1 / _LARGEST_WEIGHT)
        y = np.minimum(y * other, _LARGEST_WEIGHT)
        ratios = np.concatenate([ratio[values[0] > 0], other[values[1] > 0]])
        if np.abs(ratios - 1).max(initial=0.0) < _TOLERANCE:
            break
    return x[places[0]], y[places[1]]


def earliest_pairs(
    space: PairSpace, weights: NDArray[np.float64], count: int, generator: torch.Generator
) -> Tensor:
    """Draw pairs without replacement in proportion to the products of the weights of their ends.

    Args:
        space: Pairs that may be linked, of any kind; all of them are in memory.
        weights: Weight of each entry of the degree vector, shape ``(num_ends,)``.
        count: Number of pairs.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(count, 2)``, in no order.
    """
    pairs = space.pairs(torch.arange(space.num_pairs))
    unit = torch.empty(len(pairs), dtype=torch.float64).exponential_(generator=generator)
    arrivals = unit / torch.from_numpy(weights)[space.ends(pairs)].prod(dim=1)
    return pairs[arrivals.topk(count, largest=False).indices]


def _drawn_pairs(
    space: PairSpace,
    weights: tuple[NDArray[np.float64], NDArray[np.float64]],
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Draw ends one after the other; repeated pairs and loops are drawn again."""
    stops = [np.cumsum(part) / part.sum() for part in weights]
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))

    def draw(missing: int) -> NDArray[np.int64]:
        uniform = rng.random((2, 2 * missing))
        ends = [
            np.minimum(np.searchsorted(stop, share, side="right"), len(stop) - 1)
            for stop, share in zip(stops, uniform, strict=True)
        ]
        nodes = torch.from_numpy(np.stack(ends, axis=1))
        nodes[:, 1] += space.parts[1].start
        pairs = space.from_ends(nodes)
        return space.numbers(pairs[pairs[:, 0] != pairs[:, 1]]).numpy()

    numbers = different(draw, count, _MOST_ROUNDS)
    edges = space.pairs(torch.from_numpy(np.sort(numbers)))
    # Where nearly all pairs of hubs are edges, the last ones would take forever.
    return torch.cat([edges, space.draw(edges, count - len(edges), generator)])


def different(
    draw: Callable[[int], NDArray[np.int64]], count: int, rounds: float = math.inf
) -> NDArray[np.int64]:
    """Draw until there are ``count`` different numbers, in the order of their first draws.

    Args:
        draw: Draws numbers, given how many are missing.
        count: Number of numbers wanted; draws beyond it are dropped.
        rounds: Most calls of ``draw``, after which there may be fewer.
    """
    found = np.empty(0, dtype=np.int64)
    while len(found) < count and rounds > 0:
        found = np.concatenate([found, draw(count - len(found))])
        found = found[np.sort(np.unique(found, return_index=True)[1])][:count]
        rounds -= 1
    return found


def edges_by_degrees(
    space: PairSpace, degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Tensor:
    """Draw different edges by the expected degrees of their ends, on pairs of any kind.

    Args:
        space: Pairs that may be linked.
        degrees: Expected degrees, integers of shape ``(num_ends,)``.
        num_edges: Number of edges wanted.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a pair of ``space``, in no order.
    """
    draw = partial(two_sided_edges, space) if len(space.parts) > 1 else chung_lu_edges
    edges = draw(degrees, num_edges, generator)
    # Nodes of positive degree may have too few pairs; any others then are edges, too.
    missing = min(num_edges, space.num_pairs) - len(edges)
    if not missing:
        return edges
    numbers = space.numbers(edges).sort().values
    return torch.cat([edges, space.draw(space.pairs(numbers), missing, generator)])


def chung_lu_edges(degrees: Tensor, num_edges: int, generator: torch.Generator) -> Tensor:
    """Draw different edges in proportion to the product of the weights of their ends.

    The weights come from :func:`edge_weights`. Loops and repeated edges are drawn again; with these
    weights that takes no more from hubs than from other nodes.

    Args:
        degrees: Expected degrees, integers of shape ``(N,)``.
        num_edges: Number of edges wanted, half the sum of the degrees. There are fewer only if the
            nodes of positive degree have fewer pairs.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j``, in no order. Graphs of
        :data:`MANY_EDGES` or more are those of :func:`chung_lu_pieces`.

    References:
        Chung, Lu, "The average distances in random graphs with given expected degrees", 2002.
        Miller, Hagberg, "Efficient generation of networks with given expected degrees", 2011, also
        draws in linear time, but a random number of edges.
    """
    if num_edges >= MANY_EDGES:
        return torch.cat(list(chung_lu_pieces(degrees, num_edges, generator)))
    nodes = degrees.nonzero().squeeze(1)
    of_nodes = degrees[nodes].numpy()
    count = min(num_edges, num_pairs(len(nodes)))
    if num_pairs(len(nodes)) <= FEW_PAIRS:
        weights = edge_weights(of_nodes)
        return nodes[earliest_pairs(UndirectedPairs(len(nodes)), weights, count, generator)]
    weights = edge_weights(_possible(of_nodes))
    ends = np.cumsum(weights) / weights.sum()
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))

    def draw(missing: int) -> NDArray[np.int64]:
        places = np.searchsorted(ends, rng.random((2 * missing, 2)), side="right")
        drawn = np.minimum(places, len(weights) - 1)
        return pair_keys(drawn, len(weights))[drawn[:, 0] != drawn[:, 1]]

    keys = different(draw, count)
    return nodes[torch.from_numpy(pairs_of_keys(keys, len(weights)))]


def chung_lu_pieces(
    degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Draw a graph by the law of :func:`chung_lu_edges` without holding it in memory.

    Args:
        degrees: Expected degrees, integers of shape ``(N,)``.
        num_edges: Number of edges wanted.
        generator: Source of the draw.

    Yields:
        Edges of shape ``(P, 2)``, as :func:`weighted_pairs` orders them.
    """
    nodes = degrees.nonzero().squeeze(1)
    of_nodes = _possible(degrees[nodes].numpy())
    count = min(num_edges, num_pairs(len(nodes)))
    seed = int(torch.randint(2**62, (1,), generator=generator))
    for pairs in weighted_pairs(edge_weights(of_nodes), count, float(of_nodes.sum()) / 2, seed):
        yield nodes[torch.from_numpy(pairs)]


def _possible(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut degrees at the number of other nodes, which noise may exceed.

    The weight of such a node would have no bound: nearly all draws would repeat its edges.
    """
    return np.minimum(degrees, max(len(degrees) - 1, 1))


def edge_weights(degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Find weights x with :math:`\sum_{j \ne i} (1 - e^{-x_i x_j}) = d_i`, or the nearest to it.

    Where edges are drawn repeatedly in proportion to :math:`x_i x_j`, the exponent is the expected
    number of draws of a pair, and the sum the number of different neighbors. Memory grows with the
    pairs of different degrees: O(M) for M edges.

    Args:
        degrees: Positive degrees d of shape ``(N,)``.

    Returns:
        Weights of shape ``(N,)``.
    """
    values, position, counts = np.unique(degrees, return_inverse=True, return_counts=True)
    weights = values / np.sqrt(max(degrees.sum(), 1))
    for _ in range(_MOST_ROUNDS):
        linked = -np.expm1(-np.outer(weights, weights))
        expected = linked @ counts - linked.diagonal()
        ratio = values / np.maximum(expected, 1 / _LARGEST_WEIGHT)
        # Both ends are corrected, each by half. A node without a partner would end at infinity.
        weights = np.minimum(weights * np.sqrt(ratio), _LARGEST_WEIGHT)
        if np.abs(ratio - 1).max(initial=0.0) < _TOLERANCE:
            break
    return weights[position]
