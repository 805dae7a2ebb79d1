"""Integer statistics of the graphs of a set, summed by class of graphs."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from lightning_dpg.graph.counts import Floats

Ints = NDArray[np.int64]

UNIT = 2**10
"""Units of a statistic of 1: real numbers are released as integers, with exact noise."""


class SetStatistics:
    """Exact statistics of the graphs of a set (private).

    Args:
        edges: Edges of all graphs in the numbers of all nodes, shape ``(M, 2)``.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
    """

    def __init__(self, edges: Ints, sizes: Ints) -> None:
        self.sizes = sizes
        self.graph_of = np.repeat(np.arange(len(sizes)), sizes)
        num_nodes = len(self.graph_of)
        both = np.concatenate([edges, edges[:, ::-1]])
        ones = np.ones(len(both), dtype=np.int64)
        self._adjacency = csr_array((ones, (both[:, 0], both[:, 1])), (num_nodes, num_nodes))

    def ordered_degrees(self) -> Ints:
        """Degrees of each graph in descending order, graph by graph, shape ``(N,)``."""
        degrees = np.diff(self._adjacency.indptr).astype(np.int64)
        return degrees[np.lexsort((-degrees, self.graph_of))]

    def triangles(self) -> Ints:
        """Number of triangles of each graph, shape ``(G,)``."""
        links = self._adjacency
        closed = (links @ links).multiply(links).sum(axis=1)  # each triangle twice at each node
        return _sums(np.asarray(closed), self.graph_of, len(self.sizes)) // 6

    def largest_components(self) -> Ints:
        """Number of nodes of the largest component of each graph, shape ``(G,)``."""
        _, labels = connected_components(self._adjacency, directed=False)
        component_sizes = np.bincount(labels)
        largest = np.zeros(len(self.sizes), dtype=np.int64)
        np.maximum.at(largest, self.graph_of, component_sizes[labels])
        return largest


def pooled_triangles(triangles: Ints, sizes: Ints, classes: Ints, num_classes: int) -> Ints:
    """Sums of the triangles of each graph over its size less 2, by class, in units.

    Args:
        triangles: Number of triangles of each graph (private), shape ``(G,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        classes: Class of each graph, shape ``(G,)``.
        num_classes: Number C of classes.

    Returns:
        Integers of shape ``(C,)`` (private); see :func:`pooled_triangle_sensitivity`.
    """
    return _sums(UNIT * triangles // np.maximum(sizes - 2, 1), classes, num_classes)


def pooled_components(largest: Ints, sizes: Ints) -> int:
    """Sum of the largest components over half the nodes, in units (private).

    See :func:`pooled_component_sensitivity`.

    Args:
        largest: Nodes of the largest component of each graph (private), shape ``(G,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
    """
    return int((2 * UNIT * largest // np.maximum(sizes, 1)).sum())


def place_weights(sizes: Ints, classes: Ints, num_classes: int, bins: int) -> Ints:
    r"""Integer weights of the places of ordered degrees in the bins of their class.

    The first bin is of the largest degree alone. The others divide the remaining places evenly, and
    a place across a border is in both. A graph of n nodes has the weight
    :math:`\lfloor u (n_0 - 1) / (n - 1) \rfloor`, where :math:`n_0` is the smallest size above 1 in
    its class: degrees are pooled as shares of the n - 1 possible neighbors.

    Args:
        sizes: Number of nodes of each graph, shape ``(G,)``.
        classes: Class of each graph, shape ``(G,)``.
        num_classes: Number of classes.
        bins: Number B of bins, at least 2.

    Returns:
        Weights of shape ``(N, B)``, at most :data:`UNIT` in each row (public, as the classes are).
    """
    smallest = np.full(num_classes, np.iinfo(np.int64).max)
    linked = sizes > 1
    np.minimum.at(smallest, classes[linked], sizes[linked])
    weights = np.zeros(len(sizes), dtype=np.int64)
    weights[linked] = UNIT * (smallest[classes[linked]] - 1) // (sizes[linked] - 1)
    graph_of = np.repeat(np.arange(len(sizes)), sizes)
    total = weights[graph_of]
    shares = bin_shares(sizes, bins)
    # Cumulative sums are rounded down. The weights of a place then add up exactly.
    reached = np.floor(total[:, None] * shares.cumsum(axis=1) + 1e-6).astype(np.int64)
    reached[:, -1] = total
    return np.diff(reached, axis=1, prepend=0)


def bin_shares(sizes: Ints, bins: int) -> NDArray[np.float64]:
    """Share of each place of the ordered degrees in each bin, shape ``(N, B)``; rows sum to 1."""
    starts = np.repeat(sizes.cumsum() - sizes, sizes)
    place = np.arange(len(starts)) - starts
    others = np.maximum(np.repeat(sizes, sizes) - 1, 1)
    borders = np.arange(bins) * (others / (bins - 1))[:, None]
    low, high = (place - 1)[:, None], place[:, None]
    inside = np.clip(borders, low, high) - low
    shares = np.concatenate([np.zeros((len(place), 1)), np.diff(inside, axis=1)], axis=1)
    shares[place == 0] = np.eye(1, bins)
    return shares


def pooled_degrees(ordered: Ints, weights: Ints, classes_of_nodes: Ints, num_classes: int) -> Ints:
    """Weighted sums of ordered degrees, by class and bin.

    Args:
        ordered: Degrees of each graph in descending order (private), shape ``(N,)``.
        weights: Result of :func:`place_weights`.
        classes_of_nodes: Class of the graph of each place, shape ``(N,)``.
        num_classes: Number C of classes.

    Returns:
        Integers of shape ``(C, B)`` (private); see :func:`pooled_degree_sensitivity`.
    """
    sums = np.zeros((num_classes, weights.shape[1]), dtype=np.int64)
    np.add.at(sums, classes_of_nodes, weights * ordered[:, None])
    return sums


def _sums(values: Ints, groups: Ints, num_groups: int) -> Ints:
    sums = np.zeros(num_groups, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums


_CANDIDATES = 65  # numbers of edges that are weighed for each graph
_TAIL = 12.0  # how many scales of the noise they reach
_BINS = 40  # of the prior, and one more for complete graphs
_ROUNDS = 40


def estimated_counts(noisy: Ints, sizes: Ints, rate: float) -> Ints:
    r"""Posterior medians of the numbers of edges, under a prior fitted to the noisy numbers.

    The prior is a histogram of densities, with a bin of its own for complete graphs, fitted by
    expectation maximization (empirical Bayes). It reads noisy numbers alone and costs nothing.
    The noise has :math:`P(k) \propto e^{-r |k|}`. A noisy number that was clipped at 0 or
    at all pairs has the same likelihood as a function of the true number, up to a factor.

    Args:
        noisy: Noisy numbers of edges from 0 to all pairs, shape ``(G,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        rate: Decay r of the noise; infinite without noise.

    Returns:
        Numbers of edges, shape ``(G,)``.
    """
    pairs = sizes * (sizes - 1) // 2
    if np.isinf(rate) or not pairs.any():
        return noisy
    candidates = _candidates(noisy, pairs, rate)
    inside = (candidates >= 0) & (np.diff(candidates, axis=1, prepend=-1) > 0)  # each one once
    density = np.clip(candidates / np.maximum(pairs, 1)[:, None], 0, 1)
    borders = np.quantile((noisy / np.maximum(pairs, 1))[pairs > 0], np.linspace(0, 1, _BINS + 1))
    borders[0], borders[-1] = 0.0, 1.0
    bins = np.searchsorted(borders[1:-1], density, side="right")
    complete = candidates == pairs[:, None]
    bins[complete] = _BINS
    # The prior of a bin is divided evenly among the numbers of edges in it.
    members = np.maximum(np.diff(borders, append=1.0)[bins] * pairs[:, None], 1)
    members[complete] = 1
    fit = np.exp(-rate * np.abs(candidates - noisy[:, None])) / members * inside
    prior = np.full(_BINS + 1, 1 / (_BINS + 1))
    for _ in range(_ROUNDS):
        posterior = fit * prior[bins]
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = np.bincount(bins.ravel(), posterior.ravel(), minlength=_BINS + 1) / len(noisy)
        prior = np.maximum(prior, 1e-12)
    medians = (posterior.cumsum(axis=1) >= 0.5).argmax(axis=1)
    return candidates[np.arange(len(noisy)), medians]


def _candidates(noisy: Ints, pairs: Ints, rate: float) -> Ints:
    """Numbers around each noisy one, ascending, shape ``(G, C)``; some may be negative or equal."""
    reach = np.minimum(np.ceil(_TAIL / rate), pairs)
    steps = np.linspace(-1, 1, _CANDIDATES)
    spread = np.rint(reach[:, None] * steps).astype(np.int64) + noisy[:, None]
    return np.minimum(spread, pairs[:, None])


def relative_density(num_edges: Ints, sizes: Ints) -> NDArray[np.float64]:
    """Share of the pairs of nodes that are edges; 0 without pairs."""
    density: NDArray[np.float64] = num_edges / np.maximum(sizes * (sizes - 1) / 2, 1)
    return density


_LEAST = 1e-7  # share of the possible neighbors, and distance from all of them
_HALVINGS = 60
_SPREADS = 2.0  # scales of the noise within which a node is taken for a neighbor of all others


def shapes(noisy: Floats, totals: Floats, scale: float) -> Floats:
    """Descending shares of possible neighbors, by class and bin.

    Args:
        noisy: Released sums of degrees, shape ``(C, B)``.
        totals: These sums in complete graphs, shape ``(C, B)`` (public).
        scale: Scale of the noise of each sum.

    Returns:
        Shares from 0 to 1, shape ``(C, B)``. The largest degree is 1 where noise may have hidden
        that: a node that is linked to all others makes all paths short.
    """
    filled = np.maximum(totals, 1)
    shares = np.array(
        [
            isotonic_regression(row, weights=weight, increasing=False).x
            for row, weight in zip(noisy / filled, filled, strict=True)
        ]
    )
    shares[:, 0][shares[:, 0] + _SPREADS * scale / filled[:, 0] >= 1] = 1
    return np.clip(shares, 0, 1)


def expected_degrees(size: int, num_edges: int, shape: Floats) -> Floats:
    """Descending degrees of a shape, shifted to a number of edges.

    The log odds of all shares are shifted by one number. Shares stay from 0 to 1 and in order, a
    node that is linked to all others stays so, and a sparse shape is scaled.

    Args:
        size: Number of nodes.
        num_edges: Number of edges, at most all pairs.
        shape: Shares of possible neighbors, by bin, shape ``(B,)``.

    Returns:
        Degrees of shape ``(size,)``, whose sum is twice ``num_edges`` up to rounding.
    """
    shares = bin_shares(np.array([size]), len(shape)) @ shape
    return _shifted(shares, size - 1, 2 * num_edges, 0)


def whole_degrees(expected: Floats, num_edges: int, least: int) -> Ints:
    """Integers near expected degrees, of a given sum.

    Where small degrees are raised to the least one, the others are shifted to keep the sum. A node
    that is linked to all others stays so.

    Args:
        expected: Degrees, shape ``(n,)``.
        num_edges: Half the sum of the result, at most all pairs.
        least: Smallest degree.

    Returns:
        Degrees from ``least`` to n - 1, shape ``(n,)``.
    """
    most = len(expected) - 1
    if least:
        expected = _shifted(expected / max(most, 1), most, 2 * num_edges, least)
    degrees = np.clip(np.rint(expected), least, most).astype(np.int64)
    while (lacking := 2 * num_edges - int(degrees.sum())) != 0:
        step = 1 if lacking > 0 else -1
        free = np.flatnonzero(degrees < most if step > 0 else degrees > least)
        order = free[np.argsort(step * (degrees - expected)[free], kind="stable")]
        degrees[order[: abs(lacking)]] += step
    return degrees


def _shifted(shares: Floats, most: int, total: int, least: int) -> Floats:
    """Shares of ``most`` with shifted log odds, and ``least`` at the least, of a given sum."""
    odds = logit(np.clip(shares, _LEAST, 1 - _LEAST))
    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_short = np.maximum(expit(odds + middle) * most, least).sum() < total
        low, high = (middle, high) if is_short else (low, middle)
    shifted: Floats = np.maximum(expit(odds + high) * most, least)
    return shifted


def closed_shares(closed: Floats, most: Floats, noise_scale: float) -> Floats:
    r"""Shares of closed wedges of classes, from their noisy numbers.

    Noise of scale b has the variance :math:`2 b^2`. The sum T of C classes is multiplied by
    :math:`(1 - C (2b / T)^2)_+`, twice the variance taken off, as :class:`BTER` shrinks its counts
    after James and Stein. The differences :math:`\delta` of the classes from the share of the whole
    set are multiplied by the same factor, and by the share :math:`(1 - 2 (C - 1) b^2 /
    |\delta|^2)_+` that noise does not explain. A set whose triangles are within their noise has
    none, and classes that differ no more than noise does have one share.

    Args:
        closed: Noisy sums of the classes, shape ``(C,)``.
        most: These sums if all wedges were closed, shape ``(C,)``.
        noise_scale: Scale b of the noise of each sum; 0 without noise.

    Returns:
        Shares from 0 to 1, shape ``(C,)``; 0 of a class without wedges.
    """
    variance = 2 * noise_scale**2
    total, wedges = max(float(closed.sum()), 0.0), max(float(most.sum()), 1.0)
    mean = total / wedges * most
    differences = closed - mean
    differing = _signal(float((differences**2).sum()), (len(closed) - 1) * variance)
    shrunk = _signal(total**2, 2 * len(closed) * variance) * (mean + differing * differences)
    return np.clip(shrunk / np.maximum(most, 1), 0, 1)


def _signal(square: float, noise: float) -> float:
    """Part of a square that noise does not explain, from 0 to 1."""
    return max(1 - noise / square, 0.0) if square > 0 else 0.0


class GraphClasses(NamedTuple):
    """Borders of classes: sizes are cut first, and each part by density.

    Attributes:
        size_cuts: Smallest size of each part but the first, ascending, shape ``(A - 1,)``.
        density_cuts: Smallest density of each class of a part but the first, ascending, shape
            ``(A, B - 1)``.
    """

    size_cuts: Ints
    density_cuts: Floats

    @classmethod
    def fitted(cls, sizes: Ints, num_edges: Ints, graphs_per_class: int) -> "GraphClasses":
        """Cut a set into classes of about equal numbers of graphs.

        Args:
            sizes: Number of nodes of each graph (public), shape ``(G,)``.
            num_edges: Number of edges of each graph (noisy), shape ``(G,)``.
            graphs_per_class: Mean number of graphs of a class; graphs of equal size and density are
                in one class.
        """
        number = max(len(sizes) // graphs_per_class, 1)
        parts = max(math.isqrt(number), 1)
        levels = max(number // parts, 1)
        size_cuts = _borders(sizes.astype(float), parts).astype(np.int64)
        part_of = np.searchsorted(size_cuts, sizes, side="right")
        density = relative_density(num_edges, sizes)
        cuts = [
            _borders(density[part_of == part], levels)
            if (part_of == part).any()
            else np.ones(levels - 1)
            for part in range(parts)
        ]
        return cls(size_cuts, np.array(cuts).reshape(parts, levels - 1))

    @property
    def number(self) -> int:
        """Number of classes."""
        parts, cuts = self.density_cuts.shape
        return int(parts * (cuts + 1))

    def of(self, sizes: Ints, num_edges: Ints) -> Ints:
        """Class of each graph of some sizes and numbers of edges."""
        part = np.searchsorted(self.size_cuts, sizes, side="right")
        above = self.density_cuts[part] <= relative_density(num_edges, sizes)[:, None]
        numbers: Ints = part * (self.density_cuts.shape[1] + 1) + above.sum(axis=1)
        return numbers


def _borders(values: Floats, parts: int) -> Floats:
    """Values at which the next part of about equally many begins."""
    borders: Floats = np.quantile(values, np.arange(1, parts) / parts, method="higher")
    return borders
