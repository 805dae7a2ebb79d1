"""Scores of randomized reports and of private selections; the attacker knows all other edges."""

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.apps.audit.scores.counts import alone
from lightning_dpg.apps.audit.scores.observation import Observation, weight
from lightning_dpg.graph.communities import HUB_PASSES, Turns
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_numbers import pair_ranks
from lightning_dpg.methods.local_scalars import graph_scalars
from lightning_dpg.papers.jin2022.base import node_inputs
from lightning_dpg.papers.xiao2014.dendrogram import (
    branch_edges,
    branch_pairs,
    dividing_branch,
    log_likelihoods,
)
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR, response_rates
from lightning_dpg.privacy.reports import least_rate, report_rate


def client_reports_score(observation: Observation) -> Tensor:
    """Return the log-likelihood ratio of reported node embeddings with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack. The release
    are reports of the rows of all clients, shape ``(N, h)``, 0 for unreported entries, of a method
    with local privacy and its encoder.

    Returns:
        Scores of shape ``(P,)``.
    """
    method, data, edges = observation.method, observation.data, observation.known_edges
    sent = method.sizes.cpu()
    numbers = torch.arange(int(sent.max()))
    # Padding rows of a graph are the same with and without a canary.
    is_node = (numbers < data.sizes[:, None])[numbers < sent[:, None]]
    signs = observation.noisy.double()[is_node]
    per_report = method.epsilon_per_report().repeat_interleave(data.sizes)
    least = least_rate(per_report)[:, None]

    def likelihood(extra: Tensor) -> Tensor:
        """Return the log-likelihood of each graph with the further edges ``extra``."""
        present = torch.cat([edges, extra])
        rows = method.encoded(node_inputs(data, present), present)
        rates = report_rate(rows, least).double() / RATE_DENOMINATOR
        log_ratios = torch.where(signs > 0, rates, 1 - rates).log() * (signs != 0)
        total = torch.zeros(int(data.graph_of[-1]) + 1, dtype=torch.double)
        return total.index_add_(0, data.graph_of, log_ratios.sum(1))

    pairs = observation.pairs.cpu()
    return alone(likelihood, pairs, data.graph_of[pairs[:, 0]])


def scalar_reports_score(observation: Observation) -> Tensor:
    """Return the log-likelihood ratio of reported statistics with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack. The release
    are reported cells of each graph, shape ``(G, F)``, of a method with local privacy.

    Returns:
        Scores of shape ``(P,)``.
    """
    method, data, edges = observation.method, observation.data, observation.known_edges
    names, law = method.hparams["statistics"], method.law(method.budget)

    def likelihood(extra: Tensor) -> Tensor:
        """Return the log-likelihood of each graph with the further edges ``extra``."""
        values = graph_scalars(names, torch.cat([edges, extra]), data.graph_of, data.sizes)
        total: Tensor = law.log_likelihood(observation.noisy.cpu(), values).sum(1)
        return total

    pairs = observation.pairs.cpu()
    return alone(likelihood, pairs, data.graph_of[pairs[:, 0]])


def edge_reports_score(observation: Observation) -> Tensor:
    """Return log-likelihood ratios of randomized response.

    The release are numbers of the reported pairs, see :func:`pair_ranks`. Without thinning the
    scores are plus or minus epsilon of one pair. With thinning, the probability with which a report
    is kept, an absent report is weaker evidence.
    """
    entry, num_nodes = observation.entry, observation.known_graph.num_nodes
    reported = torch.isin(pair_ranks(observation.pairs, num_nodes), observation.noisy)
    present = weight(entry.event.pure_epsilon / entry.sensitivity)
    absent, thinning = -present, float(getattr(observation.method, "thinning", 1.0))
    if thinning < 1:
        true_rate, false_rate = response_rates(present, thinning)
        absent = math.log1p(-true_rate) - math.log1p(-false_rate)
    return torch.where(reported, present, absent)


def communities_score(observation: Observation) -> Tensor:
    """Score each edge by the log-likelihood ratio of the communities of the ends that counted it.

    The attacker knows all other edges. The release are all choices in the order of :class:`Turns`, or the
    last choice of each node, shape ``(N,)``, as published. Hubs are then taken to have chosen alike in
    earlier passes, which are not scored.
    """
    method, chosen, entry = observation.method, observation.noisy, observation.entry
    epsilon, count, first = entry.event.pure_epsilon, int(chosen.max()) + 1, 0
    # Before hubs had passes the sensitivity was 1.
    turns = Turns(method.space, method.degrees, count, epsilon if entry.sensitivity > 1 else 0.0)
    hubs = turns.num_hubs
    if hubs and len(chosen) == len(turns.order):
        first = turns.last
        chosen = torch.cat([chosen[:hubs], chosen[:hubs].flip(0), chosen])
    edges, unit = undirected_edges(observation.known_graph), weight(epsilon / HUB_PASSES)
    utilities = turns.utilities(edges, method.hparams["resolution"])
    places = turns.order.argsort()[observation.pairs]
    scores = torch.zeros(len(observation.pairs), dtype=torch.double)
    for start, stop in pairwise([count, *turns.stops]):
        number = min(start // hubs, HUB_PASSES - 1) if hubs else 0
        in_pass = hubs - 1 - places if number % 2 else places
        earlier, later = in_pass.sort(dim=1).values.T + number * hubs
        read = (number * hubs <= earlier) & (earlier < start) & (start <= later) & (later < stop)
        if start < first or not read.any():
            continue
        counts, offsets = utilities(chosen[:start], stop)
        law = (unit * (counts + offsets)).softmax(1)  # nearly that of permute and flip
        rate = unit if start < turns.last + hubs else HUB_PASSES * unit
        communities = chosen[earlier[read]]
        growth = torch.log1p(law[later[read] - start, communities] * torch.tensor(rate).expm1())
        scores[read] += rate * (chosen[later[read]] == communities) - growth
    return scores


def dendrogram_score(observation: Observation) -> Tensor:
    """Score each edge by its change of the dendrogram's likelihood, relative to other dendrograms.

    The release is a dendrogram of shape ``(N, 3)``.
    """
    dendrogram, entry = observation.noisy.cpu().numpy(), observation.entry
    branch = dividing_branch(dendrogram, observation.pairs.cpu().numpy())
    most = branch_pairs(dendrogram)[branch]
    counts = branch_edges(dendrogram, observation.known_edges.numpy())[branch]
    without, with_edge = (log_likelihoods(edges, most) for edges in (counts, counts + 1))
    rate = weight(entry.event.pure_epsilon) / max(2 * entry.sensitivity, 1.0)
    return torch.from_numpy(rate * (with_edge - without))


def branches_score(observation: Observation) -> Tensor:
    """Score each pair by the surplus of its branch: noisy minus known edges and half the canaries.

    The release are numbers of edges of the branches, shape ``(N,)``, with discrete Laplace noise.
    """
    tree = observation.method.dendrogram.cpu().numpy()
    branch = dividing_branch(tree, observation.pairs.cpu().numpy())
    expected = branch_edges(tree, observation.known_edges.numpy()).astype(float)
    expected += np.bincount(branch, minlength=len(expected)) / 2
    counts = observation.noisy.double().cpu()
    surplus = (counts - torch.from_numpy(expected))[torch.from_numpy(branch)]
    return weight(observation.entry.event.pure_epsilon) * surplus.clamp(-0.5, 0.5)
