"""Communities that nodes join in turns, and the edges between them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.graph.sorted_numbers import are_among, contains

_UNTANGLING_ROUNDS = 50


def turn_stops(first: int, total: int, growth: float) -> list[int]:
    """Divide ``total`` nodes into turns that grow by at most a factor of ``growth``.

    Args:
        first: Nodes that have no turn, positive.
        total: Number of nodes.
        growth: Factor above 1 by which a turn multiplies the number of nodes so far.

    Returns:
        Ascending stops, the last of them ``total``; empty if all nodes are first ones.
    """
    stops: list[int] = []
    last = first
    while last < total:
        last = min(max(last + 1, int(last * growth)), total)
        stops.append(last)
    return stops


def earlier_first(edges: Tensor, order: Tensor) -> Tensor:
    """Name nodes by their places and sort edges by the later end.

    Args:
        edges: Edges of shape ``(M, 2)``.
        order: All N nodes, the earliest first, shape ``(N,)``.

    Returns:
        Places of the two ends of each edge, rows ``i < j`` of shape ``(M, 2)`` in ascending order
        of j.
    """
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    ends = place[edges].sort(dim=1).values
    return ends[ends[:, 1].argsort()]


def count_neighbors(ends: Tensor, chosen: Tensor, stop: int, num_communities: int) -> Tensor:
    """Count neighbors by community: of nodes in their turn, among nodes of earlier turns.

    Args:
        ends: Edges as :func:`earlier_first` gives them, shape ``(M, 2)``.
        chosen: Communities of the first S nodes, shape ``(S,)``.
        stop: Nodes S to ``stop - 1`` have their turn.
        num_communities: Number of communities C.

    Returns:
        Counts of shape ``(stop - S, C)``.
    """
    start = len(chosen)
    low, high = torch.searchsorted(ends[:, 1].contiguous(), torch.tensor([start, stop])).tolist()
    earlier, later = ends[low:high].T
    settled = earlier < start
    cells = (later[settled] - start) * num_communities + chosen[earlier[settled]]
    size = (stop - start) * num_communities
    return torch.bincount(cells, minlength=size).view(-1, num_communities)


def expected_neighbors(
    degrees: Tensor,
    chosen: Tensor,
    stop: int,
    num_communities: int,
    receiving: Tensor | None = None,
) -> Tensor:
    """Return the mean of :func:`count_neighbors` over random edges of the given degrees.

    Args:
        degrees: Degrees in the order of the turns, not all zero, shape ``(N,)``.
        chosen: Communities of the first S nodes, shape ``(S,)``.
        stop: Nodes S to ``stop - 1`` have their turn.
        num_communities: Number of communities C.
        receiving: Degrees as second ends of pairs, if ``degrees`` are those as first ends.

    Returns:
        Expected counts of shape ``(stop - S, C)``.
    """
    start, first = len(chosen), degrees.double()
    # A node has edges as their first end and, if the ends differ, as their second end.
    second = first if receiving is None else receiving.double()
    facing = [(first, second), (second, first)][: 1 if receiving is None else 2]
    counts = torch.zeros(stop - start, num_communities, dtype=torch.double)
    for own, others in facing:
        volumes = torch.bincount(chosen, others[:start], minlength=num_communities)
        counts += torch.outer(own[start:stop], volumes / others.sum().clamp(min=1))
    return counts


def nearest_counts(noisy: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Project noisy counts onto nonnegative counts of a given sum.

    Least squares subtracts the same number from all counts and cuts at zero. Noise then does not
    add up to edges where there are none.

    Args:
        noisy: Noisy counts of shape ``(K,)``.
        total: Wanted sum, not negative.

    Returns:
        Counts of shape ``(K,)``, at the least squared distance up to rounding.
    """
    return fitting_counts(noisy.astype(np.float64), np.full_like(noisy, total), total)


def untangle(
    pairs: NDArray[np.int64],
    communities: NDArray[np.int64],
    rng: np.random.Generator,
    no_pairs: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Exchange ends of pairs to remove loops and repeated pairs, as far as possible.

    Ends are exchanged between pairs that link the same two communities. Nodes keep the number of
    their pairs, and communities the number of pairs between them.

    Args:
        pairs: Pairs of nodes, shape ``(P, 2)``.
        communities: Community of each node, shape ``(N,)``.
        rng: Source of the draw.
        no_pairs: Pairs that are removed like loops, shape ``(K, 2)``.

    Returns:
        Pairs of shape ``(P, 2)``.
    """
    none = np.empty((0, 2), dtype=np.int64)
    barred = np.sort(_keys(none if no_pairs is None else no_pairs, len(communities)))
    num_nodes, ends = len(communities), communities[pairs]
    turned = ends[:, 0] > ends[:, 1]
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    block, keys = ends.min(axis=1) * num_nodes + ends.max(axis=1), _keys(pairs, num_nodes)
    # Nearly sorted keys take little time to sort again.
    order = np.lexsort((keys, block))
    pairs, block, keys = pairs[order], block[order], keys[order]
    is_barred = (pairs[:, 0] == pairs[:, 1]) | are_among(keys, barred)
    first, last = (np.searchsorted(block, block, side=side) for side in ("left", "right"))
    for _ in range(_UNTANGLING_ROUNDS):
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        is_tangled = is_barred.copy()
        is_tangled[order[1:][sorted_keys[1:] == sorted_keys[:-1]]] = True
        tangled = np.flatnonzero(is_tangled)
        if not len(tangled):
            break
        partners, chosen = np.unique(rng.integers(first[tangled], last[tangled]), return_index=True)
        free = ~is_tangled[partners]
        moved = np.stack([tangled[chosen[free]], partners[free]], axis=1)
        # From a, b and c, d come a, d and c, b.
        new = pairs[moved]
        new[:, :, 1] = new[:, ::-1, 1]
        fits = _are_new(new, sorted_keys, num_nodes)
        fits &= ~contains(barred, _keys(new, num_nodes)).any(axis=1)
        pairs[moved[fits]], keys[moved[fits]] = new[fits], _keys(new[fits], num_nodes)
        is_barred[moved[fits]] = False
    return pairs


def _are_new(
    proposals: NDArray[np.int64], sorted_keys: NDArray[np.int64], num_nodes: int
) -> NDArray[np.bool_]:
    """Return a mask of proposals ``(K, 2, 2)`` of two pairs without a loop or an existing pair."""
    keys = _keys(proposals, num_nodes)
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    is_new = (sorted_keys[at] != keys) & (counts[group].reshape(keys.shape) == 1)
    is_new &= proposals[:, :, 0] != proposals[:, :, 1]
    return is_new.all(axis=1)


def _keys(pairs: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Return one number per pair, the same for both orientations: ``(..., 2)`` to ``(...)``."""
    first, second = pairs[..., 0], pairs[..., 1]
    return np.minimum(first, second) * num_nodes + np.maximum(first, second)
