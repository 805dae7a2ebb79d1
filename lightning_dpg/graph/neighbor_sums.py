"""Sums over neighbors, of edges in memory or of edges that come in blocks."""

from collections.abc import Iterable

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

_BLOCK = 2**20


def neighbor_sums(edges: Tensor, rows: Tensor) -> Tensor:
    """Sum the rows of each node's neighbors, A U.

    Args:
        edges: Undirected edges of shape ``(M, 2)``, each once.
        rows: Rows U of all nodes, shape ``(N, k)``.

    Returns:
        Sums of shape ``(N, k)``.
    """
    return sums_over_blocks(torch.split(edges, block_size(len(rows))), rows)


def block_size(num_nodes: int) -> int:
    """Number of edges from which on a block costs more time than the sums that it is added to."""
    return max(_BLOCK, num_nodes)


def sums_over_blocks(blocks: Iterable[Tensor], rows: Tensor) -> Tensor:
    """As :func:`neighbor_sums`, of edges in blocks; one block is in memory at a time.

    Args:
        blocks: Undirected edges of shape ``(P, 2)`` of whole numbers, each edge in one block.
        rows: Rows U of all nodes, shape ``(N, k)``.
    """
    values = rows.detach().cpu().numpy()
    sums = np.zeros_like(values)
    for block in blocks:
        first, second = block.cpu().numpy().T
        ones = np.ones(len(block), dtype=values.dtype)
        above = coo_array((ones, (first, second)), shape=(len(values), len(values)))
        sums += above @ values
        sums += above.T @ values
    return torch.from_numpy(sums).to(rows.device)
