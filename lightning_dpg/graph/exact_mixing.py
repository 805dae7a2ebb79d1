"""Exact sums of normalized edge weights by the values of private columns, as integers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.errors import Refusal

MIXING_UNIT = 1024
"""Units of a weight of 1."""
MOST_MIXING_NODES = 2**24
"""Number of nodes from which on fractions of units could overflow."""
MOST_MIXING_CELLS = 2**15
"""Number of cells from which on the shortfall of all fractions could exceed one unit."""

_FRACTION_BITS = 39


def check_mixing(num_nodes: int, sizes: Sequence[int]) -> None:
    """Refuse a graph, or columns, for which sums are not known to be exact enough.

    Args:
        num_nodes: Number of nodes (public).
        sizes: Number of values of each column (public).

    Raises:
        Refusal: If there are too many nodes or cells.
    """
    if num_nodes >= MOST_MIXING_NODES:
        raise Refusal(
            f"{num_nodes:,} nodes: mixing of private columns is for fewer than {MOST_MIXING_NODES:,}"
        )
    if num_cells(sizes) >= MOST_MIXING_CELLS:
        raise Refusal(
            f"{num_cells(sizes):,} pairs of values of private columns\ngive fewer columns, or fewer "
            f"values, so that there are fewer than {MOST_MIXING_CELLS:,}"
        )


def num_cells(sizes: Sequence[int]) -> int:
    """Return the number of cells {a, b} of all columns together."""
    return sum(size * (size + 1) // 2 for size in sizes)


def exact_mixing(
    edges: NDArray[np.int64],
    degrees: NDArray[np.int64],
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    max_weight: int,
) -> NDArray[np.int64]:
    r"""Sum the weights of edges by the values of their ends, in units of 1 / 1024 rounded down.

    An edge weighs :math:`\min(1, D / \max(d_u, d_v))`. Edges of a cell are counted by the larger degree
    k of their ends. Then :math:`n_k` of them have :math:`1024 n_k \min(D, k) / k` units, a whole number
    and a fraction. The whole numbers are exact, and each fraction is rounded down to a multiple of
    :math:`2^{-39}`. There are fewer than :math:`2^{24}` degrees k, so that the sum of a cell falls short
    by less than :math:`2^{-15}` before its only rounding, as
    :mod:`lightning_dpg.privacy.sensitivity.normalized_mixing` requires.

    Args:
        edges: Undirected edges, each once, shape ``(M, 2)`` (private).
        degrees: True degrees of the nodes, shape ``(N,)`` (private).
        rows: Value of each node in each column, shape ``(N, J)``, from 0 to ``sizes[j] - 1`` (private).
        sizes: Number of values of each column (public).
        max_weight: Largest weight D of all edges of a node together, a whole number (public).

    Returns:
        Cells {a, b} with a >= b of the first column, in the order (0, 0), (1, 0), (1, 1), (2, 0) and so
        on, then those of the next columns (private).

    Raises:
        Refusal: If :func:`check_mixing` refuses the sizes.
    """
    check_mixing(len(degrees), sizes)
    larger, place = np.unique(degrees[edges].max(axis=1), return_inverse=True)
    sums = []
    for column, size in enumerate(sizes):
        low, high = np.sort(rows[:, column][edges], axis=1).T
        keys, counts = np.unique(mixing_cells(low, high) * len(larger) + place, return_counts=True)
        cells, degree = keys // len(larger), larger[keys % len(larger)]
        sums.append(mixing_of_counts(cells, degree, counts, size, max_weight))
    return np.concatenate(sums)


def mixing_cells(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each cell {a, b} of a column, given its smaller and its larger value."""
    return high * (high + 1) // 2 + low


def mixing_of_counts(
    cells: NDArray[np.int64],
    larger: NDArray[np.int64],
    counts: NDArray[np.int64],
    size: int,
    max_weight: int,
) -> NDArray[np.int64]:
    """Sum the weights of counted edges of one column, see :func:`exact_mixing`.

    Args:
        cells: Cells as :func:`mixing_cells` numbers them, each with each degree once, shape ``(C,)``
            (private).
        larger: Larger degree of the ends, shape ``(C,)`` (private).
        counts: Edges of the cell with this larger degree, shape ``(C,)`` (private).
        size: Number of values of the column (public).
        max_weight: Largest weight of all edges of a node together (public).
    """
    whole, rest = np.divmod(MIXING_UNIT * counts * np.minimum(max_weight, larger), larger)
    total, fraction = np.zeros((2, num_cells([size])), dtype=np.int64)
    np.add.at(total, cells, whole)
    np.add.at(fraction, cells, (rest << _FRACTION_BITS) // larger)
    return total + (fraction >> _FRACTION_BITS)


def mixing_matrices(cells: NDArray[np.float64], sizes: Sequence[int]) -> list[NDArray[np.float64]]:
    """Arrange cells of :func:`exact_mixing` as a lower triangular matrix for each column.

    Args:
        cells: Cells of all columns, shape ``(C,)``.
        sizes: Number of values of each column (public).

    Returns:
        A matrix of shape ``(K, K)`` per column, 0 above the diagonal.
    """
    ends = np.cumsum([num_cells([size]) for size in sizes])
    matrices = []
    for size, part in zip(sizes, np.split(cells, ends[:-1]), strict=True):
        matrices.append(np.zeros((size, size)))
        matrices[-1][np.tril_indices(size)] = part
    return matrices
