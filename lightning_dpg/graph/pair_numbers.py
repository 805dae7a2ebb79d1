"""Pairs of nodes as numbers, and which of many numbers occur among others.

The *rank* of a pair i < j is its place among all pairs, row by row: an integer below N (N - 1) / 2. Its *key*
is i N + j. ``np.isin`` and ``np.unique`` take several times as long and as much memory on millions of numbers.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_BLOCK = 2**20
_FEW = 2**16  # numbers of which a processor's cache holds a table of hashes
_HASH_BITS = 20
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, for multiplicative hashing
_NONE = np.empty(0, dtype=np.int64)


def num_pairs(num_nodes: int) -> int:
    """Return the number of pairs i < j of N nodes."""
    return num_nodes * (num_nodes - 1) // 2


def pair_ranks(pairs: Tensor, num_nodes: int) -> Tensor:
    """Number pairs in lexicographic order.

    Args:
        pairs: Rows ``i < j`` of shape ``(P, 2)``.
        num_nodes: Number of nodes N.

    Returns:
        Integers of 64 bits of shape ``(P,)``.
    """
    first, second = pairs.long().T  # numbers of pairs do not fit in 32 bits
    return _row_starts(first, num_nodes) + second - first - 1


def pairs_of_ranks(numbers: Tensor, num_nodes: int) -> Tensor:
    """Return the pairs ``i < j`` of given numbers: ``(P,)`` to ``(P, 2)``."""
    starts = _row_starts(torch.arange(num_nodes), num_nodes)
    rows = torch.searchsorted(starts, numbers, right=True) - 1
    # The last node begins no pair, and where its row would begin, the row before it has ended.
    rows.clamp_(max=num_nodes - 2)
    return torch.stack([rows, numbers - starts[rows] + rows + 1], dim=1)


def _row_starts(nodes: Tensor, num_nodes: int) -> Tensor:
    """Return the number of the first pair of each node."""
    return nodes * (2 * num_nodes - nodes - 1) // 2


def pair_keys(pairs: NDArray[Any], num_nodes: int) -> NDArray[np.int64]:
    """Key of each pair, the smaller node times N, plus the larger one: ``(..., 2)`` to ``(...)``."""
    one, other = pairs[..., 0], pairs[..., 1]
    numbers = np.minimum(one, other).astype(np.int64, copy=False)
    numbers *= num_nodes
    numbers += np.maximum(one, other)
    return numbers


def pairs_of_keys(numbers: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Return the pairs of numbers of shape ``(P,)``, see :func:`pair_keys`: ``(P, 2)``."""
    pairs = np.empty((len(numbers), 2), dtype=np.int64)
    np.divmod(numbers, num_nodes, out=(pairs[:, 0], pairs[:, 1]))
    return pairs


def are_among(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among others.

    Args:
        numbers: Numbers in any order, shape ``(P,)``.
        ascending: The other numbers in ascending order, shape ``(Q,)``.
    """
    is_among = np.zeros(len(numbers), dtype=np.bool_)
    is_hash = np.zeros(2**_HASH_BITS, dtype=np.bool_)
    is_hash[_hashes(ascending[:_FEW])] = True
    for start in range(0, len(numbers), _BLOCK):
        part = numbers[start : start + _BLOCK]
        if len(ascending) <= _FEW:
            places = np.flatnonzero(is_hash[_hashes(part)])  # rules out most
        else:
            places = near_order(part)
        is_among[start + places] = contains(ascending, part[places])
    return is_among


def _hashes(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    upper = numbers.astype(np.uint64) * _FACTOR >> np.uint64(64 - _HASH_BITS)
    return upper.astype(np.int64)


def near_order(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return places in which numbers from 0 on ascend, so that searches for them touch near memory.

    A number and its place are one here, since NumPy sorts in a third to an eighth of the time of ``argsort``.
    Numbers that are too large for it ascend but for their lowest bits.
    """
    bits = len(numbers).bit_length()
    excess = max(int(numbers.max(initial=0)).bit_length() + bits - 63, 0)
    order = numbers >> excess << bits
    order |= np.arange(len(numbers))
    order.sort()
    order &= (1 << bits) - 1
    return order


def contains(ascending: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among others; fast where both ascend.

    Args:
        ascending: The other numbers in ascending order, shape ``(Q,)``.
        numbers: Numbers of any shape.
    """
    if not len(ascending):
        return np.zeros(numbers.shape, dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return ascending[places] == numbers


def are_first(
    numbers: NDArray[np.int64],
    before: NDArray[np.int64] = _NONE,
    ascending: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Return which numbers, of shape ``(P,)``, do not occur before their place.

    Args:
        numbers: Numbers in any order, shape ``(P,)``.
        before: Different numbers that come before all of them, in any order, shape ``(Q,)``.
        ascending: All these numbers in ascending order, where the caller has them.
    """
    if ascending is None:
        ascending = np.sort(np.concatenate([numbers, before]))
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    del ascending  # memory
    places = np.flatnonzero(are_among(numbers, repeated))
    first = places[np.unique(numbers[places], return_index=True)[1]]
    taken = np.sort(before[are_among(before, repeated)])
    is_first = np.ones(len(numbers), dtype=np.bool_)
    is_first[places] = False
    is_first[first[~are_among(numbers[first], taken)]] = True
    return is_first
