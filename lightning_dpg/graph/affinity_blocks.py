"""Blocks of nodes of similar degrees, whose edges make the triangles of BTER graphs."""

import numpy as np
from numpy.typing import NDArray

_PAIRS = 2**22  # pairs of nodes that are drawn at once; a node may have more


def block_starts(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Partition nodes into blocks, each as long as the smallest degree in it allows.

    No node can have more links in its block than its degree. Where degrees ascend, a block whose
    first node has degree d holds d + 1 nodes.

    Args:
        degrees: Degrees in the order of the blocks, positive, shape ``(N,)``.

    Returns:
        Ascending positions of shape ``(B,)``; the last block ends with the nodes.
    """
    starts: list[int] = []
    start = least = -1
    for position, degree in enumerate(degrees.tolist()):
        if degree < least:  # noqa: PLR1730 - a call of min takes most of the time
            least = degree
        if position - start > least:
            start, least = position, degree
            starts.append(start)
    return np.array(starts, dtype=np.int64)


def block_edges(
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    densities: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Link each pair of nodes of a block with the geometric mean of their two probabilities.

    Args:
        nodes: Nodes in the order of the blocks, shape ``(N,)``.
        starts: Where blocks start, shape ``(B,)``.
        densities: Probability of each node in the order of the blocks, shape ``(N,)``.
        rng: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j`` in no order.
    """
    sizes = np.diff(starts, append=len(nodes))
    # Pair each node with all earlier nodes of its block.
    before = np.arange(len(nodes)) - np.repeat(starts, sizes)
    ends = np.cumsum(before)
    marks = np.searchsorted(ends, np.arange(_PAIRS, ends[-1] if len(ends) else 0, _PAIRS))
    edges = [np.empty((0, 2), dtype=np.int64)]
    for second in np.split(np.arange(len(nodes)), marks):
        count = before[second]
        offsets = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        first, second = np.repeat(second - count, count) + offsets, np.repeat(second, count)
        linked = rng.random(len(second)) < np.sqrt(densities[first] * densities[second])
        one, other = nodes[first[linked]], nodes[second[linked]]
        edges.append(np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1))
    return np.concatenate(edges)
