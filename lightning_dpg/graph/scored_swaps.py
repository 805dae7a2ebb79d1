"""Random graphs of given degrees whose edges prefer pairs of high scores."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs
from lightning_dpg.graph.sorted_numbers import are_among

# Pairs whose vectors a processor's cache holds.
_PAIRS_AT_ONCE = 1024
_LOOP = -1  # no number of a pair


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
    half = len(edges) // 2
    # First ends, second ends, numbers and scores of the edges: vectors are faster to choose from than
    # rows, and edges that are put into the drawn order are changed in place.
    state = [*edges.T.contiguous(), space.numbers(edges), score(edges).double()]
    for _ in range(rounds if half else 0):
        order = torch.randperm(len(edges), generator=generator)
        first, second, numbers, scores = state = [each.index_select(0, order) for each in state]
        (a, c), (b, d) = (each[: 2 * half].view(2, half) for each in (first, second))
        if not has_order:
            flip = torch.rand(half, generator=generator) < 0.5
            c, d = torch.where(flip, d, c), torch.where(flip, c, d)
        ends = torch.cat([a, c]), torch.cat([d, b])
        if not has_order:
            ends = torch.minimum(*ends), torch.maximum(*ends)
        pairs = torch.stack(ends).T
        new_numbers, new_scores = space.numbers(pairs), score(pairs).double()
        new_numbers[ends[0] == ends[1]] = _LOOP
        gain = (new_scores - scores[: 2 * half]).view(2, half).sum(0)
        uniform = torch.rand(half, generator=generator, dtype=torch.double)
        likely = torch.nonzero(uniform.log() < gain)[:, 0]
        places = torch.stack([likely, likely + half])
        moves = places[:, _are_new(new_numbers[places], numbers)].flatten()
        for each, values in zip(state, (*ends, new_numbers, new_scores), strict=True):
            each.index_copy_(0, moves, values.index_select(0, moves))
    return torch.stack(state[:2], 1)


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
    one, other = first.numpy(), second.numpy()

    def score(pairs: Tensor) -> Tensor:
        ends = pairs.T.numpy()
        blocks = [ends[:, k : k + _PAIRS_AT_ONCE] for k in range(0, len(pairs), _PAIRS_AT_ONCE)]
        # Rows by ``take`` and products by BLAS need half of the time of index_select and vecdot of torch.
        products = [np.vecdot(one.take(a, axis=0), other.take(b, axis=0)) for a, b in blocks]
        return factor * torch.from_numpy(np.concatenate([*products, one[:0, 0]]))

    return score


def _are_new(swapped: Tensor, existing: Tensor) -> Tensor:
    """Mask of swaps that make no loop, and no edge that exists or that others make.

    Args:
        swapped: Numbers of the pairs of each swap, shape ``(2, S)``.
        existing: Numbers of all edges, shape ``(M,)``.
    """
    numbers = swapped.flatten().numpy()
    ascending = np.sort(np.concatenate([numbers, existing.numpy()]))
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    is_taken = are_among(numbers, repeated) | (numbers == _LOOP)
    return torch.from_numpy(~is_taken.reshape(2, -1).any(axis=0))
