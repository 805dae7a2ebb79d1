"""Scores of noisy counts of each graph of a set."""

import math
from collections.abc import Mapping

import torch
from scipy.stats import binom
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.counts import turns, weight
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.papers.dubhashi2015.base import GraphCounts
from lightning_dpg.papers.dubhashi2015.counts import counted
from lightning_dpg.privacy.events import Gaussian


def num_edges_per_graph_score(
    method: GraphSetSynthesizer, num_edges: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by noisy numbers of edges per graph.

    Args:
        method: A synthesizer of a set of graphs, with its ledger.
        num_edges: Noisy numbers of shape ``(G,)``, as the ledger entry records them.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Log-likelihood ratios under discrete Laplace noise, shape ``(P,)``.
    """
    entries = [entry for entry in method.ledger.entries if entry.key == "num_edges_per_graph"]
    rate = weight(min((e.event.pure_epsilon / e.sensitivity for e in entries), default=math.inf))
    size = len(method.sizes)
    graphs = method.graph_of(pairs[:, 0]).cpu()
    canaries = torch.bincount(graphs, minlength=size)
    edges = method.graph_of(undirected_edges(known_graph)[:, 0]).cpu()
    surplus = num_edges.cpu() - torch.bincount(edges, minlength=size)
    # Any number of the graph's other canaries can be edges.
    others = torch.arange(int(canaries.max()))
    trials = (canaries.clamp(min=1) - 1)[:, None].numpy()
    chances = torch.from_numpy(binom.logpmf(others.numpy(), trials, 0.5))

    def likelihood(edge: int) -> Tensor:
        noise = surplus[:, None].double() - others - edge
        return torch.logsumexp(chances - rate * noise.abs(), 1)

    return (likelihood(1) - likelihood(0))[graphs]


def subgraph_counts_score(
    method: GraphCounts, noisy: Mapping[str, Tensor], pairs: Tensor, known_graph: Data
) -> Tensor:
    """Return the log-likelihood ratio of noisy subgraph counts with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack.

    Args:
        method: A private kernel, with its plan of counts and the scales of their noise.
        noisy: Released counts by their keys in the plan.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph on the nodes of all graphs, with all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    is_gaussian = isinstance(method.ledger.entries[-1].event, Gaussian)
    power = 2 if is_gaussian else 1
    scales = torch.split(method.noise_scales.cpu(), [len(one.columns) for one in method.counts])
    places = {one.key: place for place, one in enumerate(method.counts)}
    edges, graphs = undirected_edges(known_graph).cpu(), method.graph_of(pairs[:, 0])
    nodes = method.graph_of(torch.arange(known_graph.num_nodes))

    def distances(extra: Tensor) -> Tensor:
        records = torch.cat([edges, extra])
        exact = list(counted(method.counting, records, nodes, len(method.sizes)))
        total = torch.zeros(len(method.sizes), dtype=torch.double)
        for key, value in noisy.items():
            off = (value.cpu().double() - exact[places[key]]) / scales[places[key]]
            total += off.abs().pow(power).sum(1) / power
        return total

    without = distances(pairs[:0])
    scores = torch.zeros(len(pairs), dtype=torch.double)
    order = turns(graphs)
    for turn in range(int(order.max()) + 1):
        mine = order == turn
        scores[mine] = (without - distances(pairs[mine]))[graphs[mine]]
    return scores
