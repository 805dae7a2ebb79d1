"""Degrees of a graph that are limited to D, or moved to wanted ones.

Take two graphs that differ in one edge. The *stretch* of a truncation is the largest number of edges
in which their truncated graphs differ. Let a function have a bound on the effect of an edge, for
graphs with degrees of at most D. This bound times the stretch holds for the truncated graph, see
:func:`lightning_dpg.privacy.sensitivity.subgraph_counts.truncated_sensitivity`.

A projection bounds the effect of one node, whose edges may all change at once: the kept *degrees* then
change by 2D in all, see :func:`lightning_dpg.privacy.sensitivity.degrees.projected_degree_sensitivity`.
Which edges are kept may change all over the graph.

* Blocki, Blum, Datta, Sheffet, "Differentially private data analysis of social networks via
  restricted sensitivity", 2013.
* Day, Li, Lyu, "Publishing graph degree distribution with node differential privacy", 2016.
"""

import math
from bisect import bisect

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.counts import Integers, fitting_counts, onto_total
from lightning_dpg.graph.pair_space import PairSpace

_ROUNDS = 4
_LEAST_SIGNAL = 3.0  # in standard deviations of the noise


def truncate(edges: Tensor, num_nodes: int, max_degree: int, order: int = 0) -> Tensor:
    """Keep edges that are among the first D of both their ends in an order of all pairs.

    The stretch is 3. Let a pair {u, v} become an edge, or cease to be one. Whether another edge is
    kept depends on its rank among the edges of each of its ends, and ranks change at u and v only.
    Of the first D edges of u at most one other leaves (rank D), or enters (rank D + 1); likewise at v.
    These two and {u, v} are all that may change.

    The order must not depend on the graph: greedy addition of edges in an order of the existing
    edges has no bounded stretch. Any fixed order of the pairs is valid. An order by node numbers
    would keep the edges to low numbers, hence the default is pseudo-random: a bijection of 64 bits
    scatters the pairs, without ties and whatever the graph.

    Args:
        edges: Rows ``i < j`` of shape ``(M, 2)``.
        num_nodes: Number of nodes N.
        max_degree: D, 1 or more (public).
        order: Number of the pseudo-random order (public).

    Returns:
        The kept edges in the order in which they came, shape ``(M', 2)``.

    Raises:
        Refusal: If ``max_degree`` is below 1.
    """
    _check_degree(max_degree)
    pairs = edges.cpu().numpy()
    keys = scatter_pairs(pairs, order)
    ends = pairs.T.ravel()
    sequence = np.lexsort((np.concatenate([keys, keys]), ends))
    degree = np.bincount(ends, minlength=num_nodes)
    before = np.cumsum(degree) - degree
    rank = np.empty(len(ends), dtype=np.int64)
    rank[sequence] = np.arange(len(ends)) - before[ends[sequence]]
    is_kept = (rank < max_degree).reshape(2, -1).all(axis=0)
    return edges[torch.from_numpy(is_kept).to(edges.device)]


def scatter_pairs(pairs: NDArray[np.int64], order: int) -> NDArray[np.uint64]:
    """Map each pair to a different 64-bit number, shape ``(M,)``.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014, the last function
    of SplitMix64 in Stafford's variant 13: each of its steps is invertible.
    """
    low, high = pairs.astype(np.uint64).T
    start = np.uint64(order * 0x9E3779B97F4A7C15 % 2**64)
    keys = ((low << np.uint64(32)) | high) + start
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _check_degree(max_degree: int) -> None:
    if max_degree < 1:
        raise Refusal(f"max_degree must be 1 or more, got {max_degree}")


