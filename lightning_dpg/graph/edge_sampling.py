"""Graphs sampled from edge probabilities, from randomized-response reports, or from many generated edges."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks

MAX_NODES = 6000
"""Largest N whose N x N matrices are held in memory: 144 MB each."""
Blocks: TypeAlias = Callable[[], Iterable[Tensor]]
"""One value per pair in the order of :func:`pair_ranks`, in blocks that each call makes anew."""
_MOST_LIKELY = 0.95  # no pair is certain before the reports
_LEAST = 1e-9  # no pair is impossible, either
_ROUNDING = 1 + 1e-3  # of ranks in single precision, or more
_ROUNDS = 8
_MORE = 4.0  # values are kept that the cut reaches at a scale larger by this factor
# Uniform numbers have 2**24 values in single precision, too few to single out one of more pairs.
_SINGLE_PRECISION_PAIRS = num_pairs(MAX_NODES)


def above_diagonal(blocks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield values of a symmetric matrix, one per pair, in the order of :func:`pair_ranks`.

    Args:
        blocks: Blocks of consecutive rows, each without the columns before its first row.
    """
    for block in blocks:
        yield torch.cat([row[k + 1 :] for k, row in enumerate(block)])


def sum_of(values: Blocks) -> float:
    """Return the sum of the values of all pairs."""
    return sum((float(block.sum(dtype=torch.double)) for block in values()), 0.0)


def probability_scale(values: Blocks, total: float, num_edges: int) -> float:
    """Return the factor by which values become edge probabilities of sum ``num_edges``.

    The probabilities are cut at their maximum, and other pairs take over what is cut off. Memory is
    linear in the number of edges: only values near the cut are held.

    Args:
        values: One value per pair, at least 0.
        total: Sum of the values.
        num_edges: Expected number of edges.
    """
    if not total or not num_edges:
        return 0.0
    scale, bound, large = num_edges / total, float("inf"), torch.empty(0)
    for _ in range(_ROUNDS - 1):
        cut = _MOST_LIKELY / scale
        if cut < bound:
            bound = cut / _MORE
            large = torch.cat([block[block > bound] for block in values()]).double()
            rest = max(total - float(large.sum()), 0.0)
        scale *= num_edges / (scale * (rest + float(large.clamp(max=cut).sum())))
    return scale


def probabilities(values: Blocks, total: float, num_edges: int) -> Iterator[Tensor]:
    """Yield edge probabilities in proportion to values, see :func:`probability_scale`.

    Args:
        values: One value per pair, at least 0; blocks are overwritten.
        total: Sum of the values.
        num_edges: Expected number of edges.
    """
    scale = probability_scale(values, total, num_edges)
    for block in values():
        yield block.mul_(scale).clamp_(max=_MOST_LIKELY)


def draw_posterior(
    prior: Iterable[Tensor],
    reported: Tensor,
    epsilon: float,
    num_nodes: int,
    num_edges: int,
    generator: torch.Generator,
) -> Tensor:
    r"""Draw edges by their probabilities given the reports of randomized response.

    A report multiplies the odds of an edge by :math:`e^\epsilon`, and no report divides them by
    that. The draw is Pareto sampling: a fixed number of pairs, each one with very nearly its
    probability scaled to that number (Rosen, "On sampling with probability proportional to size",
    1997). Memory is linear in the edges, the reports and the largest block.

    Args:
        prior: Probability of each pair before the reports in blocks, as :func:`probabilities` gives
            them.
        reported: Reported edges of shape ``(K, 2)``, rows ``i < j`` in lexicographic order.
        epsilon: Privacy parameter of the reports; may be infinite.
        num_nodes: Number of nodes N.
        num_edges: Number of edges to draw.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j``, in lexicographic order.
    """
    evidence = min(epsilon, 60.0)  # outweighs all other pairs
    is_large = num_pairs(num_nodes) > _SINGLE_PRECISION_PAIRS
    precision, least = (torch.double, 1e-15) if is_large else (torch.float, 1e-7)
    reports, first, start = pair_ranks(reported, num_nodes), 0, 0
    smallest = _Smallest(num_edges)
    for block in prior:
        uniform = torch.rand(len(block), dtype=precision, generator=generator)
        last = int(torch.searchsorted(reports, start + len(block)))
        reported_here = reports[first:last] - start
        is_near = _may_be_below(smallest.limit, uniform, block, evidence)
        is_near[reported_here] = True
        candidates = is_near.nonzero().squeeze(1)
        ranks = torch.logit(uniform[candidates], eps=least) - torch.logit(
            block[candidates], eps=_LEAST
        )
        ranks += evidence
        ranks[torch.searchsorted(candidates, reported_here)] -= 2 * evidence
        smallest.add(ranks, candidates + start)
        first, start = last, start + len(block)
    return pairs_of_ranks(smallest.places().sort().values, num_nodes)


