"""Membership of many numbers by sorting, in blocks of bounded memory.

``np.isin`` and ``np.unique`` take several times as long and as much memory on millions of numbers.
"""

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2**22
_FEW = 2**15  # numbers that a processor's cache holds


def are_among(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among others.

    Args:
        numbers: Numbers in any order, shape ``(P,)``.
        ascending: The other numbers in ascending order, shape ``(Q,)``.
    """
    is_among = np.zeros(len(numbers), dtype=np.bool_)
    if not len(ascending):
        return is_among
    for start in range(0, len(numbers), _BLOCK):
        part = numbers[start : start + _BLOCK]
        if len(ascending) <= _FEW:
            is_among[start : start + _BLOCK] = _contains(ascending, part)
        else:
            # Searches for ascending numbers touch neighboring memory.
            order = np.argsort(part)
            is_among[start + order] = _contains(ascending, part[order])
    return is_among


def _contains(ascending: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return ascending[places] == numbers


def are_first(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers, of shape ``(P,)``, do not occur before their place."""
    ascending = np.sort(numbers)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    places = np.flatnonzero(are_among(numbers, repeated))
    first = np.ones(len(numbers), dtype=np.bool_)
    first[places] = False
    first[places[np.unique(numbers[places], return_index=True)[1]]] = True
    return first
