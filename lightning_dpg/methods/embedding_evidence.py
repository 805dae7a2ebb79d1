"""What reports of embeddings tell an attacker who knows all edges but the canaries."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.evidence import turns
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.multi_bit import least_rate, report_rate


def report_evidence(
    signs: Tensor,
    encode: Callable[[Tensor], Tensor],
    per_report: Tensor,
    graph_of: Tensor,
    pairs: Tensor,
    known: Data,
) -> Tensor:
    """Logarithm of the likelihood of the reports with each canary over that without it.

    Other canaries of the same graph are taken as absent, which weakens the attack.

    Args:
        signs: Reports of shape ``(N, h)``, 0 where nothing is told.
        encode: Rows, with entries from 0 to 1, of the nodes of graphs with the edges ``(M, 2)``.
        per_report: Epsilon of a report of each row, shape ``(N,)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    edges, least = undirected_edges(known).cpu(), least_rate(per_report)[:, None]

    def likelihood(extra: Tensor) -> Tensor:
        """Logarithm for each graph, where the edges ``extra`` are there as well."""
        rates = report_rate(encode(torch.cat([edges, extra])), least).double() / RATE_DENOMINATOR
        told = torch.where(signs > 0, rates, 1 - rates).log() * (signs != 0)
        total = torch.zeros(int(graph_of[-1]) + 1, dtype=torch.double)
        return total.index_add_(0, graph_of, told.sum(1))

    pairs = pairs.cpu()
    without, graphs = likelihood(pairs[:0]), graph_of[pairs[:, 0]]
    scores, order = torch.zeros(len(pairs), dtype=torch.double), turns(graphs)
    for turn in range(int(order.max()) + 1):
        mine = order == turn
        scores[mine] = (likelihood(pairs[mine]) - without)[graphs[mine]]
    return scores
