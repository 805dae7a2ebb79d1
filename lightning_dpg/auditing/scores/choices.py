"""Scores of private selections: communities, a dendrogram and the edges of its branches."""

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.counts import weight
from lightning_dpg.graph.communities import (
    count_neighbors,
    earlier_first,
    expected_neighbors,
    turn_stops,
)
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.single_graph.privgraph import TURN_GROWTH, PrivGraph
from lightning_dpg.papers.xiao2014.dendrogram import (
    branch_edges,
    branch_pairs,
    dividing_branch,
    log_likelihoods,
)
from lightning_dpg.privacy.events import Gaussian, LedgerEntry


def communities_score(
    method: PrivGraph, entry: LedgerEntry, chosen: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each edge by the log-likelihood ratio of the community of its later end.

    The attacker knows all other edges.

    Args:
        method: The method with the released degrees, which order the nodes.
        entry: Ledger entry of the selection.
        chosen: Communities in the order of the turns, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    order = method.degrees.argsort(descending=True, stable=True)
    degrees, count = method.degrees[order], int(chosen.max()) + 1
    ends = earlier_first(undirected_edges(known_graph), order)
    earlier, later = order.argsort()[pairs].sort(dim=1).values.T
    rate, scores = weight(entry.event.pure_epsilon), torch.zeros(len(pairs), dtype=torch.double)
    for start, stop in pairwise([count, *turn_stops(count, len(order), TURN_GROWTH)]):
        by_chance = expected_neighbors(degrees, chosen[:start], stop, count)
        neighbors = count_neighbors(ends, chosen[:start], stop, count)
        # Nearly the law of permute and flip.
        law = (rate * (neighbors - method.hparams["resolution"] * by_chance)).softmax(1)
        read = (start <= later) & (later < stop) & (earlier < start)
        communities = chosen[earlier[read]]
        growth = torch.log1p(law[later[read] - start, communities] * torch.tensor(rate).expm1())
        scores[read] = rate * (chosen[later[read]] == communities) - growth
    return scores


def dendrogram_score(
    entry: LedgerEntry, chosen: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each edge by its change of the dendrogram's likelihood, relative to other dendrograms.

    Args:
        entry: Ledger entry of the selection.
        chosen: The selected dendrogram, shape ``(N, 3)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    dendrogram, numbers = chosen.cpu().numpy(), pairs.cpu().numpy()
    branch = dividing_branch(dendrogram, numbers)
    most = branch_pairs(dendrogram)[branch]
    counts = branch_edges(dendrogram, undirected_edges(known_graph).cpu().numpy())[branch]
    without, with_edge = (log_likelihoods(edges, most) for edges in (counts, counts + 1))
    rate = weight(entry.event.pure_epsilon) / max(2 * entry.sensitivity, 1.0)
    return torch.from_numpy(rate * (with_edge - without))


def branches_score(
    dendrogram: Tensor, entry: LedgerEntry, counts: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by the surplus of its branch: noisy minus known edges and half the canaries.

    Args:
        dendrogram: The released dendrogram, shape ``(N, 3)``.
        entry: Ledger entry of the branch counts, with discrete Laplace or Gaussian noise.
        counts: Noisy numbers of edges of the branches, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    tree = dendrogram.cpu().numpy()
    branch = dividing_branch(tree, pairs.cpu().numpy())
    expected = branch_edges(tree, undirected_edges(known_graph).cpu().numpy()).astype(float)
    expected += np.bincount(branch, minlength=len(expected)) / 2
    surplus = (counts.double().cpu() - torch.from_numpy(expected))[torch.from_numpy(branch)]
    if not isinstance(entry.event, Gaussian):
        return weight(entry.event.pure_epsilon) * surplus.clamp(-0.5, 0.5)
    sigma = entry.event.noise_multiplier
    return weight(sigma**-2 if sigma else math.inf) * surplus
