"""Random edges of directed and bipartite graphs with given degrees of both sides of the pairs."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.pair_space import PairSpace

_MOST_ROUNDS = 50
_TOLERANCE = 1e-3
_LARGEST_WEIGHT = 1e100
# Up to here all pairs are drawn at once, which also works where nearly all pairs are edges.
FEW_PAIRS = 2**20


def two_sided_edges(
    space: PairSpace, degrees: Tensor, num_edges: int, generator: torch.Generator
) -> Tensor:
    """Draw different edges in proportion to the product of the weights of their ends.

    Args:
        space: Pairs of two parts.
        degrees: Expected degrees, integers of shape ``(num_ends,)``, as :meth:`PairSpace.degrees`.
        num_edges: Number of edges wanted, the sum of each part.
        generator: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, each a pair of ``space``, in no order.
    """
    first, second = space.parts
    parts = degrees[first.start : first.stop], degrees[second.start : second.stop]
    few = space.num_pairs <= FEW_PAIRS
    # A large graph has few loops to leave out, and too many pairs to list.
    omit_loops = few and space.num_left is None
    weights = two_sided_weights(*(part.numpy() for part in parts), omit_loops=omit_loops)
    linkable = int((parts[0] > 0).sum()) * int((parts[1] > 0).sum())
    if space.num_left is None:
        linkable -= int(((parts[0] > 0) & (parts[1] > 0)).sum())
    count = min(num_edges, linkable)
    if not count:
        return torch.empty(0, 2, dtype=torch.long)
    if few:
        return earliest_pairs(space, np.concatenate(weights), count, generator)
    return _drawn_pairs(space, weights, count, generator)


def two_sided_weights(
    first: NDArray[np.int64], second: NDArray[np.int64], *, omit_loops: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Find weights x, y with :math:`\sum_j (1 - e^{-x_i y_j}) = d_i`, and likewise for y.

    Where edges are drawn repeatedly in proportion to :math:`x_i y_j`, the exponent is the expected
    number of draws of a pair, and the sum the number of different neighbors.

    Args:
        first: Degrees of the first side, shape ``(A,)``.
        second: Degrees of the second side, shape ``(B,)``.
        omit_loops: Whether entry i of both sides is the same node, which is not linked to itself.
            The memory is then A B numbers, and otherwise one for each pair of different degrees.

    Returns:
        Weights of shape ``(A,)`` and ``(B,)``.
    """
    if omit_loops:
        values, counts = [first, second], [np.ones(len(first)), np.ones(len(second))]
        places = [np.arange(len(first)), np.arange(len(second))]
    else:
        groups = [np.unique(d, return_inverse=True, return_counts=True) for d in (first, second)]
        values, places, counts = (list(part) for part in zip(*groups, strict=True))
    scale = np.sqrt(max(first.sum(), 1))
    x, y = (part / scale for part in values)

    def links() -> NDArray[np.float64]:
        linked: NDArray[np.float64] = -np.expm1(-np.outer(x, y))
        if omit_loops:
            np.fill_diagonal(linked, 0)
        return linked

    for _ in range(_MOST_ROUNDS):
        ratio = values[0] / np.maximum(links() @ counts[1], 1 / _LARGEST_WEIGHT)
        x = np.minimum(x * ratio, _LARGEST_WEIGHT)
        other = values[1] / np.maximum(counts[0] @ links(), 1 / _LARGEST_WEIGHT)
        y = np.minimum(y * other, _LARGEST_WEIGHT)
        ratios = np.concatenate([ratio[values[0] > 0], other[values[1] > 0]])
        if np.abs(ratios - 1).max(initial=0.0) < _TOLERANCE:
            break
    return x[places[0]], y[places[1]]


def earliest_pairs(
    space: PairSpace, weights: NDArray[np.float64], count: int, generator: torch.Generator
) -> Tensor:
    """Draw pairs without replacement in proportion to the products of the weights of their ends.

    Args:
        space: Pairs that may be linked, of any kind; all of them are in memory.
        weights: Weight of each entry of the degree vector, shape ``(num_ends,)``.
        count: Number of pairs.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(count, 2)``, in no order.
    """
    pairs = space.pairs(torch.arange(space.num_pairs))
    unit = torch.empty(len(pairs), dtype=torch.float64).exponential_(generator=generator)
    arrivals = unit / torch.from_numpy(weights)[space.ends(pairs)].prod(dim=1)
    return pairs[arrivals.topk(count, largest=False).indices]


def _drawn_pairs(
    space: PairSpace,
    weights: tuple[NDArray[np.float64], NDArray[np.float64]],
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Draw ends one after the other; repeated pairs and loops are drawn again."""
    stops = [np.cumsum(part) / part.sum() for part in weights]
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    numbers = np.empty(0, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        missing = count - len(numbers)
        if not missing:
            break
        uniform = rng.random((2, 2 * missing))
        ends = [
            np.minimum(np.searchsorted(stop, share, side="right"), len(stop) - 1)
            for stop, share in zip(stops, uniform, strict=True)
        ]
        nodes = torch.from_numpy(np.stack(ends, axis=1))
        nodes[:, 1] += space.parts[1].start
        pairs = space.from_ends(nodes)
        new = space.numbers(pairs[pairs[:, 0] != pairs[:, 1]]).numpy()
        numbers = np.concatenate([numbers, new])
        # Keep the order of first draws; draws beyond ``count`` are dropped.
        numbers = numbers[np.sort(np.unique(numbers, return_index=True)[1])][:count]
    edges = space.pairs(torch.from_numpy(np.sort(numbers)))
    # Where nearly all pairs of hubs are edges, the last ones would take forever.
    return torch.cat([edges, space.draw(edges, count - len(edges), generator)])
