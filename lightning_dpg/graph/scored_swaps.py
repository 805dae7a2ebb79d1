"""Random graphs of given degrees whose edges prefer pairs of high scores."""

from collections.abc import Callable

import torch
from torch import Tensor

from lightning_dpg.graph.pair_indices import pair_numbers


def swap_by_scores(
    edges: Tensor,
    num_nodes: int,
    score: Callable[[Tensor], Tensor],
    rounds: int,
    generator: torch.Generator,
) -> Tensor:
    r"""Swap ends of edges by the Metropolis rule for :math:`P(G) \propto e^{\sum_{ij \in G} s_{ij}}`.

    All degrees stay. In each round the edges are put into pairs at random; the pair (a, b), (c, d)
    becomes (a, d), (c, b) with probability :math:`\min(1, e^{s_{ad} + s_{cb} - s_{ab} - s_{cd}})`,
    unless that makes a loop or a repeated edge. Parts of a score that belong to one end cancel.

    Args:
        edges: Different edges of shape ``(M, 2)``, rows ``i < j``.
        num_nodes: Number of nodes.
        score: From pairs of shape ``(P, 2)`` to scores s of shape ``(P,)``.
        rounds: Number of rounds.
        generator: Source of the draws.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j``, in no order.
    """
    edges, half = edges.clone(), len(edges) // 2
    scores = score(edges).double()
    for _ in range(rounds if half else 0):
        order = torch.randperm(len(edges), generator=generator)
        one, other = order[:half], order[half : 2 * half]
        flip = torch.rand(half, 1, generator=generator) < 0.5
        first, second = edges[one], torch.where(flip, edges[other].flip(1), edges[other])
        proposed = torch.stack([first[:, 0], second[:, 1], second[:, 0], first[:, 1]], 1)
        pairs = proposed.view(-1, 2).sort(1).values
        new = score(pairs).double().view(-1, 2)
        gain = new.sum(1) - scores[one] - scores[other]
        uniform = torch.rand(half, generator=generator, dtype=torch.double)
        likely = torch.nonzero(uniform.log() < gain)[:, 0]
        taken = likely[_is_simple(pairs.view(-1, 2, 2)[likely], edges, num_nodes)]
        for place, side in ((one[taken], 0), (other[taken], 1)):
            edges[place] = pairs.view(-1, 2, 2)[taken, side]
            scores[place] = new[taken, side]
    return edges


def _is_simple(swapped: Tensor, edges: Tensor, num_nodes: int) -> Tensor:
    """Whether swaps ``(S, 2, 2)`` make neither loops nor edges that exist or that others make."""
    has_loop = (swapped[..., 0] == swapped[..., 1]).any(1)
    numbers = pair_numbers(swapped.view(-1, 2), num_nodes)
    numbers[(swapped[..., 0] == swapped[..., 1]).flatten()] = -1
    _, position, counts = torch.unique(numbers, return_inverse=True, return_counts=True)
    repeated = (counts[position] > 1) | torch.isin(numbers, pair_numbers(edges, num_nodes))
    return ~has_loop & ~repeated.view(-1, 2).any(1)
