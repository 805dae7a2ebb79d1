"""Random graphs from degrees and a low-rank estimate of the adjacency matrix."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.expected_degrees import FEW_PAIRS, different, edge_weights
from lightning_dpg.graph.pair_numbers import num_pairs, pair_keys, pairs_of_keys, pairs_of_ranks

# Share of its chance by degrees that a pair keeps where the estimate rules it out.
_FLOOR = 0.02
_MOST_ROUNDS = 100


class Affinity:
    r"""Relative probability of links beside the degrees, from 0 to 1.

    For an estimate :math:`\hat A_{ij} = \sum_k s_k x_{ik} x_{jk}` the affinity is the signed cosine
    of the angle between the rows where it is positive, and a small floor elsewhere. The lengths of
    the rows, which are about the degrees, cancel.

    Args:
        rows: Rows x of shape ``(N, K)``.
        signs: Signs s of shape ``(K,)``.
    """

    def __init__(self, rows: Tensor, signs: Tensor) -> None:
        """Scale the rows."""
        lengths = rows.norm(dim=1, keepdim=True)
        # Without an estimate only degrees count, as if all pairs were alike.
        self.rows = rows / lengths.clamp(min=torch.finfo(rows.dtype).tiny)
        self.signs = signs

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the affinity of the pairs of nodes ``first`` and ``second``, shape ``(P,)``."""
        cosines = (self.rows[first] * self.signs * self.rows[second]).sum(dim=1)
        return _FLOOR + (1 - _FLOOR) * cosines.clamp(min=0)


def affinity_scores(rows: Tensor, signs: Tensor, degrees: Tensor, pairs: Tensor) -> Tensor:
    """Degrees of both ends times their affinity: ``(P,)``, higher for likelier edges.

    Args:
        rows: Rows x of the estimate, shape ``(N, K)``.
        signs: Signs s of the estimate, shape ``(K,)``.
        degrees: Expected degrees, integers of shape ``(N,)``.
        pairs: Pairs of nodes of shape ``(P, 2)``.
    """
    first, second = pairs.to(rows.device).T
    chance = degrees[first].double() * degrees[second]
    return chance * Affinity(rows, signs)(first, second)


def low_rank_edges(
    rows: Tensor, signs: Tensor, degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Tensor:
    """Draw different edges by affinity and degrees, in memory linear in the edges.

    An edge starts at a node in proportion to its degree d, and ends at a node in proportion to its
    Chung-Lu weight w times the :class:`Affinity` a to the first one: half of the edges of a node
    have the right expected number whatever the affinities, and the other half nearly. Repeated
    edges are drawn again.

    Args:
        rows: Rows x of the estimate, shape ``(N, K)``.
        signs: Signs s of the estimate, shape ``(K,)``.
        degrees: Expected degrees, integers of shape ``(N,)``.
        num_edges: Number of edges wanted. There are fewer only if the nodes of positive degree
            have hardly more pairs.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j``, in no order.
    """
    nodes = degrees.nonzero().squeeze(1)
    degrees, affinity = degrees[nodes], Affinity(rows[nodes], signs)
    weights = torch.from_numpy(edge_weights(degrees.numpy()))
    count = min(num_edges, num_pairs(len(nodes)))
    if num_pairs(len(nodes)) <= FEW_PAIRS:
        return nodes[_earliest_pairs(affinity, degrees, weights, count, generator)]
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    starts = np.repeat(np.arange(len(nodes)), degrees.numpy())
    ends = np.cumsum(weights.numpy()) / float(weights.sum())

    def draw(missing: int) -> NDArray[np.int64]:
        first = rng.choice(starts, missing)
        second = _partners(first, ends, affinity, rng)
        return pair_keys(np.stack([first, second], axis=1), len(nodes))

    keys = different(draw, count, _MOST_ROUNDS)
    return nodes[torch.from_numpy(pairs_of_keys(keys, len(nodes)))]


def _partners(
    first: NDArray[np.int64],
    ends: NDArray[np.float64],
    affinity: Affinity,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw the other ends of edges that start at nodes of shape ``(P,)``, by rejection."""
    second = np.empty_like(first)
    waiting = np.arange(len(first))
    while len(waiting):
        candidates = np.searchsorted(ends, rng.random(len(waiting)), side="right")
        candidates = np.minimum(candidates, len(ends) - 1)
        chance = affinity(torch.from_numpy(first[waiting]), torch.from_numpy(candidates))
        accepts = (rng.random(len(waiting)) < chance.numpy()) & (candidates != first[waiting])
        second[waiting[accepts]] = candidates[accepts]
        waiting = waiting[~accepts]
    return second


def _earliest_pairs(
    affinity: Affinity, degrees: Tensor, weights: Tensor, count: int, generator: torch.Generator
) -> Tensor:
    """Draw ``count`` pairs at the rates of :func:`low_rank_edges` without replacement."""
    size = len(weights)
    pairs = pairs_of_ranks(torch.arange(num_pairs(size)), size)
    first, second = pairs.T
    chance = affinity(first, second)
    # Total weight of all partners of a node.
    totals = torch.zeros(size, dtype=torch.double)
    totals.index_add_(0, first, weights[second] * chance)
    totals.index_add_(0, second, weights[first] * chance)
    shares = degrees / totals.clamp(min=torch.finfo(torch.double).tiny)
    rates = chance * (shares[first] * weights[second] + shares[second] * weights[first])
    unit = torch.empty(len(pairs), dtype=torch.double).exponential_(generator=generator)
    return pairs[(unit / rates).topk(count, largest=False).indices]
