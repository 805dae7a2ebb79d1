"""Scores of noisy moments and tables of neighbors' votes; the attacker knows all other edges."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.neighbor_votes import clipped
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.meaning import CLIP

# Finite value for a release without noise.
_LEAST_STD = 1e-6


def released_values(method: Any) -> dict[str, Tensor]:
    """Return the noisy values in the release of a method that counts votes, by their keys.

    Tables of the same beliefs are released as their mean, which stands for each of them. The moment
    of attributes is not among them: a release holds the metric that follows from it.
    """
    values = {
        "num_edges": getattr(method, "num_edges", None),
        "vote_moment": method.moments.moment,
        "clipped_vote_moment": method.moments.moment,
    }
    keys = [entry.key for entry in method.ledger.entries]
    tables = [key for key in keys if key.startswith("neighbor_votes_")]
    for place, key in enumerate(tables):
        values[key] = method.votes[min(place, len(method.votes) - 1)]
    return {key: values[key] for key in keys if key in values}


def vote_moment_score(
    rows: Tensor,
    beliefs: Tensor,
    noisy: Tensor,
    entry: LedgerEntry,
    canaries: Tensor,
    known_graph: Data,
) -> Tensor:
    r"""Score each canary by a noisy moment :math:`\sum_i z_i s_i^T` of rows and votes of neighbors.

    Subtract the moment of the known edges, and divide the rest among the canaries.

    Args:
        rows: Public rows z of the nodes, shape ``(N, r)``.
        beliefs: Belief rows that votes s are sums of, shape ``(N, k)``.
        noisy: The moment, shape ``(r, k)``.
        entry: Its ledger entry, which names the length to which votes are clipped, if they are.
        canaries: Canaries of one edge, shape ``(P, 2)``, or of D edges, shape ``(P, D, 2)``; a fair
            coin has decided on each.
        known_graph: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    clip = float(entry.public.get(CLIP, torch.inf))
    known = neighbor_sums(undirected_edges(known_graph), beliefs)
    before = rows.T @ clipped(known, clip)
    directions = []
    for edges in canaries.view(len(canaries), -1, 2):
        ends = edges.unique()
        votes = known[ends] + neighbor_sums(torch.searchsorted(ends, edges), beliefs[ends])
        change = clipped(votes, clip) - clipped(known[ends], clip)
        directions.append((rows[ends].T @ change).flatten())
    changes = torch.stack(directions)
    rest = (noisy - before).flatten() - changes.sum(0) / 2
    return inclusion_estimate(rest, changes, max(entry.scale, _LEAST_STD), 0.5)