def project_degrees(
    edges: NDArray[np.int64], num_nodes: int, max_degree: int, order: int = 0
) -> NDArray[np.bool_]:
    """Go through the edges in a fixed order of all pairs; keep one if both ends have fewer than D.

    The order is the pseudo-random one of :func:`scatter_pairs`, which does not depend on the graph.
    The result equals the plain loop, computed in rounds. Each round keeps an open edge if it is
    so early among the open edges of both its ends that no open edge can take its place. It drops
    edges with a full end. The first open edge is always kept. An order at random takes about as
    many rounds as the logarithm of the number of edges.

    Args:
        edges: Different rows ``i < j`` of shape ``(M, 2)`` (private).
        num_nodes: Number of nodes N.
        max_degree: D, 1 or more (public).
        order: Number of the pseudo-random order (public).

    Returns:
        Mask of the kept edges, shape ``(M,)`` (private).

    Raises:
        Refusal: If ``max_degree`` is below 1.
    """
    _check_degree(max_degree)
    first, second = edges.T
    is_kept = np.ones(len(edges), dtype=np.bool_)
    degrees = np.bincount(edges.ravel(), minlength=num_nodes)
    # Edges between ends that cannot be full are kept, and count for their ends from the start.
    is_sure = (degrees[first] <= max_degree) & (degrees[second] <= max_degree)
    contested = np.flatnonzero(~is_sure)
    room = max_degree - np.bincount(edges[is_sure].ravel(), minlength=num_nodes)
    by_order = contested[np.argsort(scatter_pairs(edges[contested], order))]
    # An edge is its place in the order from here on, and an end knows its edges in ascending order.
    ends = edges[by_order]
    is_kept[by_order] = _first_come(ends, room)
    return is_kept


