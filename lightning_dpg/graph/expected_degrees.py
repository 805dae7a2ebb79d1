"""Random graphs with given expected degrees, in memory linear in their edges."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.edge_pieces import edge_pieces
from lightning_dpg.graph.pair_indices import num_pairs
from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs
from lightning_dpg.graph.two_sided import FEW_PAIRS, earliest_pairs, two_sided_edges

_MOST_ROUNDS = 50
_TOLERANCE = 1e-3
_LARGEST_WEIGHT = 1e100
MANY_EDGES = 1_000_000
"""From here on graphs are drawn in pieces, and releases hold no text formats by default."""


def edges_by_degrees(
    space: PairSpace, degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Tensor:
    """Draw different edges by the expected degrees of their ends, on pairs of any kind.

    Args:
        space: Pairs that may be linked.
        degrees: Expected degrees, integers of shape ``(num_ends,)``.
        num_edges: Number of edges wanted.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a pair of ``space``, in no order.
    """
    if len(space.parts) == 1:
        return chung_lu_edges(degrees, num_edges, generator)
    return two_sided_edges(space, degrees, num_edges, generator)


def chung_lu_edges(degrees: Tensor, num_edges: int, generator: torch.Generator) -> Tensor:
    """Draw different edges in proportion to the product of the weights of their ends.

    The weights come from :func:`edge_weights`. Loops and repeated edges are drawn again; with these
    weights that takes no more from hubs than from other nodes.

    Args:
        degrees: Expected degrees, integers of shape ``(N,)``.
        num_edges: Number of edges wanted, half the sum of the degrees. There are fewer only if the
            nodes of positive degree have fewer pairs.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j``, in no order. Graphs of
        :data:`MANY_EDGES` or more are those of :func:`chung_lu_pieces`.

    References:
        Chung, Lu, "The average distances in random graphs with given expected degrees", 2002.
        Miller, Hagberg, "Efficient generation of networks with given expected degrees", 2011, also
        draws in linear time, but a random number of edges.
    """
    if num_edges >= MANY_EDGES:
        return torch.cat(list(chung_lu_pieces(degrees, num_edges, generator)))
    nodes = degrees.nonzero().squeeze(1)
    of_nodes = degrees[nodes].numpy()
    count = min(num_edges, num_pairs(len(nodes)))
    if num_pairs(len(nodes)) <= FEW_PAIRS:
        weights = edge_weights(of_nodes)
        return nodes[earliest_pairs(UndirectedPairs(len(nodes)), weights, count, generator)]
    weights = edge_weights(_possible(of_nodes))
    ends = np.cumsum(weights) / weights.sum()
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        places = np.searchsorted(ends, rng.random((2 * (count - len(keys)), 2)), side="right")
        first, second = np.minimum(places, len(weights) - 1).T
        new = np.minimum(first, second) * len(weights) + np.maximum(first, second)
        keys = np.concatenate([keys, new[first != second]])
        # Keep the order of first draws; draws beyond ``count`` are dropped.
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])][:count]
    pairs = np.stack(np.divmod(keys, len(weights)), axis=1)
    return nodes[torch.from_numpy(pairs)]


def chung_lu_pieces(
    degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Draw a graph by the law of :func:`chung_lu_edges` without holding it in memory.

    Args:
        degrees: Expected degrees, integers of shape ``(N,)``.
        num_edges: Number of edges wanted.
        generator: Source of the draw.

    Yields:
        Edges of shape ``(P, 2)``, as :func:`edge_pieces` orders them.
    """
    nodes = degrees.nonzero().squeeze(1)
    of_nodes = _possible(degrees[nodes].numpy())
    count = min(num_edges, num_pairs(len(nodes)))
    seed = int(torch.randint(2**62, (1,), generator=generator))
    for pairs in edge_pieces(edge_weights(of_nodes), count, float(of_nodes.sum()) / 2, seed):
        yield nodes[torch.from_numpy(pairs)]


def _possible(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut degrees at the number of other nodes, which noise may exceed.

    The weight of such a node would have no bound: nearly all draws would repeat its edges.
    """
    return np.minimum(degrees, max(len(degrees) - 1, 1))


def edge_weights(degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Find weights x with :math:`\sum_{j \ne i} (1 - e^{-x_i x_j}) = d_i`, or the nearest to it.

    Where edges are drawn repeatedly in proportion to :math:`x_i x_j`, the exponent is the expected
    number of draws of a pair, and the sum the number of different neighbors. Memory grows with the
    pairs of different degrees, of which a graph of M edges has O(M).

    Args:
        degrees: Positive degrees d of shape ``(N,)``.

    Returns:
        Weights of shape ``(N,)``.
    """
    values, position, counts = np.unique(degrees, return_inverse=True, return_counts=True)
    weights = values / np.sqrt(max(degrees.sum(), 1))
    for _ in range(_MOST_ROUNDS):
        linked = -np.expm1(-np.outer(weights, weights))
        expected = linked @ counts - linked.diagonal()
        ratio = values / np.maximum(expected, 1 / _LARGEST_WEIGHT)
        # Both ends are corrected, each by half. A node without a partner would end at infinity.
        weights = np.minimum(weights * np.sqrt(ratio), _LARGEST_WEIGHT)
        if np.abs(ratio - 1).max(initial=0.0) < _TOLERANCE:
            break
    return weights[position]
