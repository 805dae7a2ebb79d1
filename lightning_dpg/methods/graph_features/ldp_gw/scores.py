"""Canary scores of Gromov-Wasserstein releases, for an attacker who knows all other edges."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.embedding_evidence import report_evidence
from lightning_dpg.methods.graph_features.ldp_gw.base import GromovWassersteinRelease
from lightning_dpg.methods.graph_features.ldp_gw.clients import build_clients, weighted_update
from lightning_dpg.methods.graph_features.ldp_gw.inputs import node_inputs
from lightning_dpg.methods.update_evidence import update_evidence
from lightning_dpg.privacy.events import LedgerEntry


def report_score(
    method: GromovWassersteinRelease,
    records: GraphSetRecords,
    signs: Tensor,
    per_report: Tensor,
    pairs: Tensor,
    known: Data,
) -> Tensor:
    """Log-likelihood ratios of reports, with each canary over without it.

    Args:
        method: Its encoder gives the rows, and its sizes are those of the reports.
        records: The graphs, of which the numbers of nodes and the features are read.
        signs: Reports of all rows, or multiples of them, 0 where nothing is reported.
        per_report: Epsilon of each report of a graph, shape ``(G,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    sent = method.sizes.cpu()
    # Rows that fill a graph up are the same with and without a canary.
    is_node = torch.arange(int(sent.max())) < records.sizes[:, None]
    is_row = torch.arange(int(sent.max())) < sent[:, None]
    return report_evidence(
        signs[is_node[is_row]],
        lambda edges: method.encoded(node_inputs(records, edges), edges),
        per_report.repeat_interleave(records.sizes),
        records.graph_of,
        pairs,
        known,
    )


def update_score(
    method: GromovWassersteinRelease,
    records: GraphSetRecords,
    noisy: Tensor,
    entry: LedgerEntry,
    pairs: Tensor,
    known: Data,
) -> Tensor:
    """Log-likelihood ratios, roughly, of one noisy sum of clients' updates.

    Args:
        method: Its encoder has the weights of the server before the round.
        records: The graphs, of which the numbers of nodes and the features are read.
        noisy: The sum, shape ``(K,)``.
        entry: The entry of the ledger that pays for it.
        pairs: Canaries of shape ``(P, 2)``.
        known: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    parts, network, training = method.client_parts(), method.network, method.local_training()
    assert network is not None
    owners = torch.full((len(method.sizes),), -1)
    for number, part in enumerate(parts):
        owners[part] = number

    def updates(edges: Tensor) -> Tensor:
        """Clipped updates times the weights of the clients, shape ``(C, K)``."""
        inputs = node_inputs(records, edges)
        clients = build_clients(
            parts, inputs, edges, records.graph_of, method.labels.cpu(), method.device
        )
        return torch.stack([weighted_update(network, [client], training) for client in clients])

    held_by = owners[records.graph_of[pairs[:, 0].cpu()]]
    return update_evidence(noisy, updates, held_by, entry, pairs, known)
