"""Scores of noisy counts and degrees; the attacker knows every non-canary edge.

A canary is a pair of nodes; a secret fair coin decides whether it is an edge. Each cell of a table
is the count of the known edges, plus the changes by the canaries that are edges, plus noise. The
attacker knows the changes. Where several canaries change a cell, the score of one averages over the
coins of the others.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.stats import binom
from torch import Tensor

from lightning_dpg.apps.audit.scores.observation import Observation, weight
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.privacy.events import Gaussian


def ordered_degrees_score(observation: Observation) -> Tensor:
    """Score each pair by released degrees in descending order; an edge changes two of them."""
    ordered, rate = observation.noisy, weight(observation.entry.event.pure_epsilon) / 2
    degrees = torch.bincount(observation.known_graph.edge_index[0], minlength=len(ordered))
    noisy, canaries, exact = (one.cpu().numpy() for one in (ordered, observation.pairs, degrees))
    return torch.from_numpy(sequence_scores(noisy, canaries, exact, rate))


def links_score(observation: Observation, noisy: Tensor, classes: Tensor) -> Tensor:
    """Score each pair by noisy numbers of edges within and between classes.

    Args:
        observation: The release.
        noisy: Released numbers, the lower triangle of the result of :func:`count_links` row by row,
            shape ``(K (K + 1) / 2,)``.
        classes: Class of each node, released or public, shape ``(N,)``.
    """
    names = classes.cpu().numpy()
    lower = np.tril_indices(int(names.max()) + 1)
    return counts_score(
        observation._replace(noisy=noisy), lambda edges: count_links(names, edges)[lower]
    )


def counts_score(
    observation: Observation,
    counts: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    rates: float | NDArray[np.float64] | None = None,
) -> Tensor:
    """Score each pair by noisy counts of any kind and by the changes that the pair makes in them.

    Args:
        observation: The released counts, of any shape.
        counts: From edges of shape ``(M, 2)`` to the counts without noise.
        rates: Decay of the noise of each count, a number or of shape ``(C,)``; that of the release
            if none is given.
    """
    edges, canaries = observation.known_edges.numpy(), observation.pairs.cpu().numpy()
    before, changes = counted_changes(counts, edges, canaries)
    surplus = observation.noisy.cpu().numpy().ravel() - before
    each = np.broadcast_to(observation.rate if rates is None else rates, before.shape)
    return torch.from_numpy(table_scores(surplus, changes, each))


def degrees_score(observation: Observation) -> Tensor:
    """Score each pair by released degrees of shape ``(N,)``.

    The scores are the log-likelihood ratios if no node is in two pairs. With discrete Laplace
    noise, a surplus beyond half an edge adds no information. With normal noise it does.
    """
    degrees, pairs, event = observation.noisy, observation.pairs, observation.entry.event
    expected = torch.bincount(observation.known_graph.edge_index[0], minlength=len(degrees))
    canaries = torch.bincount(pairs.flatten(), minlength=len(degrees))
    surplus = degrees.double().cpu() - expected - canaries / 2
    if isinstance(event, Gaussian):
        return surplus[pairs].sum(1) / observation.std**2
    return weight(event.pure_epsilon) * surplus.clamp(-0.5, 0.5)[pairs].sum(1)


def turns(graphs: Tensor) -> Tensor:
    """Return the number of earlier entries with the same value, for each entry, shape ``(P,)``."""
    order = graphs.argsort(stable=True)
    counts = torch.bincount(graphs)
    starts = (counts.cumsum(0) - counts)[graphs[order]]
    turns = torch.empty_like(graphs)
    turns[order] = torch.arange(len(graphs)) - starts
    return turns


def alone(gain: Callable[[Tensor], Tensor], pairs: Tensor, owners: Tensor) -> Tensor:
    """Return the change of its owner's row by each pair as the owner's only canary.

    Args:
        gain: From further edges of shape ``(M, 2)`` to one number or row for each owner.
        pairs: Canaries of shape ``(P, 2)``.
        owners: Number of the graph or client of each canary, shape ``(P,)``.
    """
    without = gain(pairs[:0]).double()
    changes, order = without.new_zeros(len(pairs), *without.shape[1:]), turns(owners)
    for turn in range(int(order.max()) + 1 if len(pairs) else 0):
        mine = order == turn
        changes[mine] = (gain(pairs[mine]).double() - without)[owners[mine]]
    return changes


Likelihood = Callable[[int, NDArray[np.int64]], NDArray[np.float64]]


def coin_scores(changes: csr_array, likelihood: Likelihood) -> NDArray[np.float64]:
    """Return log-likelihood ratios of coins under the assumption that cells are independent.

    They are exact where no two canaries share a cell, and where each canary changes one cell only.

    Args:
        changes: How much each canary changes each cell, integers of shape ``(P, C)``.
        likelihood: Log-likelihood of a cell, by its number and by the sums of the changes of the
            canaries that are edges.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    table, scores = changes.tocsc(), np.zeros(changes.shape[0])
    sums_of = cache(_sums)  # many cells are changed alike
    for cell in np.flatnonzero(np.diff(table.indptr)).tolist():
        part = slice(table.indptr[cell], table.indptr[cell + 1])
        canaries, sizes = table.indices[part], table.data[part]
        values, counts = np.unique(sizes, return_counts=True)
        for value in values:
            rest = counts - (values == value)
            others, log_chances = sums_of(tuple(values.tolist()), tuple(rest.tolist()))
            with_edge, without = (
                np.logaddexp.reduce(np.add(log_chances, likelihood(cell, others + shift)))
                for shift in (value, 0)
            )
            scores[canaries[sizes == value]] += with_edge - without
    return scores


