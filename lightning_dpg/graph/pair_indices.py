"""Numbers of node pairs: pair i < j as an integer below N (N - 1) / 2, row by row."""

import torch
from torch import Tensor


def num_pairs(num_nodes: int) -> int:
    """Return the number of pairs i < j of N nodes."""
    return num_nodes * (num_nodes - 1) // 2


def pair_numbers(pairs: Tensor, num_nodes: int) -> Tensor:
    """Number pairs in lexicographic order.

    Args:
        pairs: Rows ``i < j`` of shape ``(P, 2)``.
        num_nodes: Number of nodes N.

    Returns:
        Integers of 64 bits of shape ``(P,)``.
    """
    first, second = pairs.long().T  # numbers of pairs do not fit in 32 bits
    return _row_starts(first, num_nodes) + second - first - 1


def numbered_pairs(numbers: Tensor, num_nodes: int) -> Tensor:
    """Return the pairs ``i < j`` of given numbers: ``(P,)`` to ``(P, 2)``."""
    starts = _row_starts(torch.arange(num_nodes), num_nodes)
    rows = torch.searchsorted(starts, numbers, right=True) - 1
    # The last node begins no pair, and where its row would begin, the row before it has ended.
    rows.clamp_(max=num_nodes - 2)
    return torch.stack([rows, numbers - starts[rows] + rows + 1], dim=1)


def _row_starts(nodes: Tensor, num_nodes: int) -> Tensor:
    """Return the number of the first pair of each node."""
    return nodes * (2 * num_nodes - nodes - 1) // 2
