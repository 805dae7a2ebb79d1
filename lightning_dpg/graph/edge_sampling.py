"""Sampling of a graph from edge probabilities and randomized-response reports."""

from collections.abc import Iterable

import torch
from torch import Tensor

from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs, pair_numbers

MAX_NODES = 6000
"""Largest N whose N x N matrices are held in memory: 144 MB each."""

_MOST_LIKELY = 0.95  # no pair is certain before the reports
_ROUNDS = 8


def above_diagonal(blocks: Iterable[Tensor]) -> Tensor:
    """Return values of a symmetric matrix, one per pair, in the order of :func:`pair_numbers`.

    Args:
        blocks: Blocks of rows of the matrix, width N.
    """
    values, start = [], 0
    for block in blocks:
        upper = torch.ones(block.shape, dtype=torch.bool).triu_(start + 1)
        values.append(block[upper])
        start += len(block)
    return torch.cat(values)


def probabilities(likelihood: Tensor, num_edges: int) -> Tensor:
    """Scale values to edge probabilities of sum ``num_edges``, up to the cut at the maximum.

    Args:
        likelihood: One value per pair, at least 0. It is overwritten.
        num_edges: Expected number of edges.

    Returns:
        One value per pair, in the same order.
    """
    for _ in range(_ROUNDS):  # the cut part of the total goes to the other pairs
        total = float(likelihood.sum(dtype=torch.float64))
        if total == 0:
            break
        likelihood.mul_(num_edges / total).clamp_(max=_MOST_LIKELY)
    return likelihood


def draw_posterior(
    prior: Tensor,
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
    1997).

    Args:
        prior: Probability of each pair before the reports, as :func:`probabilities` gives them.
        reported: Reported edges of shape ``(K, 2)``, rows ``i < j``.
        epsilon: Privacy parameter of the reports; may be infinite.
        num_nodes: Number of nodes N.
        num_edges: Number of edges to draw.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j``, in lexicographic order.
    """
    evidence = min(epsilon, 60.0)  # outweighs all other pairs
    uniform = torch.rand(num_pairs(num_nodes), generator=generator)
    ranks = torch.logit(uniform, eps=1e-7) - torch.logit(prior, eps=1e-9) + evidence
    ranks[pair_numbers(reported, num_nodes)] -= 2 * evidence
    chosen = torch.topk(ranks, num_edges, largest=False, sorted=False).indices
    return numbered_pairs(chosen.sort().values, num_nodes)


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
    first = torch.unique(pair_numbers(own, num_nodes))
    arrivals[first] = -1
    count = max(num_edges, len(first))
    return torch.topk(arrivals, count, largest=False, sorted=False).indices.sort().values
