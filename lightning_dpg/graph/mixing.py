"""Edges by the categories of their ends: rows are placed and edges swapped until a graph has released mixing."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import onto_total
from lightning_dpg.graph.pair_numbers import are_among
from lightning_dpg.graph.stubs import ends_of_links, links_of_ends, stub_mixing

_LEAST = 1e-9
_STANDS_OUT = 3  # scales of noise, which is exceeded in one of twenty entries
_CLOSE_SHARE = 0.1  # share of the noise of the targets that is not worth another swap
# Tuned on Cora-ML and on synthetic block graphs.
_PLACING_ROUNDS = 200
_FALL, _PLACING_PATIENCE = 0.98, 20  # factor of the squared distance that as many rounds must reach
_KEPT = 0.5  # of the swaps of a round that gain; neighbors that all move at once would not gain
_LOOKUPS = 2**22  # neighbors that are looked at at once; a pair may have more
# Tuned on Cora-ML and on synthetic block graphs.
_ROUNDS = 200
_PATIENCE = 40  # rounds in a row without a swap
_STEP = 0.2  # of the squared distance to the targets, what the swaps of a round may gain
_CHOICE = 3  # times as many swaps to choose from
_BLOCKED = 0.02  # share of the gaining swaps that are possible, below which edges are loosened
_TRIANGLE_ROUNDS = 30
_CLOSE = 0.01  # share of the triangles that is not worth another swap


class NoisyMixing(NamedTuple):
    """Released mixing of a column, or of two columns of ends with an order.

    Attributes:
        counts: Noisy weights of edges between categories, the larger one in the row and the smaller
            one in the column, shape ``(K, K)``; entries above the diagonal are ignored. With ``pair``
            the category of the first end is in the row, and that of the second one in the column,
            shape ``(K, L)``.
        scale: Scale of the Laplace noise of each entry.
        pair: Column of the first and of the second end, whose order counts in directed and bipartite
            graphs; None of an undirected graph.
    """

    counts: NDArray[np.float64]
    scale: float
    pair: tuple[int, int] | None = None

    @property
    def cells(self) -> NDArray[np.bool_]:
        """Entries that count, shape ``(K, L)``."""
        every = np.ones(self.counts.shape, dtype=bool)
        return every if self.pair else np.tril(every)

    @property
    def diagonal(self) -> NDArray[np.bool_]:
        """Entries of edges within a category; two columns have none."""
        has_any = self.pair is None or self.pair[0] == self.pair[1]
        return np.asarray(np.eye(*self.counts.shape) * has_any > 0)

    def of(
        self, edges: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count edges ``(..., 2)`` by the categories of the nodes as first and as second ends."""
        one, other = first[edges[..., 0]].ravel(), second[edges[..., 1]].ravel()
        if self.pair is None:
            one, other = np.maximum(one, other), np.minimum(one, other)
        rows, columns = self.counts.shape
        counts = np.bincount(one * columns + other, minlength=rows * columns)
        return counts.reshape(rows, columns)


class MixingGap(NamedTuple):
    """Difference between the mixing of a graph and its targets.

    Attributes:
        lacking: For each column the edges that a pair of categories lacks, negative where it has too
            many, symmetric matrices of shape ``(K, K)``; or arranged as in :class:`NoisyMixing` where
            ends have an order.
        distance: Sum of the squares over all columns.
        is_close: Whether the difference is an edge for each entry, or much smaller than its noise.
    """

    lacking: list[NDArray[np.float64]]
    distance: float
    is_close: bool


