"""Degrees of drawn edges, moved to wanted ones. All inputs are public or released."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from lightning_dpg.graph.amount_draws import onto_total
from lightning_dpg.graph.pair_space import PairSpace

Integers = NDArray[np.int64]

_ROUNDS = 4
_LEAST_SIGNAL = 3.0  # in standard deviations of the noise


def degrees_by_classes(
    degrees: Integers, noisy: NDArray[np.float64], variance: float, rng: np.random.Generator
) -> Integers:
    r"""Change degrees, so that as many nodes as released have a degree of each class.

    Classes are powers of two: 0; 1; 2 and 3; 4 to 7; and so on, up to that of the largest degree. What the released numbers of nodes differ
    from those of the degrees is shrunk by James and Stein, :math:`(1 - K \sigma^2 / |d|^2)_+`, in the K classes whose numbers are
    beyond the noise: a few nodes of many edges would be lost among it. Nodes keep
    their order, and a degree becomes the nearest one of its class.

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
    found = noisy[: len(drawn)]
    is_known = np.maximum(drawn, found) > _LEAST_SIGNAL * math.sqrt(variance)
    if not is_known.any():
        return degrees
    difference = (found - drawn)[is_known]
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
            here = rng.permutation(spare[(slots[spare] >= part.start) & (slots[spare] < part.stop)])
            takers = rng.permutation(lacking[(lacking >= part.start) & (lacking < part.stop)])
            count = min(len(here), len(takers))
            flat[here[:count]] = takers[:count]
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