def _may_be_below(limit: float, uniform: Tensor, block: Tensor, evidence: float) -> Tensor:
    """Return which pairs without a report may have a rank below a limit: few, without a logarithm.

    Odds are at least the probability, and at most this over the least probability of the opposite.
    """
    most = math.exp(min(limit - evidence, 80.0)) / (1 - _MOST_LIKELY) * _ROUNDING
    return uniform.to(block.dtype) <= block.clamp(min=_LEAST).mul_(most)


class _Smallest:
    """Places of the smallest of many values, in memory for about twice as many as wanted.

    Args:
        count: Number of values wanted.

    Attributes:
        limit: Value from which on others are not among the smallest.
    """

    def __init__(self, count: int) -> None:
        """Begin without values."""
        self._count = count
        self.limit = float("inf")
        self._smallest: list[tuple[Tensor, Tensor]] = []
        self._held = 0

    def add(self, values: Tensor, places: Tensor) -> None:
        """Add values at places, both of shape ``(P,)``."""
        small = (values < self.limit).nonzero().squeeze(1)
        self._smallest.append((values[small], places[small]))
        self._held += len(small)
        if self._held > 2 * self._count:
            self._shorten()

    def _shorten(self) -> None:
        values, places = (torch.cat(parts) for parts in zip(*self._smallest, strict=True))
        count = min(self._count, len(values))
        values, chosen = torch.topk(values, count, largest=False, sorted=False)
        self._smallest, self._held = [(values, places[chosen])], count
        if count and count == self._count:
            self.limit = float(values.max())

    def places(self) -> Tensor:
        """Places of the ``count`` smallest values, in no order; all places if there are fewer."""
        if not self._smallest:
            return torch.empty(0, dtype=torch.long)
        self._shorten()
        return self._smallest[0][1]


def draw_weighted(weights: Tensor, num_edges: int, generator: torch.Generator) -> Tensor:
    """Draw pairs by their weights without replacement, after one neighbor for each node.

    Args:
        weights: Symmetric matrix of shape ``(N, N)``, at least 0, zero on the diagonal.
        num_edges: Number of pairs to draw; there are more only where the nodes' own neighbors are.
        generator: Source of the draw.

    Returns:
        Numbers of pairs, ascending.
    """
    num_nodes = len(weights)
    linked = torch.arange(num_nodes)[weights.sum(1) > 0]
    neighbors = torch.multinomial(weights[linked], 1, generator=generator)
    own = torch.cat([linked[:, None], neighbors], 1).sort(1).values
    upper = torch.ones_like(weights, dtype=torch.bool).triu_(1)
    # Of exponential clocks with these rates, the first to ring are a draw without replacement.
    arrivals = torch.empty(num_pairs(num_nodes)).exponential_(generator=generator) / weights[upper]
    first = torch.unique(pair_ranks(own, num_nodes))
    arrivals[first] = -1
    count = max(num_edges, len(first))
    return torch.topk(arrivals, count, largest=False, sorted=False).indices.sort().values


