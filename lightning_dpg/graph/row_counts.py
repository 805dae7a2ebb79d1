"""Counts of nodes by pairs of their classes and private columns."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def pairs_of_axes(num_axes: int) -> list[tuple[int, int]]:
    """Return all pairs of axes, in the order of the tables of :func:`count_pairs`."""
    return list(combinations(range(num_axes), 2))


def count_pairs(table: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Count nodes by the values of each pair of axes.

    Args:
        table: Value of each node on each axis, shape ``(N, A)``, from 0 to ``sizes[a] - 1`` (private).
        sizes: Number of values of each axis (public).

    Returns:
        The tables of all pairs of axes, each flattened, one behind the other (private).
    """
    counts = [
        np.bincount(
            table[:, one] * sizes[other] + table[:, other], minlength=sizes[one] * sizes[other]
        )
        for one, other in pairs_of_axes(len(sizes))
    ]
    return np.concatenate(counts)


def tables_of_pairs(
    counts: NDArray[np.float64], sizes: Sequence[int]
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Arrange counts of :func:`count_pairs` as a table for each pair of axes."""
    pairs = pairs_of_axes(len(sizes))
    shapes = [(sizes[one], sizes[other]) for one, other in pairs]
    ends = np.cumsum([first * second for first, second in shapes])
    parts = np.split(counts, ends[:-1])
    return {
        pair: part.reshape(shape) for pair, part, shape in zip(pairs, parts, shapes, strict=True)
    }
