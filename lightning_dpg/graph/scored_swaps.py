"""Random graphs of given degrees whose edges prefer pairs of high scores."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs
from lightning_dpg.graph.sorted_numbers import are_among

# Pairs whose vectors a processor's cache holds.
_PAIRS_AT_ONCE = 2048


def swap_by_scores(
    edges: Tensor,
    num_nodes: int,
    score: Callable[[Tensor], Tensor],
    rounds: int,
    generator: torch.Generator,
    *,
    space: PairSpace | None = None,
) -> Tensor:
    r"""Swap ends of edges by the Metropolis rule for :math:`P(G) \propto e^{\sum_{ij \in G} s_{ij}}`.

    All degrees stay. In each round the edges are put into pairs at random; the pair (a, b), (c, d)
    becomes (a, d), (c, b) with probability :math:`\min(1, e^{s_{ad} + s_{cb} - s_{ab} - s_{cd}})`,
    unless that makes a loop or a repeated edge. Parts of a score that belong to one end cancel. In
    directed and bipartite graphs both degrees of a node, or the degrees of both sides, stay.
    Cycles of three directed edges are not reversed, so a few directed graphs are out of reach.

    Args:
        edges: Different edges of shape ``(M, 2)``, pairs of ``space``.
        num_nodes: Number of nodes.
        score: From pairs of shape ``(P, 2)`` to scores s of shape ``(P,)``.
        rounds: Number of rounds.
        generator: Source of the draws.
        space: Pairs that may be linked; by default all pairs ``i < j``.

    Returns:
        Edges of shape ``(M, 2)``, pairs of ``space``, in no order.
    """
    space = UndirectedPairs(num_nodes) if space is None else space
    has_order = len(space.parts) > 1
    edges, half = edges.clone(), len(edges) // 2
    scores = score(edges).double()
    for _ in range(rounds if half else 0):
        order = torch.randperm(len(edges), generator=generator)
        one, other = order[:half], order[half : 2 * half]
        first, second = edges.index_select(0, one), edges.index_select(0, other)
        if not has_order:
            flip = torch.rand(half, 1, generator=generator) < 0.5
            second = torch.where(flip, second.flip(1), second)
        proposed = torch.stack([first[:, 0], second[:, 1], second[:, 0], first[:, 1]], 1)
        pairs = proposed.view(-1, 2) if has_order else proposed.view(-1, 2).sort(1).values
        new = score(pairs).double().view(-1, 2)
        gain = new.sum(1) - scores[one] - scores[other]
        uniform = torch.rand(half, generator=generator, dtype=torch.double)
        likely = torch.nonzero(uniform.log() < gain)[:, 0]
        moves = likely[_is_simple(pairs.view(-1, 2, 2)[likely], edges, space)]
        for place, side in ((one[moves], 0), (other[moves], 1)):
            edges[place] = pairs.view(-1, 2, 2)[moves, side]
            scores[place] = new[moves, side]
    return edges


def score_of_images(
    first: Tensor, second: Tensor, factor: float = 1.0
) -> Callable[[Tensor], Tensor]:
    """Build a score of pairs from products of vectors that are computed once.

    Args:
        first: Vectors of the first ends, shape ``(N, r)``.
        second: Vectors of the second ends, shape ``(N, r)``.
        factor: Factor of the products.

    Returns:
        Function from pairs of shape ``(P, 2)`` to scores of shape ``(P,)``.
    """

    def score(pairs: Tensor) -> Tensor:
        # In place of first[...], index_select copies whole rows.
        products = [
            torch.linalg.vecdot(first.index_select(0, one), second.index_select(0, other))
            for one, other in (part.unbind(1) for part in torch.split(pairs, _PAIRS_AT_ONCE))
        ]
        return factor * torch.cat(products)

    return score


def _is_simple(swapped: Tensor, edges: Tensor, space: PairSpace) -> Tensor:
    """Mask of swaps ``(S, 2, 2)`` that make no loop, and no edge that exists or that others make."""
    has_loop = (swapped[..., 0] == swapped[..., 1]).any(1)
    numbers = space.numbers(swapped.view(-1, 2))
    numbers[(swapped[..., 0] == swapped[..., 1]).flatten()] = -1
    _, position, counts = torch.unique(numbers, return_inverse=True, return_counts=True)
    existing = np.sort(space.numbers(edges).numpy())
    repeated = (counts[position] > 1) | torch.from_numpy(are_among(numbers.numpy(), existing))
    return ~has_loop & ~repeated.view(-1, 2).any(1)
