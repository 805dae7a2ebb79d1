"""Scores of statistics that are summed over the graphs of a set."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.auditing.scores.counts import counts_score, weight
from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.methods.graph_set.pooled_shapes import (
    SetStatistics,
    place_weights,
    pooled_components,
    pooled_degrees,
    pooled_triangles,
)


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

    rate = weight(observation.entry.event.pure_epsilon) / observation.entry.sensitivity
    return counts_score(observation.noisy, counts, observation.pairs, observation.known_graph, rate)
