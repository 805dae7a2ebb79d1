"""Scores of noisy sums of clients' updates."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.auditing.scores.counts import turns
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.privacy.ledger import LedgerEntry


def updates_score(
    noisy: Tensor,
    updates: Callable[[Tensor], Tensor],
    client_of: Tensor,
    entry: LedgerEntry,
    pairs: Tensor,
    known_graph: Data,
) -> Tensor:
    """Approximate log-likelihood ratios of canaries, given a sum of clients' updates.

    Subtract the updates by the known edges, and divide the rest among the changes by each canary as
    the only further edge.

    Args:
        noisy: Noisy sum of all updates, shape ``(K,)``.
        updates: From edges of shape ``(M, 2)`` to the updates of all clients, each times its weight
            and clipped, with the weights of the server before the round, shape ``(C, K)``.
        client_of: Number of the client that holds each pair, or -1, shape ``(P,)``.
        entry: Ledger entry of the sum.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``; 0 for pairs that no client holds.
    """
    pairs, edges = pairs.cpu(), undirected_edges(known_graph).cpu()
    without, held = updates(edges).double(), torch.nonzero(client_of >= 0)[:, 0]
    changes = torch.zeros(len(pairs), without.shape[1], dtype=torch.double)
    # One canary of each client at a time.
    order = turns(client_of[held])
    for turn in range(int(order.max()) + 1 if len(held) else 0):
        mine = held[order == turn]
        owners = client_of[mine]
        changes[mine] = (updates(torch.cat([edges, pairs[mine]])).double() - without)[owners]
    rest = noisy.double().cpu() - without.sum(0) - changes.sum(0) / 2
    scores = torch.zeros(len(pairs), dtype=torch.double)
    std = entry.scale
    scores[held] = inclusion_estimate(rest, changes[held], std, 0.5)
    return scores