def table_scores(
    surplus: NDArray[np.int64], changes: csr_array, rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Score canaries by counts with discrete Laplace noise.

    Args:
        surplus: Noisy counts minus those of the known edges, shape ``(C,)``.
        changes: How much each canary changes each count, integers of shape ``(P, C)``.
        rates: Decay of the noise of each count, shape ``(C,)``.

    Returns:
        Scores of shape ``(P,)``.
    """
    return coin_scores(changes, lambda cell, sums: -rates[cell] * np.abs(surplus[cell] - sums))


def sequence_scores(
    noisy: NDArray[np.int64], pairs: NDArray[np.int64], degrees: NDArray[np.int64], rate: float
) -> NDArray[np.float64]:
    """Score canaries by degrees in descending order with discrete Laplace noise.

    Each canary raises the degrees of two nodes. If s nodes of degree d are raised, the first s
    places with a d hold d + 1 instead: the cells are the distinct degrees.

    Args:
        noisy: Noisy degrees in descending order of the true ones, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``; scores are exact if no node is in two canaries.
        degrees: Degrees of the nodes by the known edges, shape ``(N,)``.
        rate: Decay of the noise.

    Returns:
        Scores of shape ``(P,)``.
    """
    values, levels, counts = np.unique(degrees, return_inverse=True, return_counts=True)
    starts = len(degrees) - np.cumsum(counts)
    canaries = np.repeat(np.arange(len(pairs)), 2)
    ones = np.ones(2 * len(pairs), dtype=np.int64)
    changes = coo_array((ones, (canaries, levels[pairs].ravel())), (len(pairs), len(values)))

    def likelihood(level: int, raised: NDArray[np.int64]) -> NDArray[np.float64]:
        places = noisy[starts[level] : starts[level] + counts[level]] - values[level]
        gains = rate * (np.abs(places) - np.abs(places - 1))
        # A node of two canaries can be raised twice, so there may be more raises than places.
        return np.r_[0.0, np.cumsum(gains)][np.minimum(raised, len(places))]

    return coin_scores(changes.tocsr(), likelihood)


def counted_changes(
    counts: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    edges: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> tuple[NDArray[np.int64], csr_array]:
    """Count the known edges, and the change by each canary as the only further edge.

    Args:
        counts: From edges of shape ``(M, 2)`` to a table of any shape, of C numbers.
        edges: Known edges of shape ``(M, 2)``.
        pairs: Canaries of shape ``(P, 2)``.

    Returns:
        The counts, shape ``(C,)``, and the changes, shape ``(P, C)``.
    """
    before = counts(edges).ravel()
    changes = [
        csr_array((counts(np.concatenate([edges, pair[None]])).ravel() - before)[None])
        for pair in pairs
    ]
    return before, csr_array(vstack(changes))


def _sums(
    values: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return sums of ``counts`` fair coins of each of ``values``, and their log-probabilities."""
    sums: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    chances: NDArray[np.float64] = np.ones(1)
    for value, count in zip(values, counts, strict=True):
        if not count:
            continue
        both = np.add.outer(sums, value * np.arange(count + 1)).ravel()
        weights: NDArray[np.float64] = np.outer(chances, _chances(count)).ravel()
        sums, place = np.unique(both, return_inverse=True)
        chances = np.bincount(place, weights).astype(np.float64)
    with np.errstate(divide="ignore"):
        return sums, np.log(chances)


@cache
def _chances(count: int) -> NDArray[np.float64]:
    """Return the probabilities of 0 to ``count`` heads of fair coins."""
    chances: NDArray[np.float64] = binom.pmf(np.arange(count + 1), count, 0.5)
    return chances
