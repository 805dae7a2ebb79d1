"""Counts of nodes by pairs of their classes and private columns."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def pairs_of_axes(num_axes: int) -> list[tuple[int, int]]:
    """Return all pairs of axes, in the order of the tables of :func:`count_pairs`."""
    return list(combinations(range(num_axes), 2))


def times_counted(num_axes: int) -> list[int]:
    """Return how often each table of :func:`count_pairs` counts a node.

    The tables with the first axis, the class of the degree, tie the private columns to the graph. They
    count a node as often as gives them half of the counts of all tables, rounded up, and the tables of
    two private columns count it once.
    """
    of_class = max(1, math.ceil((num_axes - 2) / 2))
    return [1 if one else of_class for one, _ in pairs_of_axes(num_axes)]


def count_pairs(table: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Count nodes by the values of each pair of axes.

    Args:
        table: Value of each node on each axis, shape ``(N, A)``, from 0 to ``sizes[a] - 1`` (private).
        sizes: Number of values of each axis (public).

    Returns:
        The tables of all pairs of axes, each flattened, one behind the other (private). Each counts a
        node as often as :func:`times_counted` says.
    """
    counts = [
        times
        * np.bincount(
            table[:, one] * sizes[other] + table[:, other], minlength=sizes[one] * sizes[other]
        )
        for (one, other), times in zip(
            pairs_of_axes(len(sizes)), times_counted(len(sizes)), strict=True
        )
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
