"""Scores of noisy counts of each graph of a set, and of sums over its graphs."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.apps.audit.scores.counts import alone, counts_score
from lightning_dpg.apps.audit.scores.observation import Observation, weight
from lightning_dpg.methods.graph_set.pooled_shapes import (
    SetStatistics,
    place_weights,
    pooled_components,
    pooled_degrees,
    pooled_triangles,
)
from lightning_dpg.papers.dubhashi2015.counts import counted
from lightning_dpg.privacy.events import Gaussian


def num_edges_per_graph_score(observation: Observation) -> Tensor:
    """Score each pair by noisy numbers of edges per graph, shape ``(G,)``.

    Returns:
        Log-likelihood ratios under discrete Laplace noise, shape ``(P,)``.
    """
    method = observation.method
    entries = [entry for entry in method.ledger.entries if entry.key == "num_edges_per_graph"]
    rate = weight(min((e.event.pure_epsilon / e.sensitivity for e in entries), default=math.inf))
    owners = method.graph_of(torch.arange(observation.known_graph.num_nodes)).cpu().numpy()

    def counts(edges: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(owners[edges[:, 0]], minlength=len(method.sizes))

    return counts_score(observation, counts, rate)


def subgraph_counts_score(observation: Observation, noisy: Mapping[str, Tensor]) -> Tensor:
    """Return the log-likelihood ratio of noisy subgraph counts with and without each canary.

    The other canaries of the same graph are assumed absent, which weakens the attack. Counts in a
    secret sample have no score: their law has no formula here.

    Args:
        observation: Its method is a private kernel, with its plan of counts and their noise.
        noisy: Released counts by their keys in the plan.

    Returns:
        Scores of shape ``(P,)``.
    """
    method, pairs = observation.method, observation.pairs
    if method.counting.is_sampled or not noisy:
        return torch.zeros(len(pairs))
    is_gaussian = isinstance(method.ledger.entries[-1].event, Gaussian)
    power = 2 if is_gaussian else 1
    scales = torch.split(method.noise_scales.cpu(), [len(one.columns) for one in method.counts])
    places = {one.key: place for place, one in enumerate(method.counts)}
    edges, graphs = observation.known_edges, method.graph_of(pairs[:, 0])
    nodes = method.graph_of(torch.arange(observation.known_graph.num_nodes))

    def distances(extra: Tensor) -> Tensor:
        records = torch.cat([edges, extra])
        exact = list(counted(method.counting, records, nodes, len(method.sizes)))
        total = torch.zeros(len(method.sizes), dtype=torch.double)
        for key, value in noisy.items():
            off = (value.cpu().double() - exact[places[key]]) / scales[places[key]]
            total += off.abs().pow(power).sum(1) / power
        return total

    return alone(lambda extra: -distances(extra), pairs, graphs)


def pooled_statistics_score(observation: Observation) -> Tensor:
    """Score each canary by a pooled statistic and by the change that the canary makes in it.

    The attacker knows the classes of the graphs, because they follow from earlier releases.

    Args:
        observation: A release of :class:`PooledStatistics` other than its numbers of edges.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    method, key = observation.method, observation.entry.key
    sizes = method.sizes.cpu().numpy()
    borders = method.pooled.classes()
    classes = borders.of(sizes, method.num_edges.cpu().numpy())
    weights = place_weights(sizes, classes, borders.number, method.pooled.bins)

    def counts(edges: NDArray[np.int64]) -> NDArray[np.int64]:
        exact = SetStatistics(edges, sizes)
        if key == "pooled_degrees":
            of_nodes = classes[exact.graph_of]
            ordered = exact.ordered_degrees()
            return pooled_degrees(ordered, weights, of_nodes, borders.number).ravel()
        if key == "pooled_triangles":
            return pooled_triangles(exact.triangles(), sizes, classes, borders.number)
        return np.array([pooled_components(exact.largest_components(), sizes)])

    return counts_score(observation, counts)