def fitted_mixing(
    noisy: NoisyMixing, totals: NDArray[np.int64], of_second: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    r"""Estimate the edges between categories of a graph from released mixing.

    Released mixing is the sum of three parts: that which the totals of its categories make likely; the
    excess of links within categories, which is the assortativity coefficient times its largest value;
    and the rest. The last two are shrunk against noise after James and Stein,
    :math:`(1 - \sigma^2 / r^2)_+` for a part of length r with noise of variance :math:`\sigma^2`.
    Entries of categories that are too rare to stand out from the noise are taken to be chance.
    Negative numbers then become 0, but all links within categories keep their sum, as do the others.
    At last, rows and columns are scaled to the totals of the graph.

    Args:
        noisy: Released mixing.
        totals: Ends of edges at the nodes of each category in the graph, shape ``(K,)``.
        of_second: Second ends of edges at the nodes of each category, shape ``(L,)``, where ends have
            an order and the totals are those of first ends.

    Returns:
        Edges between categories, arranged as in :class:`NoisyMixing`.
    """
    cells, diagonal, per_edge = noisy.cells, noisy.diagonal, 2 if of_second is None else 1
    second = totals if of_second is None else of_second
    unit = _unit(noisy, totals.sum() / per_edge)
    scale, independent = unit * noisy.scale, _chance(totals, second)
    # No more than all ends of the rarer category can be in a cell: below the noise, that says more.
    is_rare = np.minimum.outer(totals, second) < _STANDS_OUT * scale
    counts = noisy.counts if noisy.pair else ends_of_links(noisy.counts)
    ends = np.where(is_rare, independent, unit * counts)
    sums = np.maximum(ends.sum(axis=1), _LEAST)
    others = np.maximum(ends.sum(axis=0), _LEAST) if noisy.pair else sums
    chance = _chance(sums, others)
    within = np.where(diagonal, np.minimum.outer(sums, others), 0.0) - chance
    excess = np.trace(ends - chance) if diagonal.any() else 0.0
    largest = max(np.trace(within), _LEAST)
    # A Laplace variate of scale b has variance 2 b^2; each edge without an order has two ends.
    on_diagonal, in_all = (int(np.count_nonzero(~is_rare & part)) for part in (diagonal, cells))
    shrunk = _shrinkage(float(excess**2), 2 * per_edge**2 * on_diagonal * scale**2) * excess
    model, rest = chance + shrunk / largest * within, ends - chance - excess / largest * within
    if noisy.pair is None:
        model, rest = links_of_ends(model), links_of_ends(rest)
    rest, wanted = rest[cells], model.copy()
    wanted[cells] += _shrinkage(float(rest @ rest), 2 * in_all * scale**2) * rest
    for part in (diagonal, cells & ~diagonal):
        wanted[part] = _nonnegative(wanted[part], float(model[part].sum()))
    if of_second is None:
        return links_of_ends(stub_mixing(wanted, totals))
    # Categories of first ends, then those of second ends, which are linked to each other only.
    size = len(totals)
    links = np.zeros((size + len(second),) * 2)
    links[:size, size:] = wanted
    fitted = stub_mixing(links, np.concatenate([totals, second]), num_first=size)
    return fitted[:size, size:]


def wanted_mixing(noisy: NoisyMixing, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return :func:`fitted_mixing` of the totals of a graph, given its edges between categories."""
    if noisy.pair is None:
        return fitted_mixing(noisy, ends_of_links(counts).sum(axis=1))
    return fitted_mixing(noisy, counts.sum(axis=1), counts.sum(axis=0))


def mixing_gap(
    edges: NDArray[np.int64], rows: NDArray[np.int64], mixing: Sequence[NoisyMixing]
) -> MixingGap:
    """Compare the edges between categories with the targets of :func:`fitted_mixing`.

    Args:
        edges: Edges of shape ``(M, 2)``.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        mixing: Released mixing of each column, or of pairs of columns.
    """
    lacking, distance, negligible = [], 0.0, 0.0
    for first, second, noisy in _columns(rows, mixing):
        counts = noisy.of(edges, first, second)
        difference = wanted_mixing(noisy, counts) - counts
        lacking.append(difference if noisy.pair else difference + np.tril(difference, -1).T)
        distance += float((difference**2).sum())
        variance = 2 * (_unit(noisy, len(edges)) * noisy.scale) ** 2
        negligible += np.count_nonzero(noisy.cells) * max(_CLOSE_SHARE**2 * variance, 1)
    return MixingGap(lacking, distance, distance <= negligible)


def _columns(
    rows: NDArray[np.int64], mixing: Sequence[NoisyMixing]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NoisyMixing]]:
    """Yield the categories of all nodes as first and as second ends, with each mixing."""
    for place, noisy in enumerate(mixing):
        one, other = noisy.pair or (place, place)
        yield rows[:, one], rows[:, other], noisy


def _chance(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Ends of edges between categories that their totals make likely."""
    return np.asarray(np.outer(first, second) / max(float(first.sum()), _LEAST))


def _unit(noisy: NoisyMixing, num_edges: float) -> float:
    """Edges for a weight of 1; very many where noise leaves no positive weight."""
    return float(num_edges) / max(float((noisy.counts * noisy.cells).sum()), _LEAST)


def _shrinkage(square: float, variance: float) -> float:
    """Factor of a value with noise, by its square and the variance of the noise."""
    return max(1 - variance / square, 0.0) if square > 0 and math.isfinite(variance) else 0.0


def _nonnegative(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest values without negative ones that have a sum."""
    if not len(values) or total <= 0 or not math.isfinite(total):
        return np.zeros_like(values)
    return onto_total(values, total)


def place_rows(
    edges: NDArray[np.int64],
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    mixing: Sequence[NoisyMixing],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Swap whole rows within groups of nodes until the edges have the released mixing.

    In each round the nodes of each group form random pairs, and some of those whose swap brings the
    mixing of all columns together nearer to its targets swap their rows. The swaps end where what
    lacks is much smaller than the noise of the release.

    Args:
        edges: Edges of shape ``(M, 2)``, rows ``i < j`` of an undirected graph.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        groups: Group of each node, such as the class of its degree, shape ``(N,)``.
        mixing: Released mixing of each column, or of pairs of columns.
        rng: Source of the draws.

    Returns:
        Rows of shape ``(N, J)``; each group has the given ones in another order.
    """
    rows, num_nodes = rows.copy(), len(rows)
    # In ascending order, sums of a node touch neighboring memory.
    ahead, back = (np.sort(part @ [num_nodes, 1]) for part in (edges, edges[:, ::-1]))
    keys = np.sort(np.concatenate([ahead, back]))
    of_first, of_second, of_any = (np.divmod(part, num_nodes) for part in (ahead, back, keys))
    least, idle = math.inf, 0
    for _ in range(_PLACING_ROUNDS):
        gap = mixing_gap(edges, rows, mixing)
        idle += 1
        if gap.distance < _FALL * least:
            least, idle = gap.distance, 0
        if gap.is_close or idle == _PLACING_PATIENCE:
            break
        order = np.argsort(groups + rng.random(num_nodes))
        one, other = order[: num_nodes // 2 * 2].reshape(-1, 2).T
        is_possible = (groups[one] == groups[other]) & (rows[one] != rows[other]).any(axis=1)
        is_possible &= ~are_among(one * num_nodes + other, keys)
        one, other = one[is_possible], other[is_possible]
        gains = np.zeros(len(one))
        for (first, second, noisy), lacking in zip(
            _columns(rows, mixing), gap.lacking, strict=True
        ):
            sides = [(of_any, first, first, lacking)]
            if noisy.pair:
                sides = [(of_first, first, second, lacking.T), (of_second, second, first, lacking)]
            for (centers, neighbors), column, others, lacks in sides:
                size = len(lacks)
                cells = centers * size + others[neighbors]
                around = np.bincount(cells, minlength=num_nodes * size).reshape(num_nodes, size)
                fits = around @ lacks
                old, new = column[one], column[other]
                gains += fits[one, new] - fits[one, old] + fits[other, old] - fits[other, new]
        moves = np.flatnonzero(gains > 0)
        moves = moves[rng.random(len(moves)) < _KEPT]
        one, other = one[moves], other[moves]
        rows[one], rows[other] = rows[other], rows[one]
    return rows


class CommonNeighbors:
    """Neighbors of the nodes of a graph, to count those that pairs have in common.

    Args:
        edges: Different edges of shape ``(M, 2)``, without loops.
        num_nodes: Number of nodes N.
    """

    def __init__(self, edges: NDArray[np.int64], num_nodes: int) -> None:
        self._num_nodes = num_nodes
        first, second = np.concatenate([edges, edges[:, ::-1]]).T
        self._keys = np.sort(first * num_nodes + second)
        self._degrees = np.bincount(first, minlength=num_nodes)
        self._starts = np.cumsum(self._degrees) - self._degrees

    def count(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the common neighbors of pairs ``(P, 2)``, at the cost of the smaller degrees."""
        one, other = pairs.T
        is_smaller = self._degrees[one] <= self._degrees[other]
        center, target = np.where(is_smaller, one, other), np.where(is_smaller, other, one)
        # Neighboring lookups touch neighboring memory.
        order = np.argsort(target, kind="stable")
        ends = np.cumsum(self._degrees[center[order]])
        marks = np.searchsorted(ends, np.arange(_LOOKUPS, ends[-1:].sum(), _LOOKUPS))
        counts = np.zeros(len(pairs), dtype=np.int64)
        for block in np.split(order, marks):
            lengths = self._degrees[center[block]]
            owner = np.repeat(np.arange(len(block)), lengths)
            rank = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            neighbors = self._keys[self._starts[center[block]][owner] + rank] % self._num_nodes
            keys = target[block][owner] * self._num_nodes + neighbors
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            counts[block] = np.bincount(owner[self._keys[places] == keys], minlength=len(block))
        return counts


def rewire(
    edges: NDArray[np.int64],
    rows: NDArray[np.int64],
    mixing: Sequence[NoisyMixing],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Swap ends of edges until the graph has the released mixing.

    In each round random edges between categories with too many of them form pairs, and (a, b), (c, d)
    becomes (a, d), (c, b) where that brings the mixing of all columns together nearer to its targets.
    Swaps that keep the number of triangles go first. The swaps end where what lacks is much smaller
    than the noise. Swaps between ends with equal rows then bring back the number of triangles.

    Where ends have an order, first ends stay first ones, and triangles do not count.

    Args:
        edges: Different edges of shape ``(M, 2)``, rows ``i < j`` of an undirected graph.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        mixing: Released mixing of each column, or of pairs of columns.
        rng: Source of the draws.

    Returns:
        Different edges of shape ``(M, 2)`` of the same form, in no order; each node keeps its degree as
        a first and as a second end, or the sum of both where edges have no order.
    """
    edges, num_nodes, idle = edges.copy(), len(rows), 0
    kinds = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    ordered = any(noisy.pair for noisy in mixing)
    wanted = triangles = 0.0 if ordered else _triangles(edges, num_nodes)
    for _ in range(_ROUNDS):
        gap = mixing_gap(edges, rows, mixing)
        if gap.is_close or idle == _PATIENCE:
            break
        worth = _worth(edges, rows, mixing, gap.lacking)
        pairs = _paired(rng.permutation(np.flatnonzero(worth < 0)))
        new = _swapped(edges[pairs], None if ordered else rng.random(len(pairs)) < 0.5)
        gains = _worth(new, rows, mixing, gap.lacking).sum(axis=1) - worth[pairs].sum(axis=1)
        gaining = np.flatnonzero(gains > 0)
        moves = gaining[_are_simple(new[gaining], edges, num_nodes)]
        if len(moves) < _BLOCKED * len(gaining):
            # Edges that exist are in the way, as between hubs: link their ends to other nodes.
            edges = _loosened(edges, worth < 0, kinds, rng, ordered=ordered)
            triangles = 0.0 if ordered else _triangles(edges, num_nodes)
            idle += 1
            continue
        few = np.searchsorted(np.cumsum(gains[moves]), _CHOICE * _STEP * gap.distance)
        moves = moves[: 1 + few]
        closed = np.zeros(len(moves), dtype=np.int64)
        if not ordered:
            closed = _closed(edges[pairs[moves]], new[moves], edges, num_nodes)
        sign = 1 if triangles > wanted else -1
        order = np.argsort(sign * closed / gains[moves], kind="stable")
        moves, closed = moves[order], closed[order]
        moves = moves[: 1 + np.searchsorted(np.cumsum(gains[moves]), _STEP * gap.distance)]
        # The squared distance falls by twice the gain, less the square of the change.
        change = _squared_change(edges[pairs[moves]], new[moves], rows, mixing)
        moves = moves[: round(len(moves) * min(gains[moves].sum() / max(change, 1), 1))]
        edges[pairs[moves]] = new[moves]
        triangles += closed[: len(moves)].sum()
        idle = 0 if len(moves) else idle + 1
    return edges if ordered else _with_triangles(edges, kinds, wanted, rng)


def _triangles(edges: NDArray[np.int64], num_nodes: int) -> float:
    return float(CommonNeighbors(edges, num_nodes).count(edges).sum() / 3)


def _with_triangles(
    edges: NDArray[np.int64], kinds: NDArray[np.int64], wanted: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Swap ends with equal rows, which keeps all mixing, until a graph has wanted triangles."""
    num_nodes = len(kinds)
    for _ in range(_TRIANGLE_ROUNDS):
        triangles = CommonNeighbors(edges, num_nodes).count(edges)
        lacking = wanted - triangles.sum() / 3
        if abs(lacking) <= _CLOSE * wanted:
            break
        pairs, new = _equal_swaps(edges, kinds, rng)
        is_useful = (triangles[pairs] > 0).any(axis=1) == (lacking < 0)
        pairs, new = pairs[is_useful], new[is_useful]
        if lacking < 0:
            few = np.searchsorted(np.cumsum(triangles[pairs].sum(axis=1)), -_CHOICE * lacking)
            pairs, new = pairs[: 1 + few], new[: 1 + few]
        moves = np.flatnonzero(_are_simple(new, edges, num_nodes))
        closed = np.sign(lacking) * _closed(edges[pairs[moves]], new[moves], edges, num_nodes)
        order = np.argsort(-closed, kind="stable")[: np.count_nonzero(closed > 0)]
        order = order[: np.searchsorted(np.cumsum(closed[order]), abs(lacking) * 2 / 3)]
        edges[pairs[moves[order]]] = new[moves[order]]
    return edges


def _loosened(
    edges: NDArray[np.int64],
    is_surplus: NDArray[np.bool_],
    kinds: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    ordered: bool,
) -> NDArray[np.int64]:
    """Swap ends with equal rows between edges of surplus kinds and others."""
    edges = edges.copy()
    pairs, new = _equal_swaps(edges, kinds, rng, ordered=ordered)
    differs = is_surplus[pairs[:, 0]] != is_surplus[pairs[:, 1]]
    pairs, new = pairs[differs], new[differs]
    moves = _are_simple(new, edges, len(kinds))
    edges[pairs[moves]] = new[moves]
    return edges


def _equal_swaps(
    edges: NDArray[np.int64],
    kinds: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    ordered: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair edges at random by an end with equal rows: pairs ``(P, 2)`` and swaps ``(P, 2, 2)``."""
    turned = rng.random(len(edges)) < 0.5
    if ordered:  # all edges by the same end
        turned[:] = rng.random() < 0.5
    kind = kinds[np.where(turned, edges[:, 0], edges[:, 1])]
    pairs = _paired(np.argsort(kind + rng.random(len(edges))))
    pairs = rng.permutation(pairs[kind[pairs[:, 0]] == kind[pairs[:, 1]]])
    both = turned[pairs[:, 0]] != turned[pairs[:, 1]]
    return pairs, _swapped(edges[pairs], None if ordered else both)


def _paired(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Make pairs ``(P, 2)`` of neighbors."""
    return places[: len(places) // 2 * 2].reshape(-1, 2)


def _swapped(edges: NDArray[np.int64], turned: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """From (a, b), (c, d) make (a, d), (c, b), or (a, c), (d, b) if turned: ``(P, 2, 2)``, i < j.

    None keeps first and second ends as they are.
    """
    first, second = edges[:, 0], edges[:, 1]
    if turned is not None:
        second = np.where(turned[:, None], second[:, ::-1], second)
    new = np.stack([first[:, 0], second[:, 1], second[:, 0], first[:, 1]], axis=1)
    new = new.reshape(-1, 2, 2)
    return new if turned is None else np.sort(new, axis=2)


def _closed(
    old: NDArray[np.int64], new: NDArray[np.int64], edges: NDArray[np.int64], num_nodes: int
) -> NDArray[np.int64]:
    """Triangles that each swap ``(S, 2, 2)`` closes, less those that it opens, if it is alone."""
    common = CommonNeighbors(edges, num_nodes).count(np.concatenate([new, old]).reshape(-1, 2))
    gained, lost = common.reshape(2, -1, 2).sum(axis=2)
    return np.asarray(gained - lost)


def _worth(
    edges: NDArray[np.int64],
    rows: NDArray[np.int64],
    mixing: Sequence[NoisyMixing],
    lacking: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """How much the categories of the ends of edges ``(..., 2)`` lack such edges, over all columns."""
    columns = zip(_columns(rows, mixing), lacking, strict=True)
    return sum(
        (part[one[edges[..., 0]], other[edges[..., 1]]] for (one, other, _), part in columns),
        np.zeros(edges.shape[:-1]),
    )


def _are_simple(
    new: NDArray[np.int64], edges: NDArray[np.int64], num_nodes: int
) -> NDArray[np.bool_]:
    """Mask of swaps ``(S, 2, 2)`` that make no loop, and no edge that exists or that others make."""
    keys = new[..., 0] * num_nodes + new[..., 1]
    ascending = np.sort(keys, axis=None)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    fails = new[..., 0] == new[..., 1]
    fails |= are_among(keys.ravel(), repeated).reshape(-1, 2)
    fails |= are_among(keys.ravel(), np.sort(edges[:, 0] * num_nodes + edges[:, 1])).reshape(-1, 2)
    return ~fails.any(axis=1)


def _squared_change(
    old: NDArray[np.int64],
    new: NDArray[np.int64],
    rows: NDArray[np.int64],
    mixing: Sequence[NoisyMixing],
) -> float:
    """Sum of squares of the change in mixing by edges ``(S, 2, 2)`` that become others."""
    total = 0.0
    for first, second, noisy in _columns(rows, mixing):
        change = noisy.of(new, first, second) - noisy.of(old, first, second)
        total += float((change**2).sum())
    return total
