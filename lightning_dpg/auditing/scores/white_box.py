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
from lightning_dpg.auditing.scores.mixing import mixing_score
from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.auditing.scores.pooled_sets import pooled_statistics_score
from lightning_dpg.auditing.scores.products import product_score
from lightning_dpg.auditing.scores.reports import (
    client_reports_score,
    edge_reports_score,
    scalar_reports_score,
)
from lightning_dpg.auditing.scores.rows import edge_gradient_score, sums_score
from lightning_dpg.auditing.scores.transfers import COUNTS, transfer_score
from lightning_dpg.auditing.scores.updates import updates_score
from lightning_dpg.auditing.scores.votes import vote_moment_score
from lightning_dpg.graph.edge_statistics import EdgeStatistics, degree_cells, joint_degrees
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.single_graph.bter import degree_classes, wedge_counter
from lightning_dpg.methods.single_graph.node_degrees import counts_at_least
from lightning_dpg.papers.jin2022.base import node_inputs, public_features
from lightning_dpg.papers.jin2022.clients import build_clients, weighted_update
from lightning_dpg.privacy.events import Gaussian


def white_box_score(observation: Observation) -> Tensor:
    """Score each canary by a noisy value; all scores are 0 if no score matches its key.

    The audit adds the scores of all releases as log-likelihood ratios.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    score = _SCORES.get(re.sub(r"_\d+$", "", observation.entry.key))
    return torch.zeros(len(observation.pairs)) if score is None else score(observation)


def _num_edges(observation: Observation) -> Tensor:
    rate = observation.entry.event.pure_epsilon / observation.entry.sensitivity
    return num_edges_score(observation.noisy, observation.pairs, observation.known_graph, rate)


def _ordered_degrees(observation: Observation) -> Tensor:
    return ordered_degrees_score(
        observation.noisy,
        observation.pairs,
        observation.known_graph,
        observation.entry.event.pure_epsilon,
    )


def _degrees(observation: Observation) -> Tensor:
    if not isinstance(observation.entry.event, Gaussian):
        return weight(observation.entry.event.pure_epsilon) * degrees_score(
            observation.noisy, observation.pairs, observation.known_graph
        )
    std = observation.entry.scale
    surplus = surplus_degrees(observation.noisy, observation.pairs, observation.known_graph)
    return surplus[observation.pairs].sum(1) / max(std, 1e-6) ** 2


def _degree_mixing(observation: Observation) -> Tensor:
    classes = torch.from_numpy(degree_classes(observation.method.degrees.cpu().numpy()))
    lower = observation.noisy[*np.tril_indices(len(observation.noisy))]
    return links_score(
        lower,
        classes,
        observation.pairs,
        observation.known_graph,
        weight(observation.entry.event.pure_epsilon),
    )


def _community_links(observation: Observation) -> Tensor:
    classes, rate = (
        observation.method.communities,
        observation.entry.event.pure_epsilon / observation.entry.sensitivity,
    )
    return links_score(observation.noisy, classes, observation.pairs, observation.known_graph, rate)


def _community_wedges(observation: Observation) -> Tensor:
    entry, count = observation.entry, observation.method.wedges_by_labels
    rate = weight(entry.event.pure_epsilon) / entry.sensitivity
    return counts_score(observation.noisy, count, observation.pairs, observation.known_graph, rate)


def _class_links(observation: Observation) -> Tensor:
    entry, count = observation.entry, observation.method.links_by_classes
    rate = weight(entry.event.pure_epsilon) / entry.sensitivity
    return counts_score(observation.noisy, count, observation.pairs, observation.known_graph, rate)


def _wedges(observation: Observation) -> Tensor:
    entry, degrees = observation.entry, observation.method.degrees.cpu().numpy()
    counts, _ = wedge_counter(degrees, entry.scale)
    rate, space = (
        weight(entry.event.pure_epsilon) / entry.sensitivity,
        UndirectedPairs(len(degrees)),
    )

    def count(edges: np.ndarray) -> np.ndarray:
        return counts(EdgeStatistics(torch.from_numpy(edges), space))

    return counts_score(observation.noisy, count, observation.pairs, observation.known_graph, rate)


def _degree_counts(observation: Observation) -> Tensor:
    entry, size = observation.entry, observation.known_graph.num_nodes
    counts = partial(counts_at_least, num_nodes=size, max_degree=len(observation.noisy))
    rate = weight(entry.event.pure_epsilon) / entry.sensitivity
    return counts_score(observation.noisy, counts, observation.pairs, observation.known_graph, rate)


def _largest_degrees(observation: Observation) -> Tensor:
    size, rate = (
        observation.known_graph.num_nodes,
        weight(observation.entry.event.pure_epsilon) / observation.entry.sensitivity,
    )

    def counts(edges: np.ndarray) -> np.ndarray:
        return np.sort(np.bincount(edges.ravel(), minlength=size))[-2:].sum(keepdims=True)

    return counts_score(observation.noisy, counts, observation.pairs, observation.known_graph, rate)


def _joint_degrees(observation: Observation) -> Tensor:
    size, largest_two = observation.known_graph.num_nodes, observation.method.largest_two
    sensitivity, scales = observation.method.calibration(degree_cells(largest_two, size - 1))
    rates = weight(observation.entry.event.pure_epsilon) / (scales * sensitivity)

    def counts(edges: np.ndarray) -> np.ndarray:
        degrees = np.bincount(edges.ravel(), minlength=size)
        return joint_degrees(edges, degrees, largest_two)

    return counts_score(
        observation.noisy, counts, observation.pairs, observation.known_graph, rates
    )


def _communities(observation: Observation) -> Tensor:
    return communities_score(
        observation.method,
        observation.entry,
        observation.noisy,
        observation.pairs,
        observation.known_graph,
    )


def _dendrogram(observation: Observation) -> Tensor:
    return dendrogram_score(
        observation.entry, observation.noisy, observation.pairs, observation.known_graph
    )


def _branch_edges(observation: Observation) -> Tensor:
    tree = observation.method.dendrogram
    return branches_score(
        tree, observation.entry, observation.noisy, observation.pairs, observation.known_graph
    )


def _edge_reports(observation: Observation) -> Tensor:
    size = observation.known_graph.num_nodes
    epsilon = (
        observation.entry.event.pure_epsilon / observation.entry.sensitivity
    )  # that of one pair
    return edge_reports_score(
        epsilon, kept_share(observation.method), observation.noisy, observation.pairs, size
    )


def kept_share(method: object) -> float:
    """Return the probability that a method keeps a report of randomized response."""
    return float(getattr(method, "thinning", 1.0))


def _critic_gradient(observation: Observation) -> Tensor:
    critic = observation.method.critic
    return critic_gradient_score(
        critic, observation.noisy, observation.entry, observation.pairs, observation.known_graph
    )


def _edge_gradient(observation: Observation) -> Tensor:
    nodes = torch.arange(observation.known_graph.num_nodes, device=observation.noisy.device)
    inputs, networks = observation.method.inputs(nodes), observation.method.networks
    return edge_gradient_score(
        networks,
        inputs,
        observation.noisy,
        observation.entry,
        observation.pairs,
        observation.known_graph,
    )


def _attribute_moment(observation: Observation) -> Tensor:
    if isinstance(observation.method, NodeClassifier):
        rows = _moment_rows(observation)
    else:
        rows = observation.method.scores.rows
    return attribute_moment_score(
        rows, observation.entry, observation.noisy, observation.pairs, observation.known_graph
    )


def _attribute_gradient(observation: Observation) -> Tensor:
    return attribute_gradient_score(
        observation.method,
        observation.entry,
        observation.noisy,
        observation.pairs,
        observation.known_graph,
    )


def _neighbor_sums(observation: Observation) -> Tensor:
    hop = int(observation.entry.key.rpartition("_")[2])
    if hop > 1:
        summed = observation.earlier[f"neighbor_sums_{hop - 1}"]
    elif isinstance(observation.method, NodeClassifier):
        summed = observation.method.summed
    elif isinstance(observation.method, GraphFeatureRelease):
        summed = public_features(observation.data)
    else:
        summed = observation.method.features
    return sums_score(
        summed,
        observation.noisy,
        observation.entry,
        observation.pairs.cpu(),
        observation.known_graph,
    )


def _moment_rows(observation: Observation) -> Tensor:
    """Rows of a method that releases moments of them, as they are at this release."""
    rows: Tensor = observation.method.moments.rows(observation.data.records.attributes.cpu())
    return rows


def _clipped_attribute_moment(observation: Observation) -> Tensor:
    rows = _moment_rows(observation)
    return vote_moment_score(
        rows,
        rows,
        observation.noisy,
        observation.entry,
        observation.pairs,
        observation.known_graph,
    )


def _vote_moment(observation: Observation) -> Tensor:
    return vote_moment_score(
        _moment_rows(observation),
        observation.method.summed,
        observation.noisy,
        observation.entry,
        observation.pairs,
        observation.known_graph,
    )


def _neighbor_votes(observation: Observation) -> Tensor:
    return sums_score(
        observation.method.summed,
        observation.noisy,
        observation.entry,
        observation.pairs,
        observation.known_graph,
    )


def _num_edges_per_graph(observation: Observation) -> Tensor:
    return num_edges_per_graph_score(
        observation.method, observation.noisy, observation.pairs, observation.known_graph
    )


def _subgraph_counts(observation: Observation) -> Tensor:
    if (
        observation.method.counting.is_sampled
    ):  # the law of counts in a secret sample has no formula here
        return torch.zeros(len(observation.pairs))
    noisy = {observation.entry.key: observation.noisy}
    return subgraph_counts_score(
        observation.method, noisy, observation.pairs, observation.known_graph
    )


def _embedding_reports(observation: Observation) -> Tensor:
    signs = observation.noisy.double()
    return client_reports_score(
        observation.method, observation.data, signs, observation.pairs, observation.known_graph
    )


def _scalar_reports(observation: Observation) -> Tensor:
    return scalar_reports_score(
        observation.method,
        observation.data,
        observation.noisy,
        observation.pairs,
        observation.known_graph,
    )


def _client_updates(observation: Observation) -> Tensor:
    method, data = observation.method, observation.data
    parts, training = method.client_parts(), method.local_training()
    owners = torch.full((len(method.sizes),), -1)
    for number, part in enumerate(parts):
        owners[part] = number

    def updates(edges: Tensor) -> Tensor:
        """Return clipped updates of the clients with the given edges, each times its weight."""
        inputs, labels = node_inputs(data, edges), method.labels.cpu()
        clients = build_clients(parts, inputs, edges, data.graph_of, labels, method.device)
        return torch.stack(
            [weighted_update(method.network, [client], training) for client in clients]
        )

    held_by = owners[data.graph_of[observation.pairs[:, 0].cpu()]]
    return updates_score(
        observation.noisy,
        updates,
        held_by,
        observation.entry,
        observation.pairs,
        observation.known_graph,
    )


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
    "column_mixing": mixing_score,
    **dict.fromkeys(COUNTS, transfer_score),
    "communities": _communities,
    "community_links": _community_links,
    "community_wedges": _community_wedges,
    "class_links": _class_links,
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
    "clipped_attribute_moment": _clipped_attribute_moment,
    "vote_moment": _vote_moment,
    "clipped_vote_moment": _vote_moment,
    "neighbor_votes": _neighbor_votes,
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
