"""Scores of randomized reports: of pairs of nodes, and of a client's node embeddings or statistics."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.counts import turns, weight
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_numbers import pair_ranks
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.local_scalars import LocalScalars, graph_scalars
from lightning_dpg.papers.jin2022.base import node_inputs
from lightning_dpg.papers.jin2022.ldp_gw import LDPGromovWasserstein
from lightning_dpg.papers.jin2022.ldp_gw_as_published import LDPGromovWassersteinAsPublished
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR, response_rates
from lightning_dpg.privacy.reports import least_rate, report_rate


def embedding_reports_score(
    signs: Tensor,
    encode: Callable[[Tensor], Tensor],
    per_report: Tensor,
    graph_of: Tensor,
    pairs: Tensor,
    known_graph: Data,
) -> Tensor:
    """Return the log-likelihood ratio of the reports with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack.

    Args:
        signs: Reports of shape ``(N, h)``, 0 for unreported entries.
        encode: Function from edges ``(M, 2)`` to rows of the nodes, with entries from 0 to 1.
        per_report: Epsilon of a report of each row, shape ``(N,)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    edges, least = undirected_edges(known_graph).cpu(), least_rate(per_report)[:, None]

    def likelihood(extra: Tensor) -> Tensor:
        """Return the log-likelihood of each graph with the further edges ``extra``."""
        rates = report_rate(encode(torch.cat([edges, extra])), least).double() / RATE_DENOMINATOR
        log_ratios = torch.where(signs > 0, rates, 1 - rates).log() * (signs != 0)
        total = torch.zeros(int(graph_of[-1]) + 1, dtype=torch.double)
        return total.index_add_(0, graph_of, log_ratios.sum(1))

    return _alone(likelihood, pairs.cpu(), graph_of)


def scalar_reports_score(
    method: LocalScalars, data: GraphSetRecords, reports: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Return the log-likelihood ratio of reported statistics with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack.

    Args:
        method: The method with local privacy.
        data: Data module of the set of graphs, whose sizes are public.
        reports: Reported cells of each graph, shape ``(G, F)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    names, law = method.hparams["statistics"], method.law(method.budget)
    edges, pairs = undirected_edges(known_graph).cpu(), pairs.cpu()

    def likelihood(extra: Tensor) -> Tensor:
        """Return the log-likelihood of each graph with the further edges ``extra``."""
        values = graph_scalars(names, torch.cat([edges, extra]), data.graph_of, data.sizes)
        total: Tensor = law.log_likelihood(reports.cpu(), values).sum(1)
        return total

    return _alone(likelihood, pairs, data.graph_of)


def _alone(likelihood: Callable[[Tensor], Tensor], pairs: Tensor, graph_of: Tensor) -> Tensor:
    """Return the gain in likelihood of its graph by each pair as the only canary of the graph."""
    without, graphs = likelihood(pairs[:0]), graph_of[pairs[:, 0]]
    scores, order = torch.zeros(len(pairs), dtype=torch.double), turns(graphs)
    for turn in range(int(order.max()) + 1):
        mine = order == turn
        scores[mine] = (likelihood(pairs[mine]) - without)[graphs[mine]]
    return scores


def edge_reports_score(
    epsilon: float, thinning: float, numbers: Tensor, pairs: Tensor, num_nodes: int
) -> Tensor:
    """Return log-likelihood ratios of randomized response, for pairs of shape ``(P, 2)``.

    Without thinning they are plus or minus epsilon. With thinning, an absent report is weaker
    evidence.

    Args:
        epsilon: Cost of the reports.
        thinning: Probability with which a report was kept.
        numbers: Numbers of the reported pairs, see :func:`pair_ranks`.
        pairs: Canaries.
        num_nodes: Number of nodes N.
    """
    reported = torch.isin(pair_ranks(pairs, num_nodes), numbers)
    present = weight(epsilon)
    absent = -present
    if thinning < 1:
        true_rate, false_rate = response_rates(present, thinning)
        absent = math.log1p(-true_rate) - math.log1p(-false_rate)
    return torch.where(reported, present, absent)


def client_reports_score(
    method: LDPGromovWasserstein | LDPGromovWassersteinAsPublished,
    data: GraphSetRecords,
    signs: Tensor,
    pairs: Tensor,
    known_graph: Data,
) -> Tensor:
    """Score each pair by the node embedding reports of a method with local privacy.

    Args:
        method: The method, with its encoder.
        data: Data module of the set of graphs, whose features and sizes are public.
        signs: Reports of the rows of all clients, shape ``(N, h)``.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph on the nodes of all graphs, with all other edges.
    """
    sent = method.sizes.cpu()
    numbers = torch.arange(int(sent.max()))
    # Padding rows of a graph are the same with and without a canary.
    is_node = (numbers < data.sizes[:, None])[numbers < sent[:, None]]
    return embedding_reports_score(
        signs[is_node],
        lambda edges: method.encoded(node_inputs(data, edges), edges),
        method.epsilon_per_report().repeat_interleave(data.sizes),
        data.graph_of,
        pairs,
        known_graph,
    )
