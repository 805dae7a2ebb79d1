"""K-means of graphs under the Gromov-Wasserstein discrepancy, with barycenters as centers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ot.gromov import gromov_barycenters

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.gromov import Matrix, Space, gromov_discrepancy

_BARYCENTER_STEPS = 5  # more steps change little


class Clusters(NamedTuple):
    """Result of k-means."""

    labels: NDArray[np.int64]
    """Cluster of each graph, shape ``(G,)``."""
    centers: list[Matrix]
    """Distances within the center of each cluster; centers may differ in size."""
    spread: float
    """Sum of the discrepancies of all graphs to the centers of their clusters."""


def gromov_kmeans(
    spaces: Sequence[Space],
    discrepancies: Matrix,
    num_clusters: int,
    *,
    rounds: int = 5,
    seed: int = 0,
) -> Clusters:
    """Partition graphs into clusters that are near their barycenters.

    A center has as many nodes as the graphs of its cluster on average, as in Jin and Chen,
    "Gromov-Wasserstein discrepancy with local differential privacy for distributed structural
    graphs", 2022, section 4. The first centers are graphs, each drawn in proportion to its
    discrepancy from the centers before (k-means++).

    Args:
        spaces: The G graphs; their features are ignored.
        discrepancies: Discrepancies of all pairs, shape ``(G, G)``.
        num_clusters: Number of clusters, from 1 to G.
        rounds: Largest number of rounds.
        seed: Public seed of the first centers.

    Raises:
        Refusal: If there are fewer graphs than clusters.
    """
    if not 1 <= num_clusters <= len(spaces):
        raise Refusal(f"num_clusters must be between 1 and {len(spaces)}, got {num_clusters}")
    rng = np.random.default_rng(seed)
    bare = [Space(space.distances) for space in spaces]
    firsts = _spread_out(discrepancies, num_clusters, rng)
    centers = [bare[first].distances for first in firsts]
    to_centers = discrepancies[:, firsts]
    labels = to_centers.argmin(axis=1)
    for _ in range(rounds):
        centers = [
            _barycenter([bare[k].distances for k in np.flatnonzero(labels == cluster)], center)
            for cluster, center in enumerate(centers)
        ]
        to_centers = np.array(
            [[gromov_discrepancy(space, Space(center)) for center in centers] for space in bare]
        )
        before, labels = labels, to_centers.argmin(axis=1)
        if np.array_equal(before, labels):
            break
    return Clusters(labels, centers, float(to_centers.min(axis=1).sum()))


def _spread_out(discrepancies: Matrix, count: int, rng: np.random.Generator) -> list[int]:
    """Draw ``count`` different graphs that are far from each other; return their numbers."""
    chosen = [int(rng.integers(len(discrepancies)))]
    while len(chosen) < count:
        nearest = discrepancies[:, chosen].min(axis=1)
        nearest[chosen] = 0.0
        if not nearest.any():  # all others equal a chosen one
            nearest[np.setdiff1d(np.arange(len(nearest)), chosen)] = 1.0
        chosen.append(int(rng.choice(len(nearest), p=nearest / nearest.sum())))
    return chosen


def _barycenter(members: Sequence[Matrix], before: Matrix) -> Matrix:
    """Return distances within a graph near all members; ``before`` if there are none."""
    if not members:
        return before
    size = round(float(np.mean([len(member) for member in members])))
    # A start near the cluster: the member of the nearest size, cut or with nodes repeated.
    nearest = min(members, key=lambda member: abs(len(member) - size))
    nodes = np.arange(size) % len(nearest)
    return gromov_barycenters(
        size,
        list(members),
        symmetric=True,
        init_C=nearest[np.ix_(nodes, nodes)],
        max_iter=_BARYCENTER_STEPS,
    )
