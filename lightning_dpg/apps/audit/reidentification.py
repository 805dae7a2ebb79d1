"""Re-identification of nodes after the removal of names (reads the private graph)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch_geometric.data import Data

from lightning_dpg.apps.audit.link_stealing import SEED, Estimate, proportion
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.pair_space import without_directions
from lightning_dpg.metrics.functional import degrees, local_clustering

_MOST_NODES = 1000
_ROWS = 256  # rows of distances in memory at a time


def reidentify(real: Data, graphs: Sequence[Data]) -> dict[str, Estimate]:
    """Measure the share of nodes with an edge that an attacker finds, by the attacker's knowledge.

    Directions are ignored.

    Args:
        real: Real graph, from which the attacker knows the targets.
        graphs: Graphs on the same nodes; the share is the mean over them.
    """
    real, graphs = without_directions(real), [without_directions(graph) for graph in graphs]
    linked = np.flatnonzero(degrees(real))
    targets = np.random.default_rng(SEED).permutation(linked)[:_MOST_NODES]
    estimates = {}
    for name, describe in (
        ("degree", by_degree),
        ("degree and triangles", by_degree_and_triangles),
        ("degrees of neighbors", by_neighbor_degrees),
    ):
        descriptions = describe(real)
        shares = [share_reidentified(descriptions, describe(graph), targets) for graph in graphs]
        estimates[name] = proportion(float(np.mean(shares)) * len(targets), len(targets))
    return estimates


def by_degree(graph: Data) -> NDArray[np.float64]:
    """Describe each node by its degree, shape ``(N, 1)``."""
    return degrees(graph)[:, None].astype(np.float64)


def by_degree_and_triangles(graph: Data) -> NDArray[np.float64]:
    """Describe each node by the roots of its degree and triangle count, shape ``(N, 2)``."""
    degree = degrees(graph)
    triangles = local_clustering(graph) * (degree * (degree - 1) / 2)
    return np.sqrt(np.stack([degree, np.rint(triangles)], axis=1))


def by_neighbor_degrees(graph: Data) -> NDArray[np.float64]:
    """Describe each node by its neighbors of degree 1, 2, 4, ... (roots of counts), ``(N, 32)``."""
    least = 2.0 ** np.arange(32)
    return np.sqrt(adjacency(graph) @ (degrees(graph)[:, None] >= least).astype(np.float64))


def share_reidentified(
    descriptions: NDArray[np.float64], published: NDArray[np.float64], targets: NDArray[np.int64]
) -> float:
    """Return the share of the targets that the attacker finds in a graph without names.

    The attacker takes the node whose published description is nearest to the known description of
    the target, and breaks ties at random. Hay et al., "Resisting structural re-identification in
    anonymized social networks", 2008, measure the same for graphs without noise.

    Args:
        descriptions: Description of each node in the real graph, shape ``(N, K)``.
        published: Description of each node in the published graph, in the same order of nodes.
        targets: Numbers of the targets, shape ``(T,)``.
    """
    hits = 0.0
    for low in range(0, len(targets), _ROWS):
        block = targets[low : low + _ROWS]
        distances = cdist(descriptions[block], published, "cityblock")
        nearest = distances <= distances.min(axis=1, keepdims=True) + 1e-9
        hits += float((nearest[np.arange(len(block)), block] / nearest.sum(axis=1)).sum())
    return hits / len(targets)
