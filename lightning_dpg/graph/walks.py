"""Biased second-order random walks (Grover and Leskovec, "node2vec", 2016)."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def random_walks(
    adjacency: csr_array,
    count: int,
    length: int,
    rng: np.random.Generator,
    *,
    p: float = 1.0,
    q: float = 1.0,
) -> NDArray[np.int64]:
    """Draw walks from nodes drawn uniformly among all nodes with an edge.

    A step is proposed uniformly and accepted in proportion to its weight: 1/p back to the last
    node, 1 to its neighbors, 1/q elsewhere.

    Args:
        adjacency: Symmetric adjacency matrix of shape ``(N, N)``.
        count: Number of walks B.
        length: Number of nodes L of a walk.
        rng: Source of randomness.
        p: Return parameter.
        q: In-out parameter.

    Returns:
        Walks of shape ``(B, L)``.
    """
    degree = np.diff(adjacency.indptr)
    keys = None
    if p != 1 or q != 1:
        rows = np.repeat(np.arange(len(degree), dtype=np.int64), degree)
        keys = np.sort(rows * len(degree) + adjacency.indices)
    top = max(1.0, 1 / p, 1 / q)
    walks = np.empty((count, length), dtype=np.int64)
    walks[:, 0] = rng.choice(np.flatnonzero(degree), count)
    for step in range(1, length):
        waiting = np.arange(count)
        while len(waiting):
            here = walks[waiting, step - 1]
            offset = (rng.random(len(here)) * degree[here]).astype(np.int64)
            there = adjacency.indices[adjacency.indptr[here] + offset]
            walks[waiting, step] = there
            if keys is None or step == 1:
                break
            last = walks[waiting, step - 2]
            edge = last * len(degree) + there
            at = np.minimum(np.searchsorted(keys, edge), len(keys) - 1)
            weight = np.where(keys[at] == edge, 1.0, 1 / q)
            weight[there == last] = 1 / p
            waiting = waiting[rng.random(len(waiting)) * top > weight]
    return walks
