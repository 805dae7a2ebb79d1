"""Edges between categories of nodes that a synthetic graph should have, by released mixing."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.stubs import stub_mixing

_LEAST = 1e-9
_STANDS_OUT = 3  # scales of noise, which is exceeded in one of twenty entries
_CLOSE = 0.1  # share of the noise of the targets that is not worth another swap


class NoisyMixing(NamedTuple):
    """Released mixing of a column.

    Attributes:
        counts: Noisy weights of edges between categories, the larger one in the row and the smaller
            one in the column, shape ``(K, K)``; entries above the diagonal are ignored.
        scale: Scale of the Laplace noise of each entry.
    """

    counts: NDArray[np.float64]
    scale: float


class MixingGap(NamedTuple):
    """Difference between the mixing of a graph and its targets.

    Attributes:
        lacking: For each column the edges that a pair of categories lacks, negative where it has too
            many, symmetric matrices of shape ``(K, K)``.
        distance: Sum of the squares over all columns.
        is_close: Whether the difference is an edge for each entry, or much smaller than its noise.
    """

    lacking: list[NDArray[np.float64]]
    distance: float
    is_close: bool


def fitted_mixing(noisy: NoisyMixing, totals: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Estimate the edges between categories of a graph from released mixing.

    Released mixing is the sum of three parts: that which the totals of its categories make likely; the
    excess of links within categories, which is the assortativity coefficient times its largest value;
    and the rest. The last two are shrunk against noise after James and Stein,
    :math:`(1 - \sigma^2 / r^2)_+` for a part of length r with noise of variance :math:`\sigma^2`.
    Entries of categories that are too rare to stand out from the noise are taken to be chance.
    Negative numbers then become 0, but all links within categories keep their sum, as do the others.
    At last, rows and columns are scaled to the totals of the graph.

    Args:
        noisy: Released mixing.
        totals: Ends of edges at the nodes of each category in the graph, shape ``(K,)``.

    Returns:
        Edges between categories, arranged as in :class:`NoisyMixing`, shape ``(K, K)``.
    """
    size = len(totals)
    lower, diagonal = np.tril(np.ones((size, size), dtype=bool)), np.eye(size, dtype=bool)
    unit = _unit(noisy, totals.sum() / 2)
    scale, independent = unit * noisy.scale, _chance(totals.astype(np.float64))
    # No more than all ends of the rarer category can be in a cell: below the noise, that says more.
    is_rare = np.minimum.outer(totals, totals) < _STANDS_OUT * scale
    ends = np.where(is_rare, independent, unit * _ends(noisy.counts))
    sums = np.maximum(ends.sum(axis=1), _LEAST)
    chance = _chance(sums)
    within = np.diag(sums) - chance
    excess, largest = np.trace(ends - chance), max(np.trace(within), _LEAST)
    # A Laplace variate of scale b has variance 2 b^2; each edge has two ends.
    on_diagonal, in_all = (int(np.count_nonzero(~is_rare & part)) for part in (diagonal, lower))
    shrunk = _shrinkage(float(excess**2), 8 * on_diagonal * scale**2) * excess
    model = _links(chance + shrunk / largest * within)
    rest = _links(ends - chance - excess / largest * within)[lower]
    wanted = model.copy()
    wanted[lower] += _shrinkage(float(rest @ rest), 2 * in_all * scale**2) * rest
    for part in (diagonal, lower & ~diagonal):
        wanted[part] = _nonnegative(wanted[part], float(model[part].sum()))
    return _links(stub_mixing(wanted, totals))


def mixing_gap(
    edges: NDArray[np.int64], rows: NDArray[np.int64], mixing: Sequence[NoisyMixing]
) -> MixingGap:
    """Compare the edges between categories with the targets of :func:`fitted_mixing`.

    Args:
        edges: Edges of shape ``(M, 2)``.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        mixing: Released mixing of each column.
    """
    lacking, distance, negligible = [], 0.0, 0.0
    for categories, noisy in zip(rows.T, mixing, strict=True):
        size = len(noisy.counts)
        first, second = categories[edges].T
        cells = np.maximum(first, second) * size + np.minimum(first, second)
        counts = np.bincount(cells, minlength=size**2).reshape(size, size)
        wanted = fitted_mixing(noisy, _ends(counts).sum(axis=1))
        difference = wanted - counts
        lacking.append(difference + np.tril(difference, -1).T)
        distance += float((difference**2).sum())
        variance = 2 * (_unit(noisy, len(edges)) * noisy.scale) ** 2
        negligible += size * (size + 1) / 2 * max(_CLOSE**2 * variance, 1)
    return MixingGap(lacking, distance, distance <= negligible)


def _chance(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ends of edges between categories that their totals make likely."""
    return np.asarray(np.outer(totals, totals) / max(float(totals.sum()), _LEAST))


def _unit(noisy: NoisyMixing, num_edges: float) -> float:
    """Edges for a weight of 1; very many where noise leaves no positive weight."""
    return float(num_edges) / max(float(np.tril(noisy.counts).sum()), _LEAST)


def _shrinkage(square: float, variance: float) -> float:
    """Factor of a value with noise, by its square and the variance of the noise."""
    return max(1 - variance / square, 0.0) if square > 0 and math.isfinite(variance) else 0.0


def _ends(links: NDArray[np.generic]) -> NDArray[np.float64]:
    """Make a symmetric matrix of entries up to the diagonal, whose rows sum to ends of edges."""
    return np.asarray(np.tril(links) + np.tril(links).T)


def _links(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert :func:`_ends`."""
    return np.asarray(np.tril(ends, -1) + np.diag(np.diag(ends)) / 2)


def _nonnegative(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest values without negative ones that have a sum."""
    if not len(values) or total <= 0 or not math.isfinite(total):
        return np.zeros_like(values)
    descending = np.sort(values)[::-1]
    surplus = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    return np.maximum(values - surplus[np.flatnonzero(descending >= surplus)[-1]], 0)
