"""Score of the canaries for a white-box attacker, which sees every noisy value at its release."""

import re
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.auditing.scores.attributes import (
    attribute_gradient_score,
    attribute_moment_score,
)
from lightning_dpg.auditing.scores.choices import (
    branches_score,
    communities_score,
    dendrogram_score,
    labels_score,
)
from lightning_dpg.auditing.scores.counts import (
    counts_score,
    degrees_score,
    links_score,
    num_edges_score,
    ordered_degrees_score,
    surplus_degrees,
    weight,
)
from lightning_dpg.auditing.scores.critic import critic_gradient_score
from lightning_dpg.auditing.scores.graph_sets import (
    num_edges_per_graph_score,
    subgraph_counts_score,
)
from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.auditing.scores.pooled_sets import pooled_statistics_score
from lightning_dpg.auditing.scores.products import product_score
from lightning_dpg.auditing.scores.reports import (
    client_reports_score,
    edge_reports_score,
    scalar_reports_score,
)
from lightning_dpg.auditing.scores.rows import edge_gradient_score, sums_score
from lightning_dpg.auditing.scores.updates import updates_score
from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.graph.joint_degrees import degree_cells, joint_degrees
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.methods.graph_features.base import GraphFeatureRelease
from lightning_dpg.methods.single_graph.bter import degree_classes, wedge_counter
from lightning_dpg.methods.single_graph.node_degrees import counts_at_least
from lightning_dpg.papers.jin2022.clients import build_clients, weighted_update
from lightning_dpg.papers.jin2022.inputs import node_inputs, public_features
from lightning_dpg.privacy.events import Gaussian