def assemble(pairs: Tensor, num_nodes: int, num_edges: int, generator: torch.Generator) -> Tensor:
    r"""Choose the edges of a graph by how often they were generated.

    The score of an edge is :math:`s_{ij} = \max(c_{ij}, c_{ji})` with the counts of its two
    orientations. Each node that occurs draws one neighbor with a probability proportional to the
    score; then edges are drawn without replacement, with the same probabilities, until there are
    ``num_edges``. All of it is post-processing of the generated pairs.

    Args:
        pairs: Generated pairs of shape ``(S, 2)``, in any orientation; self loops are ignored.
        num_nodes: Number of nodes N.
        num_edges: Number of edges wanted, a public or a noisy number. There are more only if the
            nodes' own neighbors are more, and fewer only if fewer different edges were generated.
        generator: Source of the choice; equal states give equal graphs.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j``, in lexicographic order.

    References:
        Zheng et al., "Network Generation with Differential Privacy", 2021, section 2.2, after
        Bojchevski et al., "NetGAN: Generating Graphs via Random Walks", 2018.
    """
    if pairs.ndim != 2 or pairs.size(1) != 2:
        raise ValueError(f"pairs must have shape (S, 2), got {tuple(pairs.shape)}")
    if num_edges < 0:
        raise ValueError(f"num_edges must be 0 or more, got {num_edges}")
    if pairs.numel() and not (0 <= int(pairs.min()) and int(pairs.max()) < num_nodes):
        raise ValueError(f"pairs must hold node numbers from 0 to {num_nodes - 1}")
    if num_edges == 0:
        return torch.empty(0, 2, dtype=torch.long)
    edges, scores = _scores(pairs.cpu().long().numpy(), num_nodes)
    chosen = _one_neighbor_each(edges, scores, num_nodes, generator)
    missing = num_edges - int(chosen.sum())
    if missing > 0:
        rest = np.flatnonzero(~chosen)
        if len(rest) > missing:
            rest = rest[np.argpartition(_arrivals(scores[rest], generator), missing - 1)[:missing]]
        chosen[rest] = True
    return torch.from_numpy(edges[chosen])


def _scores(
    pairs: NDArray[np.int64], num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct edges ``i < j`` and the larger count of either direction."""
    first, second = pairs.T
    # One number per directed pair, whose last bit is the direction: sorting brings equal pairs
    # together and the two directions of an edge next to each other. In place, because fresh
    # memory costs more than the arithmetic.
    keys = np.minimum(first, second)
    keys *= num_nodes
    keys += np.maximum(first, second)
    keys *= 2
    keys += first > second
    keys = keys[first != second]
    keys.sort()
    starts = _run_starts(keys)
    counts = np.diff(starts, append=len(keys))
    keys = keys[starts] // 2
    starts = _run_starts(keys)
    scores = np.maximum.reduceat(counts, starts) if len(keys) else counts
    return np.stack(np.divmod(keys[starts], num_nodes), axis=1), scores


def _run_starts(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(is_start)


def _one_neighbor_each(
    edges: NDArray[np.int64], scores: NDArray[np.int64], num_nodes: int, generator: torch.Generator
) -> NDArray[np.bool_]:
    """Draw one neighbor for each node; return a mask of the drawn edges."""
    # A node draws among its edges to smaller and to larger nodes alike.
    arrivals = [_arrivals(scores, generator) for _ in range(2)]
    earliest = np.full(num_nodes, np.inf)
    for ends, arrival in zip(edges.T, arrivals, strict=True):
        np.minimum.at(earliest, ends, arrival)
    lower, upper = edges.T
    return (arrivals[0] == earliest[lower]) | (arrivals[1] == earliest[upper])


def _arrivals(scores: NDArray[np.int64], generator: torch.Generator) -> NDArray[np.float64]:
    """Draw independent exponential variates of rates ``scores``.

    The smallest belongs to candidate k with probability ``scores[k] / sum(scores)``, and the M
    smallest ones are M draws without replacement.
    """
    unit = torch.empty(len(scores), dtype=torch.float64, device=generator.device)
    return unit.exponential_(generator=generator).cpu().numpy() / scores