def _first_come(ends: NDArray[np.int64], room: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the kept edges of shape ``(K, 2)``, the first ones first, in rounds."""
    is_kept = np.zeros(len(ends), dtype=np.bool_)
    is_open = np.ones(len(ends), dtype=np.bool_)
    stubs = np.argsort(ends.ravel(), kind="stable")  # by node, then by the order of the edges
    places, nodes = stubs // 2, ends.ravel()[stubs]
    room = room.copy()
    while len(places):
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        sizes = np.diff(starts, append=len(nodes))
        is_early = np.arange(len(nodes)) - np.repeat(starts, sizes) < room[nodes]
        # An edge is early at both its ends, or full at one of them.
        votes = np.bincount(places[is_early], minlength=len(ends))
        chosen = is_open & (votes == 2)
        is_kept |= chosen
        room -= np.bincount(ends[chosen].ravel(), minlength=len(room))
        is_open &= ~chosen & (room[ends] > 0).all(axis=1)
        stays = is_open[places]
        places, nodes = places[stays], nodes[stays]
    return is_kept


def graphical(degrees: Integers) -> Integers:
    """Move descending degrees to ones that a simple graph can have, with the same sum.

    The largest degrees are cut, as little as possible, and the same is added to all others.

    Args:
        degrees: Degrees in descending order, shape ``(N,)``, of an even sum of at most N (N - 1).
    """
    if is_graphical(degrees):
        return degrees
    total, exact = int(degrees.sum()), degrees.astype(np.float64)

    def cut(values: NDArray[np.float64], largest: int) -> Integers:
        most = np.full(len(degrees), largest)
        return np.asarray(-np.sort(-fitting_counts(values, most, total)))

    caps = range(-(-total // len(degrees)), int(degrees[0]) + 1)
    place = bisect(caps, 0, key=lambda cap: 1 - is_graphical(cut(exact, cap)))
    found = cut(exact, caps[max(place - 1, 0)])
    return found if is_graphical(found) else cut(np.zeros_like(exact), caps[0])  # equal ones


def is_graphical(degrees: Integers) -> bool:
    """Return whether a simple graph has these descending degrees, by Erdos and Gallai."""
    first = np.arange(1, len(degrees) + 1)  # nodes of the largest degrees
    sums = np.concatenate([[0], np.cumsum(degrees)])
    stop = np.maximum(np.searchsorted(-degrees, -first), first)
    most = first * (stop - 1) + sums[-1] - sums[stop]
    return bool(sums[-1] % 2 == 0 and (sums[1:] <= most).all())


def degrees_by_classes(
    degrees: Integers, noisy: NDArray[np.float64], variance: float, rng: np.random.Generator
) -> Integers:
    r"""Change degrees, so that as many nodes as released have a degree of each class.

    Classes are powers of two: 0; 1; 2 and 3; 4 to 7; and so on, up to the class of the largest degree.
    The difference d between the released and the present numbers of nodes is shrunk by James and Stein,
    :math:`(1 - K \sigma^2 / |d|^2)_+`, in the K classes whose numbers are beyond the noise: a few nodes
    of many edges would be lost among it. Nodes keep their order, and a degree becomes the nearest one of
    its class.

    Args:
        degrees: Degrees of nodes, shape ``(N,)``.
        noisy: Noisy numbers of nodes by class, shape ``(K,)``.
        variance: Variance :math:`\sigma^2` of their noise.
        rng: Source of random numbers, for the order of equal degrees.

    Returns:
        Degrees of shape ``(N,)``.
    """
    if not len(degrees):
        return degrees
    drawn = np.bincount(np.frexp(degrees)[1]).astype(np.float64)
    released = noisy[: len(drawn)]
    is_known = np.maximum(drawn, released) > _LEAST_SIGNAL * math.sqrt(variance)
    if not is_known.any():
        return degrees
    difference = (released - drawn)[is_known]
    energy = max(float(difference @ difference), np.finfo(float).tiny)
    factor = max(0.0, 1 - len(difference) * variance / energy)
    wanted, known = drawn.copy(), drawn[is_known]
    wanted[is_known] = onto_total(known + factor * difference, float(known.sum()))
    stops = np.round(np.cumsum(wanted)).astype(np.int64)
    order = np.lexsort((rng.random(len(degrees)), degrees))
    classes = np.empty(len(degrees), dtype=np.int64)
    classes[order] = np.searchsorted(stops, np.arange(len(degrees)), side="right")
    least = np.where(classes > 0, 2 ** np.maximum(classes - 1, 0), 0)
    return np.clip(degrees, least, np.maximum(2 * least - 1, 0))


def with_degrees(
    edges: Integers, wanted: Integers, space: PairSpace, rng: np.random.Generator
) -> Integers:
    """Move random ends of edges from nodes that have too many to nodes that lack them.

    An edge that would be a loop, or that is there already, stays as it was.

    Args:
        edges: Edges of shape ``(M, 2)``, each a pair of ``space`` that occurs once.
        wanted: Wanted degrees, shape ``(num_ends,)``.
        space: Pairs of nodes (public).
        rng: Source of random numbers.

    Returns:
        As many edges, whose degrees are nearer to the wanted ones.
    """
    ends = space.ends(torch.from_numpy(edges)).numpy().copy()
    for _ in range(_ROUNDS):
        moved, slots = ends.copy(), ends.ravel()
        current = np.bincount(slots, minlength=len(wanted))
        order = rng.permutation(len(slots))
        order = order[np.argsort(slots[order], kind="stable")]
        rank = np.arange(len(slots)) - (np.cumsum(current) - current)[slots[order]]
        spare = order[rank < (current - wanted)[slots[order]]]
        lacking = np.repeat(np.arange(len(wanted)), np.maximum(wanted - current, 0))
        flat = moved.ravel()
        for part in space.parts:
            givers = rng.permutation(
                spare[(slots[spare] >= part.start) & (slots[spare] < part.stop)]
            )
            takers = rng.permutation(lacking[(lacking >= part.start) & (lacking < part.stop)])
            count = min(len(givers), len(takers))
            flat[givers[:count]] = takers[:count]
        ends = _without_clashes(ends, moved, space)
    return space.from_ends(torch.from_numpy(ends)).numpy()


def _without_clashes(before: Integers, after: Integers, space: PairSpace) -> Integers:
    """Take back moves that make a loop or an edge that is there already."""
    while True:
        keys = _keys(after, space)
        is_moved = (after != before).any(axis=1)
        _, place, times = np.unique(keys, return_inverse=True, return_counts=True)
        clashes = is_moved & ((times[place] > 1) | (keys < 0))
        if not clashes.any():
            return after
        after = np.where(clashes[:, None], before, after)


def _keys(ends: Integers, space: PairSpace) -> Integers:
    """Number the pairs of ends, ``(M, 2)`` to ``(M,)``; -1 for a node with itself."""
    nodes = ends % space.num_nodes
    pairs = np.sort(ends, axis=1)
    return np.where(nodes[:, 0] == nodes[:, 1], -1, pairs[:, 0] * space.num_ends + pairs[:, 1])