def white_box_score(seen: Observation) -> Tensor:
    """Score each canary by a noisy value; all scores are 0 if no score matches its key.

    The audit adds the scores of all releases as log-likelihood ratios.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    score = _SCORES.get(re.sub(r"_\d+$", "", seen.entry.key))
    return torch.zeros(len(seen.pairs)) if score is None else score(seen)


def _num_edges(seen: Observation) -> Tensor:
    rate = seen.entry.event.pure_epsilon / seen.entry.sensitivity
    return num_edges_score(seen.noisy, seen.pairs, seen.known, rate)


def _ordered_degrees(seen: Observation) -> Tensor:
    return ordered_degrees_score(seen.noisy, seen.pairs, seen.known, seen.entry.event.pure_epsilon)


def _degrees(seen: Observation) -> Tensor:
    if not isinstance(seen.entry.event, Gaussian):
        return weight(seen.entry.event.pure_epsilon) * degrees_score(
            seen.noisy, seen.pairs, seen.known
        )
    std = seen.entry.scale
    surplus = surplus_degrees(seen.noisy, seen.pairs, seen.known)
    return surplus[seen.pairs].sum(1) / max(std, 1e-6) ** 2


def _degree_mixing(seen: Observation) -> Tensor:
    classes = torch.from_numpy(degree_classes(seen.method.degrees.cpu().numpy()))
    lower = seen.noisy[*np.tril_indices(len(seen.noisy))]
    return links_score(
        lower, classes, seen.pairs, seen.known, weight(seen.entry.event.pure_epsilon)
    )


def _community_links(seen: Observation) -> Tensor:
    classes, rate = seen.method.communities, seen.entry.event.pure_epsilon / seen.entry.sensitivity
    return links_score(seen.noisy, classes, seen.pairs, seen.known, rate)


def _wedges(seen: Observation) -> Tensor:
    entry, degrees = seen.entry, seen.method.degrees.cpu().numpy()
    counts, _ = wedge_counter(degrees, entry.scale)
    rate, space = (
        weight(entry.event.pure_epsilon) / entry.sensitivity,
        UndirectedPairs(len(degrees)),
    )

    def counted(edges: np.ndarray) -> np.ndarray:
        return counts(EdgeStatistics(torch.from_numpy(edges), space))

    return counts_score(seen.noisy, counted, seen.pairs, seen.known, rate)


def _degree_counts(seen: Observation) -> Tensor:
    entry, size = seen.entry, seen.known.num_nodes
    counts = partial(counts_at_least, num_nodes=size, max_degree=len(seen.noisy))
    rate = weight(entry.event.pure_epsilon) / entry.sensitivity
    return counts_score(seen.noisy, counts, seen.pairs, seen.known, rate)


def _largest_degrees(seen: Observation) -> Tensor:
    size, rate = (
        seen.known.num_nodes,
        weight(seen.entry.event.pure_epsilon) / seen.entry.sensitivity,
    )

    def counts(edges: np.ndarray) -> np.ndarray:
        return np.sort(np.bincount(edges.ravel(), minlength=size))[-2:].sum(keepdims=True)

    return counts_score(seen.noisy, counts, seen.pairs, seen.known, rate)


def _joint_degrees(seen: Observation) -> Tensor:
    size, largest_two = seen.known.num_nodes, seen.method.largest_two
    sensitivity, scales = seen.method.calibration(degree_cells(largest_two, size - 1))
    rates = weight(seen.entry.event.pure_epsilon) / (scales * sensitivity)

    def counts(edges: np.ndarray) -> np.ndarray:
        degrees = np.bincount(edges.ravel(), minlength=size)
        return joint_degrees(edges, degrees, largest_two)

    return counts_score(seen.noisy, counts, seen.pairs, seen.known, rates)


def _communities(seen: Observation) -> Tensor:
    return communities_score(seen.method, seen.entry, seen.noisy, seen.pairs, seen.known)


def _block_labels(seen: Observation) -> Tensor:
    return labels_score(seen.method, seen.entry, seen.noisy, seen.pairs, seen.known)


def _dendrogram(seen: Observation) -> Tensor:
    return dendrogram_score(seen.entry, seen.noisy, seen.pairs, seen.known)


def _branch_edges(seen: Observation) -> Tensor:
    tree = seen.method.dendrogram
    return branches_score(tree, seen.entry, seen.noisy, seen.pairs, seen.known)


def _edge_reports(seen: Observation) -> Tensor:
    size = seen.known.num_nodes
    epsilon = seen.entry.event.pure_epsilon / seen.entry.sensitivity  # that of one pair
    return edge_reports_score(epsilon, kept_share(seen.method), seen.noisy, seen.pairs, size)


def kept_share(method: object) -> float:
    """Probability that a method keeps a report of randomized response."""
    return float(getattr(method, "thinning", 1.0))


def _critic_gradient(seen: Observation) -> Tensor:
    critic = seen.method.critic
    return critic_gradient_score(critic, seen.noisy, seen.entry, seen.pairs, seen.known)


def _edge_gradient(seen: Observation) -> Tensor:
    nodes = torch.arange(seen.known.num_nodes, device=seen.noisy.device)
    inputs, networks = seen.method.inputs(nodes), seen.method.networks
    return edge_gradient_score(networks, inputs, seen.noisy, seen.entry, seen.pairs, seen.known)


def _attribute_moment(seen: Observation) -> Tensor:
    rows = seen.method.scores.rows
    return attribute_moment_score(rows, seen.entry, seen.noisy, seen.pairs, seen.known)


def _attribute_gradient(seen: Observation) -> Tensor:
    return attribute_gradient_score(seen.method, seen.entry, seen.noisy, seen.pairs, seen.known)


def _neighbor_sums(seen: Observation) -> Tensor:
    hop = int(seen.entry.key.rpartition("_")[2])
    if hop > 1:
        summed = seen.earlier[f"neighbor_sums_{hop - 1}"]
    elif isinstance(seen.method, GraphFeatureRelease):
        summed = public_features(seen.data)
    else:
        summed = seen.method.features
    return sums_score(summed, seen.noisy, seen.entry, seen.pairs.cpu(), seen.known)


def _num_edges_per_graph(seen: Observation) -> Tensor:
    return num_edges_per_graph_score(seen.method, seen.noisy, seen.pairs, seen.known)


def _subgraph_counts(seen: Observation) -> Tensor:
    if seen.method.counting.is_sampled:  # the law of counts in a secret sample has no formula here
        return torch.zeros(len(seen.pairs))
    noisy = {seen.entry.key: seen.noisy}
    return subgraph_counts_score(seen.method, noisy, seen.pairs, seen.known)


def _embedding_reports(seen: Observation) -> Tensor:
    signs = seen.noisy.double()
    return client_reports_score(seen.method, seen.data, signs, seen.pairs, seen.known)


def _scalar_reports(seen: Observation) -> Tensor:
    return scalar_reports_score(seen.method, seen.data, seen.noisy, seen.pairs, seen.known)


def _client_updates(seen: Observation) -> Tensor:
    method, data = seen.method, seen.data
    parts, training = method.client_parts(), method.local_training()
    owners = torch.full((len(method.sizes),), -1)
    for number, part in enumerate(parts):
        owners[part] = number

    def updates(edges: Tensor) -> Tensor:
        """Clipped updates of the clients with the given edges, each times its weight."""
        inputs, labels = node_inputs(data, edges), method.labels.cpu()
        clients = build_clients(parts, inputs, edges, data.graph_of, labels, method.device)
        return torch.stack(
            [weighted_update(method.network, [client], training) for client in clients]
        )

    held_by = owners[data.graph_of[seen.pairs[:, 0].cpu()]]
    return updates_score(seen.noisy, updates, held_by, seen.entry, seen.pairs, seen.known)


# Scores by the key of the ledger entry, without the number at its end.
_SCORES = {
    "num_edges": _num_edges,
    "ordered_degrees": _ordered_degrees,
    "degrees": _degrees,
    "degree_mixing": _degree_mixing,
    "wedges": _wedges,
    "degree_counts": _degree_counts,
    "largest_degrees": _largest_degrees,
    "joint_degrees": _joint_degrees,
    "communities": _communities,
    "community_links": _community_links,
    "block_labels": _block_labels,
    "dendrogram": _dendrogram,
    "branch_edges": _branch_edges,
    "edge_reports": _edge_reports,
    "products": product_score,
    "eigenvalues": product_score,
    "critic_gradient": _critic_gradient,
    "edge_gradient": _edge_gradient,
    "attribute_moment": _attribute_moment,
    "attribute_gradient": _attribute_gradient,
    "neighbor_sums": _neighbor_sums,
    "num_edges_per_graph": _num_edges_per_graph,
    "pooled_degrees": pooled_statistics_score,
    "pooled_triangles": pooled_statistics_score,
    "pooled_components": pooled_statistics_score,
    "edge_counts": _subgraph_counts,
    "walks": _subgraph_counts,
    "graphlets": _subgraph_counts,
    "embedding_reports": _embedding_reports,
    "scalar_reports": _scalar_reports,
    "client_updates": _client_updates,
}
