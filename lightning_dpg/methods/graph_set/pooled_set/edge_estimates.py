"""Numbers of edges estimated from noisy ones, with the densities that the set has as a prior."""

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.methods.graph_set.pooled_set.statistics import Ints

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
