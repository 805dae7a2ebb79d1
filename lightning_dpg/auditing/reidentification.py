"""Re-identification: which node is which where names were removed (reads the private graph)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch_geometric.data import Data

from lightning_dpg.auditing.link_stealing import SEED, Estimate, proportion
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.functional import degrees, local_clustering

_MOST_NODES = 1000
_ROWS = 256  # of distances that are held at a time


def reidentify(real: Data, graphs: Sequence[Data]) -> dict[str, Estimate]:
    """Share of the nodes with an edge that are found in graphs without names, by what is known.

    Args:
        real: Real graph, from which the attacker knows the targets.
        graphs: Graphs on the same nodes; the share is the mean over them.
    """
    linked = np.flatnonzero(degrees(real))
    targets = np.random.default_rng(SEED).permutation(linked)[:_MOST_NODES]
    found = {}
    for name, describe in (
        ("degree", by_degree),
        ("degree and triangles", by_degree_and_triangles),
        ("degrees of neighbors", by_neighbor_degrees),
    ):
        known = describe(real)
        shares = [share_reidentified(known, describe(graph), targets) for graph in graphs]
        found[name] = proportion(float(np.mean(shares)) * len(targets), len(targets))
    return found


def by_degree(graph: Data) -> NDArray[np.float64]:
    """What an attacker may know of each node: its degree, shape ``(N, 1)``."""
    return degrees(graph)[:, None].astype(np.float64)


def by_degree_and_triangles(graph: Data) -> NDArray[np.float64]:
    """Degree and number of triangles of each node, shape ``(N, 2)``; roots make them alike."""
    degree = degrees(graph)
    triangles = local_clustering(graph) * (degree * (degree - 1) / 2)
    return np.sqrt(np.stack([degree, np.rint(triangles)], axis=1))


def by_neighbor_degrees(graph: Data) -> NDArray[np.float64]:
    """Roots of the numbers of neighbors of degree 1, 2, 4, 8, ... or more, shape ``(N, 32)``."""
    least = 2.0 ** np.arange(32)
    return np.sqrt(adjacency(graph) @ (degrees(graph)[:, None] >= least).astype(np.float64))


def share_reidentified(
    known: NDArray[np.float64], published: NDArray[np.float64], targets: NDArray[np.int64]
) -> float:
    """Share of the targets that are found in a graph whose names were removed.

    The attacker takes the node whose published description is nearest to what is known of the target,
    and any of equally near ones by chance. Hay et al., "Resisting structural re-identification in
    anonymized social networks", 2008, ask the same of graphs that were not perturbed.

    Args:
        known: Description of each node in the real graph, shape ``(N, K)``.
        published: The same in the published graph, whose row k is the same node.
        targets: Numbers of the nodes that are looked for, shape ``(T,)``.
    """
    hits = 0.0
    for low in range(0, len(targets), _ROWS):
        wanted = targets[low : low + _ROWS]
        distances = cdist(known[wanted], published, "cityblock")
        nearest = distances <= distances.min(axis=1, keepdims=True) + 1e-9
        hits += float((nearest[np.arange(len(wanted)), wanted] / nearest.sum(axis=1)).sum())
    return hits / len(targets)
