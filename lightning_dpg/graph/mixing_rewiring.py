"""Edges swapped in pairs, so that a graph has released mixing and keeps degrees and triangles."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.common_neighbors import CommonNeighbors
from lightning_dpg.graph.mixing_targets import NoisyMixing, mixing_gap
from lightning_dpg.graph.sorted_numbers import are_among

# Tuned on Cora-ML and on synthetic block graphs.
_ROUNDS = 200
_PATIENCE = 40  # rounds in a row without a swap
_STEP = 0.2  # of the squared distance to the targets, what the swaps of a round may gain
_CHOICE = 3  # times as many swaps to choose from
_BLOCKED = 0.02  # share of the gaining swaps that are possible, below which edges are loosened
_TRIANGLE_ROUNDS = 30
_CLOSE = 0.01  # share of the triangles that is not worth another swap


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

    Args:
        edges: Different edges of shape ``(M, 2)``, rows ``i < j``.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        mixing: Released mixing of each column.
        rng: Source of the draws.

    Returns:
        Different edges of shape ``(M, 2)``, rows ``i < j``, in no order; each node keeps its degree.
    """
    edges, num_nodes, idle = edges.copy(), len(rows), 0
    kinds = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    wanted = triangles = CommonNeighbors(edges, num_nodes).count(edges).sum() / 3
    for _ in range(_ROUNDS):
        gap = mixing_gap(edges, rows, mixing)
        if gap.is_close or idle == _PATIENCE:
            break
        worth = _worth(edges, rows, gap.lacking)
        pairs = _paired(rng.permutation(np.flatnonzero(worth < 0)))
        new = _swapped(edges[pairs], rng.random(len(pairs)) < 0.5)
        gains = _worth(new, rows, gap.lacking).sum(axis=1) - worth[pairs].sum(axis=1)
        gaining = np.flatnonzero(gains > 0)
        moves = gaining[_are_simple(new[gaining], edges, num_nodes)]
        if len(moves) < _BLOCKED * len(gaining):
            # Edges that exist are in the way, as between hubs: link their ends to other nodes.
            edges = _loosened(edges, worth < 0, kinds, rng)
            triangles = CommonNeighbors(edges, num_nodes).count(edges).sum() / 3
            idle += 1
            continue
        few = np.searchsorted(np.cumsum(gains[moves]), _CHOICE * _STEP * gap.distance)
        moves = moves[: 1 + few]
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
    return _with_triangles(edges, kinds, wanted, rng)


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
) -> NDArray[np.int64]:
    """Swap ends with equal rows between edges of which there are too many and others."""
    edges = edges.copy()
    pairs, new = _equal_swaps(edges, kinds, rng)
    differs = is_surplus[pairs[:, 0]] != is_surplus[pairs[:, 1]]
    pairs, new = pairs[differs], new[differs]
    moves = _are_simple(new, edges, len(kinds))
    edges[pairs[moves]] = new[moves]
    return edges


def _equal_swaps(
    edges: NDArray[np.int64], kinds: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair edges at random by an end with equal rows: pairs ``(P, 2)`` and swaps ``(P, 2, 2)``."""
    turned = rng.random(len(edges)) < 0.5
    kind = kinds[np.where(turned, edges[:, 0], edges[:, 1])]
    pairs = _paired(np.argsort(kind + rng.random(len(edges))))
    pairs = rng.permutation(pairs[kind[pairs[:, 0]] == kind[pairs[:, 1]]])
    return pairs, _swapped(edges[pairs], turned[pairs[:, 0]] != turned[pairs[:, 1]])


def _paired(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Make pairs ``(P, 2)`` of neighbors."""
    return places[: len(places) // 2 * 2].reshape(-1, 2)


def _swapped(edges: NDArray[np.int64], turned: NDArray[np.bool_]) -> NDArray[np.int64]:
    """From (a, b), (c, d) make (a, d), (c, b), or (a, c), (d, b) if turned: ``(P, 2, 2)``, i < j."""
    first, second = edges[:, 0], edges[:, 1]
    second = np.where(turned[:, None], second[:, ::-1], second)
    new = np.stack([first[:, 0], second[:, 1], second[:, 0], first[:, 1]], axis=1)
    return np.sort(new.reshape(-1, 2, 2), axis=2)


def _closed(
    old: NDArray[np.int64], new: NDArray[np.int64], edges: NDArray[np.int64], num_nodes: int
) -> NDArray[np.int64]:
    """Triangles that each swap ``(S, 2, 2)`` closes, less those that it opens, if it is alone."""
    found = CommonNeighbors(edges, num_nodes).count(np.concatenate([new, old]).reshape(-1, 2))
    gained, lost = found.reshape(2, -1, 2).sum(axis=2)
    return np.asarray(gained - lost)


def _worth(
    edges: NDArray[np.int64], rows: NDArray[np.int64], lacking: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """How much the categories of the ends of edges ``(..., 2)`` lack such edges, over all columns."""
    columns = zip(rows.T, lacking, strict=True)
    return sum(
        (part[column[edges[..., 0]], column[edges[..., 1]]] for column, part in columns),
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
    for column, noisy in zip(rows.T, mixing, strict=True):
        size = len(noisy.counts)
        counts = [
            np.bincount(
                column[ends].max(axis=-1).ravel() * size + column[ends].min(axis=-1).ravel(),
                minlength=size**2,
            )
            for ends in (old, new)
        ]
        total += float(((counts[1] - counts[0]) ** 2).sum())
    return total
