"""Graphs of nearest neighbors by rows of numbers."""

import math

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor


def nearest_neighbor_edges(rows: Tensor, num_edges: int) -> Tensor:
    """Link nodes to their nearest neighbors by Euclidean distance.

    The first neighbor of each node comes first, then the second ones, and so on; of equal ranks the
    closer pair comes first.

    Args:
        rows: Rows of shape ``(N, r)``.
        num_edges: Number of edges M; all pairs if there are fewer.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j`` that occurs once.
    """
    num_nodes = len(rows)
    # A list of k neighbors has each pair at most twice: these are enough.
    count = min(math.ceil(2 * num_edges / max(num_nodes, 1)), num_nodes - 1)
    if count < 1:
        return torch.empty(0, 2, dtype=torch.long)
    distances, neighbors = NearestNeighbors(n_neighbors=count).fit(rows.numpy()).kneighbors()
    nodes = np.repeat(np.arange(num_nodes), count)
    ranks = np.tile(np.arange(count), num_nodes)
    order = np.lexsort((distances.ravel(), ranks))
    first, second = nodes[order], neighbors.ravel()[order]
    keys = np.minimum(first, second) * num_nodes + np.maximum(first, second)
    places = np.sort(np.unique(keys, return_index=True)[1])[:num_edges]
    return torch.from_numpy(np.stack(np.divmod(keys[places], num_nodes), axis=1))
