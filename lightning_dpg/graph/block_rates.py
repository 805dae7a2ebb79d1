"""Degrees and links between groups from noisy ones that contain false edges of a known rate."""

import math

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import fitting_counts


def fewer_degrees(
    degrees: NDArray[np.int64], num_edges: int, false: float
) -> tuple[NDArray[np.int64], int]:
    """Take the expected false edges off degrees and their number.

    Args:
        degrees: Released degrees, shape ``(N,)``, with the sum of twice ``num_edges``.
        num_edges: Released number of edges.
        false: Probability below 1/2 with which each pair of nodes was flipped.

    Returns:
        Degrees, shape ``(N,)``, and the number of edges, half their sum.
    """
    size = len(degrees)
    most, pairs = np.full(size, size - 1), size * (size - 1) // 2
    total = round(min(max((num_edges - false * pairs) / (1 - 2 * false), 0.0), pairs))
    cleaned = (degrees.astype(np.float64) - false * (size - 1)) / (1 - 2 * false)
    return fitting_counts(cleaned, most, 2 * total), total


def expected_links(classes: NDArray[np.int64], degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    """Links between classes of nodes if nothing but degrees counted, by the rows of a lower triangle."""
    totals = np.bincount(classes, degrees).astype(float)
    linked = np.outer(totals, totals) / max(totals.sum(), 1.0)
    np.fill_diagonal(linked, linked.diagonal() / 2)
    return linked[np.tril_indices(len(totals))]


def true_links(
    noisy: NDArray[np.int64],
    expected: NDArray[np.float64],
    sizes: NDArray[np.int64],
    false: float,
    epsilon: float,
    total: int,
) -> NDArray[np.int64]:
    """Estimate links between classes, by the rows of a lower triangle.

    The rates of the links within classes, relative to the expected ones, are shrunk to their mean by
    the share of noise in their variance, and so are those between classes.

    Args:
        noisy: Noisy links with discrete Laplace noise, shape ``(K (K + 1) / 2,)``.
        expected: Links expected by chance, of the same shape.
        sizes: Number of nodes of each class, shape ``(K,)``.
        false: Probability with which each pair of nodes was flipped.
        epsilon: Rate of the noise.
        total: Sum of the result.
    """
    upper, lower = np.tril_indices(len(sizes))
    pairs = np.where(
        upper == lower, sizes[upper] * (sizes[upper] - 1) / 2, sizes[upper] * sizes[lower]
    )
    links = (noisy - false * pairs) / (1 - 2 * false)
    noise = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2 if epsilon < 700 else 0.0
    for cells in (upper == lower, upper != lower):
        rate = max(float(links[cells].sum()), 0.0) / max(float(expected[cells].sum()), 1e-9)
        surplus = links[cells] - rate * expected[cells]
        spread = float(np.mean(surplus**2)) if surplus.size else 0.0
        signal = max(0.0, 1 - noise / spread) if spread else 0.0
        links[cells] = rate * expected[cells] + signal * surplus
    return fitting_counts(links, np.full(len(links), total), total)
