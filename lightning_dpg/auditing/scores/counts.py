"""Scores of noisy counts and degrees; the attacker knows every non-canary edge."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.tables import (
    counted_changes,
    partition_scores,
    sequence_scores,
    table_scores,
)
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.stubs import count_links

# Weight of a release without noise, instead of infinity.
_CERTAIN = 100.0


def num_edges_score(num_edges: Tensor, pairs: Tensor, known_graph: Data, epsilon: float) -> Tensor:
    """Score the pairs ``(P, 2)`` by a number of edges; all pairs have the same score.

    Args:
        num_edges: Released number of edges, a scalar.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
        epsilon: Decay of the noise per unit.
    """
    surplus = num_edges.cpu().reshape(1).numpy() - known_graph.edge_index.shape[1] // 2
    cells = np.zeros(len(pairs), dtype=np.int64)
    return torch.from_numpy(partition_scores(surplus, cells, weight(epsilon)))


def ordered_degrees_score(
    ordered: Tensor, pairs: Tensor, known_graph: Data, epsilon: float
) -> Tensor:
    """Score each pair by released degrees in descending order.

    Args:
        ordered: Noisy degrees of shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
        epsilon: Cost of the degrees; an edge changes two of them.
    """
    degrees = torch.bincount(known_graph.edge_index[0], minlength=len(ordered))
    noisy, canaries, exact = (tensor.cpu().numpy() for tensor in (ordered, pairs, degrees))
    return torch.from_numpy(sequence_scores(noisy, canaries, exact, weight(epsilon) / 2))


def links_score(
    noisy: Tensor, classes: Tensor, pairs: Tensor, known_graph: Data, epsilon: float
) -> Tensor:
    """Score each pair by noisy numbers of edges within and between classes.

    Args:
        noisy: Released numbers, the lower triangle of the result of :func:`count_links` row by row,
            shape ``(K (K + 1) / 2,)``.
        classes: Class of each node, released or public, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
        epsilon: Decay of the noise per unit.
    """
    names = classes.cpu().numpy()
    table = count_links(names, undirected_edges(known_graph).cpu().numpy())
    lower = np.tril_indices(len(table))
    surplus = noisy.cpu().numpy() - table[lower]
    column, row = np.sort(names[pairs.cpu().numpy()], axis=1).T
    cells = row * (row + 1) // 2 + column
    return torch.from_numpy(partition_scores(surplus, cells, weight(epsilon)))


def counts_score(
    noisy: Tensor,
    counts: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    pairs: Tensor,
    known_graph: Data,
    rates: float | NDArray[np.float64],
) -> Tensor:
    """Score each pair by noisy counts of any kind and by the changes that the pair makes in them.

    Args:
        noisy: Released counts, of any shape.
        counts: From edges of shape ``(M, 2)`` to the counts without noise.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
        rates: Decay of the noise of each count, a number or of shape ``(C,)``.
    """
    edges, canaries = undirected_edges(known_graph).cpu().numpy(), pairs.cpu().numpy()
    before, changes = counted_changes(counts, edges, canaries)
    surplus = noisy.cpu().numpy().ravel() - before
    return torch.from_numpy(table_scores(surplus, changes, np.broadcast_to(rates, before.shape)))


def surplus_degrees(degrees: Tensor, pairs: Tensor, known_graph: Data) -> Tensor:
    """Subtract from degrees ``(N,)`` their mean if half of the pairs ``(P, 2)`` are edges."""
    expected = torch.bincount(known_graph.edge_index[0], minlength=len(degrees))
    canaries = torch.bincount(pairs.flatten(), minlength=len(degrees))
    return degrees.double().cpu() - expected - canaries / 2


def degrees_score(degrees: Tensor, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score each pair by released degrees, from -1 to 1.

    Multiplied by the epsilon of discrete Laplace noise, the score is the log-likelihood ratio if no
    node is in two pairs: a surplus beyond half an edge adds no information.

    Args:
        degrees: Released degrees of shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    return surplus_degrees(degrees, pairs, known_graph).clamp(-0.5, 0.5)[pairs].sum(1)


def weight(epsilon: float) -> float:
    """Return epsilon, or a large finite number if it is infinite: infinity times 0 is nan."""
    return min(epsilon, _CERTAIN)


def turns(graphs: Tensor) -> Tensor:
    """Return the number of earlier entries with the same value, for each entry, shape ``(P,)``."""
    order = graphs.argsort(stable=True)
    counts = torch.bincount(graphs)
    starts = (counts.cumsum(0) - counts)[graphs[order]]
    turns = torch.empty_like(graphs)
    turns[order] = torch.arange(len(graphs)) - starts
    return turns
