"""Joint degrees: counts of edges by the degrees of their ends (dK-2 series)."""

import math

import numpy as np
from numpy.typing import NDArray


def degree_cells(largest_two: int, largest: int) -> NDArray[np.int64]:
    """List all pairs of degrees a <= b that the ends of an edge may have.

    Args:
        largest_two: Largest sum of both degrees.
        largest: Largest degree.

    Returns:
        Rows a, b of shape ``(C, 2)`` in ascending order.
    """
    starts, sizes = _rows(largest_two, largest)
    first = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.stack([first, np.arange(len(first)) - np.repeat(starts, sizes) + first], axis=1)


def num_cells(largest_two: int, largest: int) -> int:
    """Count the rows of :func:`degree_cells`."""
    return int(_rows(largest_two, largest)[1].sum())


def joint_degrees(
    edges: NDArray[np.int64], degrees: NDArray[np.int64], largest_two: int
) -> NDArray[np.int64]:
    """Count edges by the degrees of their ends.

    Args:
        edges: Edges of shape ``(M, 2)``.
        degrees: Degrees of all N nodes, shape ``(N,)``.
        largest_two: Largest sum of both degrees; other edges are left out.

    Returns:
        Edges of each row of :func:`degree_cells`, shape ``(C,)``.
    """
    pairs = np.sort(degrees[edges], axis=1)
    pairs = pairs[pairs.sum(axis=1) <= largest_two]
    return cells_of_counts(pairs, np.ones(len(pairs), dtype=np.int64), largest_two, len(degrees))


def cells_of_counts(
    pairs: NDArray[np.int64], counts: NDArray[np.int64], largest_two: int, num_nodes: int
) -> NDArray[np.int64]:
    """Add counts of pairs of degrees to their cells.

    Args:
        pairs: Degrees a <= b of shape ``(P, 2)``, whose sum is at most ``largest_two``.
        counts: Count of each pair, shape ``(P,)``.
        largest_two: Largest sum of both degrees.
        num_nodes: Number of nodes N.

    Returns:
        Sum of each row of :func:`degree_cells`, shape ``(C,)``.
    """
    starts, sizes = _rows(largest_two, num_nodes - 1)
    first, second = pairs.T
    sums = np.zeros(int(sizes.sum()), dtype=np.int64)
    np.add.at(sums, starts[first - 1] + second - first, counts)
    return sums


def _rows(largest_two: int, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first cell and number of cells of each smaller degree a = 1, 2, ..."""
    first = np.arange(1, min(largest_two // 2, largest) + 1)
    sizes = np.minimum(largest_two - first, largest) - first + 1
    return np.cumsum(sizes) - sizes, sizes


def fitted_links(
    noisy: NDArray[np.int64],
    cells: NDArray[np.int64],
    noise_scales: NDArray[np.float64],
    degrees: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Estimate links between degree classes from noisy joint degrees where these stand out.

    The nodes of one of the given degrees are a class, and counts at other degrees belong to the
    nearest class. Chance would link classes in proportion to their sums of degrees. Of the
    difference R between counts and chance the part :math:`(1 - (t / R)^2)_+` is kept, after James
    and Stein, where noise alone exceeds t in about one of all cells; first in sums over many
    degrees, then one by one. So large noise leaves chance, and no noise the counts.

    Args:
        noisy: Noisy counts of shape ``(C,)``.
        cells: Degrees of both ends, shape ``(C, 2)``.
        noise_scales: Scale of the Laplace noise of each count, shape ``(C,)``.
        degrees: Degrees of the nodes, shape ``(N,)``.

    Returns:
        Links between class k and a class l <= k in row k and column l, shape ``(K, K)``, where
        classes ascend with degrees. They fit the classes' sums of degrees roughly.
    """
    values, sizes = np.unique(degrees, return_counts=True)
    count = len(values)
    nearest = np.searchsorted((values[1:] + values[:-1]) / 2, cells)
    places = nearest[:, 1] * count + nearest[:, 0]
    counts, variance = (
        np.bincount(places, weights, minlength=count**2).reshape(count, count)
        for weights in (noisy, 2 * noise_scales**2)
    )
    totals = (values * sizes).astype(np.float64)
    chance = np.tril(np.outer(totals, totals) / max(totals.sum(), 1.0))
    chance[np.diag_indices(count)] /= 2
    possible = np.tril(np.outer(sizes, sizes)).astype(np.float64)
    possible[np.diag_indices(count)] = sizes * (sizes - 1) / 2
    links = chance
    # First by degrees from one power of two to the next, then one by one.
    for classes in (np.frexp(values)[1].astype(np.int64), np.arange(count)):
        _, starts, group = np.unique(classes, return_index=True, return_inverse=True)
        expected, observed, noise = (
            np.add.reduceat(np.add.reduceat(part, starts, axis=0), starts, axis=1)
            for part in (links, counts, variance)
        )
        excess = _standing_out(observed - expected, noise)
        ratio = 1 + excess / np.where(expected > 0, expected, np.inf)
        links = links * np.maximum(ratio, 0)[np.ix_(group, group)]
    return np.minimum(links, possible)


def _standing_out(
    values: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shrink values toward 0 by how likely they are under noise of the given variance."""
    # A single Laplace variate exceeds its scale times the logarithm of C once in C times.
    threshold = np.sqrt(variance / 2) * math.log(max(int(np.count_nonzero(variance)), 2))
    size = np.maximum(np.abs(values), 1e-9)
    return values * np.maximum(1 - (threshold / size) ** 2, 0)
