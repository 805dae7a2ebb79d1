r"""Gromov-Wasserstein discrepancies between graphs, and k-means of graphs with barycenters as centers.

.. math:: \min_T \sum_{ijkl} (C_{ik} - D_{jl})^2 T_{ij} T_{kl}

over all couplings T of the uniform weights of the nodes (Peyre, Cuturi, Solomon,
"Gromov-Wasserstein averaging of kernel and distance matrices", 2016). The fused discrepancy adds
distances between the features of the nodes (Vayer et al., "Optimal transport for structured data
with application on graphs", 2019). The problem is not convex: the result is a local minimum.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from ot.gromov import gromov_barycenters
from ot.lp.emd_wrap import emd_c
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from tqdm import tqdm

from lightning_dpg.errors import Refusal

Matrix = NDArray[np.float64]
_TOLERANCE = 1e-9  # of a step, absolute and relative, as in POT
_MOST_STEPS = 10_000
_MOST_PIVOTS = 10_000_000
_OPTIMAL = 1
_LARGE = 3_600  # pairs of nodes beyond which a step starts from the one before
_BLOCK = 200  # pairs per task of a process
_PAIRS_WORTH_PROCESSES = 20_000  # processes take seconds to start
_WIDTHS = (0.3, 3.0, 30.0, 300.0)
_BARYCENTER_STEPS = 5  # more steps change little


def row_distances(rows: Matrix, metric: Literal["euclidean", "cosine", "correlation"]) -> Matrix:
    """Return distances between the nodes of a graph by their rows.

    Args:
        rows: Embeddings of shape ``(n, h)``.
        metric: Kind of distance. The angle to a row of zeros, or the correlation with a constant
            one, is undefined and counts as a right angle.

    Returns:
        Symmetric matrix of shape ``(n, n)`` with zeros on its diagonal.
    """
    with np.errstate(invalid="ignore"):
        distances = cdist(rows, rows, metric)
    distances[np.isnan(distances)] = 1.0
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


def path_distances(edges: NDArray[np.int64], num_nodes: int) -> Matrix:
    """Return lengths of the shortest paths between all nodes; n where there is none.

    Args:
        edges: Undirected edges of shape ``(M, 2)``.
        num_nodes: Number of nodes n.

    Returns:
        Symmetric matrix of shape ``(n, n)``.
    """
    ends = (edges[:, 0], edges[:, 1])
    links = coo_array((np.ones(len(edges)), ends), shape=(num_nodes, num_nodes)).tocsr()
    lengths = shortest_path(links, directed=False, unweighted=True)
    lengths[np.isinf(lengths)] = num_nodes
    return lengths


class Space(NamedTuple):
    """A graph as a metric space, with node features if the discrepancy is fused."""

    distances: Matrix
    """Distances between its nodes, symmetric, shape ``(n, n)``."""
    features: Matrix | None = None
    """Features of its nodes, shape ``(n, F)``; None for the discrepancy that is not fused."""


def gromov_discrepancy(first: Space, second: Space, *, alpha: float = 0.5) -> float:
    """Compute the discrepancy of two graphs from independent nodes; the fused one with features.

    Args:
        first: One graph.
        second: The other one.
        alpha: Weight of the distances within the graphs; the squared Euclidean distances of the
            features have the rest. It is 1 without features.

    Returns:
        Value of the local minimum, at least 0.
    """
    p, q = (np.full(len(space.distances), 1 / len(space.distances)) for space in (first, second))
    costs = np.zeros((len(p), len(q)))
    if first.features is None or second.features is None:
        alpha = 1.0
    else:
        costs = (1 - alpha) * cdist(first.features, second.features, "sqeuclidean")
    constant = _mean_squares(first.distances, p) + _mean_squares(second.distances, q).T
    value = _descend(first.distances, 2 * second.distances, constant, costs, alpha, p, q)
    return max(value, 0.0)


def pairwise_discrepancies(
    spaces: Sequence[Space], *, progress: bool = False, workers: int | None = None
) -> Matrix:
    """Compute the discrepancies of all pairs of graphs.

    Each pair is solved once, the later graph after the earlier one. The matrix is then symmetric
    even where a tie decides between local minima.

    Args:
        spaces: The G graphs.
        progress: Whether to show a progress bar.
        workers: Number of processes that share the pairs; None is one for each core if there are
            enough pairs to pay for their start, and else this process alone.

    Returns:
        Matrix of shape ``(G, G)`` with zeros on its diagonal.

    Raises:
        Refusal: If a matrix of distances is not symmetric, or only some graphs have features.
    """
    _check(spaces)
    size = len(spaces)
    num_pairs = size * (size - 1) // 2
    if workers is None:
        workers = cpu_count() if num_pairs > _PAIRS_WORTH_PROCESSES else 1
    solve = delayed(_solved)
    tasks = (
        solve(spaces[first], spaces[start : start + _BLOCK])
        for first in range(size)
        for start in range(first + 1, size, _BLOCK)
    )
    results = Parallel(n_jobs=workers, return_as="generator", inner_max_num_threads=1)(tasks)
    values: list[float] = []
    with tqdm(total=num_pairs, unit="pair", disable=not progress) as bar:
        for block in results:
            values += block
            bar.update(len(block))
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = values
    return matrix + matrix.T


def discrepancy_kernels(discrepancies: Matrix) -> list[Matrix]:
    r"""Return similarities :math:`e^{-\gamma GW}` for four gamma in units of 1 / mean discrepancy.

    They are no kernels: some eigenvalues are negative.

    Args:
        discrepancies: Discrepancies of all pairs of graphs, shape ``(G, G)``.
    """
    mean = float(discrepancies.mean()) or 1.0
    return [np.exp(-width * discrepancies / mean) for width in _WIDTHS]


def _descend(
    first: Matrix, twice: Matrix, squares: Matrix, costs: Matrix, alpha: float, p: Matrix, q: Matrix
) -> float:
    """Run conditional gradient with exact steps.

    It takes the steps of ``ot.gromov.gromov_wasserstein2`` and its roundings: many integer
    distances are equal, and the last digit then decides between two local minima. Without the
    generality of POT it takes a third of the time on graphs of 20 nodes.

    On large graphs the transport solver takes most of it. There it starts from the potentials of
    the step before, and products are summed. Ties may then end in another local minimum, as often
    higher as lower; where no distances are equal the values are those of POT.
    """
    coupling, potentials = p[:, None] * q[None, :], np.zeros(len(q))
    large = coupling.size > _LARGE
    q = q * p.sum() / q.sum()  # moves the last digit, as POT does
    blended = np.dot(np.dot(first, coupling), twice)
    value = alpha * float(np.vdot(squares - blended, coupling)) + float(np.vdot(costs, coupling))
    for _ in range(_MOST_STEPS):
        slopes = squares - blended
        slopes *= 2 * alpha  # as in two steps: a product with 2 is exact
        if alpha < 1:
            slopes += costs
        if large and potentials.any():  # a constant in a row or column moves no optimum
            slopes -= potentials
            slopes -= slopes.min(axis=1, keepdims=True)
        direction, moved = _transport(p, q, slopes)
        direction -= coupling
        product = np.dot(np.dot(first, direction), twice)
        square = -alpha * float(np.vdot(product, direction))
        slope = -2 * alpha * float(np.vdot(product, coupling))
        if alpha < 1:
            slope += float(np.vdot(costs, direction))
        if square > 0:
            step = min(1.0, max(0.0, -slope / (2.0 * square)))
        else:
            step = 1.0 if square + slope < 0 else 0.0
        before = value
        value = value + square * step**2 + slope * step
        change = abs(value - before)
        if change < _TOLERANCE or change < _TOLERANCE * abs(value):
            break
        direction *= step
        coupling += direction
        if large:
            potentials += moved
            blended += step * product
        else:
            blended = np.dot(np.dot(first, coupling), twice)
    return value


def _transport(p: Matrix, q: Matrix, costs: Matrix) -> tuple[Matrix, Matrix]:
    """Find the cheapest coupling, a vertex of the transport polytope, and potentials of its columns.

    It calls the compiled solver directly: the checks of ``ot.lp.emd`` take longer than the solver
    on small graphs.
    """
    coupling, _, _, potentials, code = emd_c(p, q, costs, _MOST_PIVOTS, 1, None, None)
    if code != _OPTIMAL:
        raise RuntimeError(f"transport between {len(p)} and {len(q)} nodes: solver code {code}")
    return coupling, potentials


def _mean_squares(distances: Matrix, weights: Matrix) -> Matrix:
    """Return the mean squared distance of each node, shape ``(n, 1)``."""
    return np.dot(distances**2, weights.reshape(-1, 1))


def _solved(first: Space, others: Sequence[Space]) -> list[float]:
    """Compute the discrepancies of one graph and others."""
    return [gromov_discrepancy(first, other) for other in others]


def _check(spaces: Sequence[Space]) -> None:
    if len({space.features is None for space in spaces}) > 1:
        raise Refusal("some graphs have features and others have none")
    for number, space in enumerate(spaces):
        shape = space.distances.shape
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise Refusal(f"graph {number}: distances of shape {shape}, expected (n, n)")
        if not np.allclose(space.distances, space.distances.T, atol=1e-10):
            raise Refusal(f"graph {number}: its distances are not symmetric")


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
