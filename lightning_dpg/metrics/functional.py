"""Statistics of a graph as functions of the graph to a float; nan where one is undefined.

:data:`STATISTICS` lists the statistics of Bojchevski et al., "NetGAN: Generating Graphs via Random
Walks", 2018, in their definitions.
Triangles and clustering of large graphs are estimated from random wedges. A wedge is a pair of edges
that meet in a node, its center. It is closed if an edge links its ends. See Seshadhri, Pinar, Kolda,
"Wedge sampling for computing clustering coefficients and triangle counts on large graphs", 2014.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import are_edges, component_labels, count_common, index_type
from lightning_dpg.metrics.paths import characteristic_path_length, distances

NUM_WEDGES = 2_000_000
"""Wedges of an estimate: shares of closed wedges above .5 % are known to 1 % of their value."""
WEDGE_SEED = 0


class Estimate(NamedTuple):
    """A number with its standard error, which is 0 if the number is exact."""

    value: float
    standard_error: float


class LocalClustering(NamedTuple):
    """Local clustering, measured at all nodes of two neighbors or more or estimated at some."""

    average: Estimate
    """Mean over all nodes of the graph; a node with fewer than two neighbors counts as 0."""
    nodes: NDArray[np.int64]
    """Nodes of two neighbors or more, shape ``(K,)``; drawn ones may repeat."""
    shares: NDArray[np.float64]
    """Share of linked pairs among the neighbors of each of the nodes, shape ``(K,)``.

    At drawn nodes it is that of a single random pair: 0 or 1.
    """


def estimate_triangles(
    graph: Data, oriented: csr_array, num_wedges: int = NUM_WEDGES, seed: int = WEDGE_SEED
) -> Estimate:
    """Estimate the number of triangles from uniform wedges, without bias.

    Wedges of oriented edges are drawn, both of which begin at the center. Each triangle closes one
    of them, and as hubs are the center of few, a larger share is closed than of all wedges.

    Args:
        graph: Graph of N nodes.
        oriented: Adjacency matrix with one orientation of each edge and no cycle, ``(N, N)``.
        num_wedges: Number of wedges to draw.
        seed: Seed of the draws (public).
    """
    rng = np.random.default_rng(seed)
    degree = np.diff(oriented.indptr).astype(np.int64)
    until = np.cumsum(degree * (degree - 1) // 2)
    if not len(until) or not until[-1]:
        return Estimate(0.0, 0.0)  # two oriented edges of each triangle begin at one of its nodes
    drawn = np.sort(rng.integers(until[-1], size=num_wedges))  # neighbors in memory
    centers = np.searchsorted(until, drawn, side="right")
    closed = _closed(graph, oriented.indptr, oriented.indices, centers, rng)
    return _scaled(closed, float(until[-1]))


def estimate_local_clustering(
    graph: Data, num_wedges: int = NUM_WEDGES, seed: int = WEDGE_SEED
) -> LocalClustering:
    """Estimate local clustering from one random wedge at each of some random nodes.

    Args:
        graph: Graph with a node of two neighbors.
        num_wedges: Number of nodes to draw among those of two neighbors or more, with replacement.
        seed: Seed of the draws (public).
    """
    rng = np.random.default_rng(seed)
    rows, neighbors = graph.edge_index.cpu().numpy()
    degree = np.bincount(rows, minlength=graph.num_nodes)
    central = np.flatnonzero(degree >= 2)
    nodes = central[np.sort(rng.integers(len(central), size=num_wedges))]
    starts = np.concatenate([[0], np.cumsum(degree)])  # the edges are sorted
    closed = _closed(graph, starts, neighbors, nodes, rng)
    average = _scaled(closed, len(central) / graph.num_nodes)
    return LocalClustering(average, nodes, closed.astype(np.float64))


def _closed(
    graph: Data,
    starts: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    centers: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw two neighbors of each center; return whether an edge links them.

    Args:
        graph: Graph of N nodes.
        starts: Where the neighbors of each node start, and the end, shape ``(N + 1,)``.
        neighbors: Neighbors of the first node, of the next one and so on.
        centers: Nodes of two of these neighbors or more.
        rng: Source of the draw.
    """
    start = starts[centers].astype(np.int64)
    degree = starts[centers + 1] - start
    first, second = rng.integers(degree), rng.integers(degree - 1)
    second += second >= first
    ends = neighbors[np.stack([start + first, start + second])].astype(np.int64)
    return are_edges(graph, ends[0], ends[1])


def _scaled(closed: NDArray[np.bool_], scale: float) -> Estimate:
    """Return the share of closed wedges times ``scale``, with its standard error."""
    count = len(closed)
    # With one more closed and one more open wedge, no estimate has an error of 0.
    share = (closed.sum() + 1) / (count + 2)
    error = math.sqrt(share * (1 - share) / count)
    return Estimate(float(closed.mean()) * scale, error * scale)


_SMALL = 16
"""Nodes of a component up to which all components of its size are solved at once."""
_FEW, _BASIS = 20, 80
"""Basis vectors: a few are enough for most graphs, but long thin graphs have close eigenvalues."""
_RESTARTS = 5
"""Of the method with few basis vectors."""
_COLUMNS, _MOST_BLOCKS = 2**18, 8
"""Columns of a block of the matrix, and most blocks: each has a number for each row."""
_PRECISION = 1e-12
"""Relative, of eigenvalues; it is below :data:`_TIE`."""
_TIE = 1e-9


def eigenvector_centrality(
    graph: Data, components: NDArray[np.int32] | None = None
) -> NDArray[np.float64]:
    """Return the nonnegative leading eigenvector of the adjacency matrix; empty without edges.

    Where components tie for the leading eigenvalue, it is the projection of equal values for all
    nodes, as power iteration finds it. Its norm is 1.

    Args:
        graph: The graph.
        components: Its :func:`component_labels`, if they have been found.
    """
    if not graph.num_edges:
        return np.zeros(0)
    parts = component_labels(graph) if components is None else components
    degrees = np.bincount(graph.edge_index[0].cpu().numpy(), minlength=graph.num_nodes)
    eigenvectors = [
        leading for nodes in _candidates(degrees, parts) for leading in _leading(graph, nodes)
    ]
    largest = max(value for value, _, _ in eigenvectors)
    centrality = np.zeros(graph.num_nodes)
    for value, nodes, vector in eigenvectors:
        if value >= largest * (1 - _TIE):
            centrality[nodes] = vector * vector.sum()
    return centrality / np.linalg.norm(centrality)


def _candidates(degrees: NDArray[np.int64], parts: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return components that may lead, those of a small size together, shape ``(C, size)``.

    The eigenvalue of a component lies between the root of its largest degree and this degree.
    """
    largest = np.zeros(parts.max() + 1)
    np.maximum.at(largest, parts, degrees)
    may_lead = largest >= np.sqrt(largest.max())
    sizes = np.bincount(parts)
    nodes = np.argsort(parts, kind="stable")
    blocks = []
    for size in np.unique(sizes[may_lead]):
        rows = nodes[(may_lead & (sizes == size))[parts[nodes]]].reshape(-1, size)
        blocks += [rows] if size <= _SMALL else [row[None] for row in rows]
    return blocks


def _by_columns(matrix: csr_array) -> LinearOperator:
    """Return the product with a 0/1 matrix by blocks of columns, whose part of a vector fits a cache."""
    width = max(_COLUMNS, -(-matrix.shape[1] // _MOST_BLOCKS))
    cuts = range(0, matrix.shape[1], width)
    parts = [matrix[:, start : start + width] for start in cuts]
    ones = np.ones(max(part.nnz for part in parts))  # of all blocks
    parts = [csr_array((ones[: p.nnz], p.indices, p.indptr), shape=p.shape) for p in parts]
    return LinearOperator(
        matrix.shape,
        matvec=lambda x: sum(p @ x[k : k + width] for k, p in zip(cuts, parts, strict=True)),
        dtype=ones.dtype,
    )


def _leading_of_one(matrix: LinearOperator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest eigenvalue and its eigenvector, shapes ``(1,)`` and ``(N, 1)``."""
    size = matrix.shape[0]
    find = partial(eigsh, matrix, k=1, which="LA", v0=np.ones(size), tol=_PRECISION)
    with contextlib.suppress(ArpackNoConvergence):
        return find(ncv=min(_FEW, size), maxiter=_RESTARTS)
    return find(ncv=min(_BASIS, size))


def _leading(
    graph: Data, components: NDArray[np.int64]
) -> list[tuple[float, NDArray[np.int64], NDArray[np.float64]]]:
    """Return the leading eigenvalue and eigenvector of each of some components of one size.

    Args:
        graph: The graph.
        components: Nodes of each component in ascending order, shape ``(C, size)``.
    """
    count, size = components.shape
    number = np.full(graph.num_nodes, -1, dtype=np.int32)
    number[components.ravel()] = np.arange(count * size, dtype=np.int32)
    rows, columns = graph.edge_index.cpu().numpy()
    is_inner = (number >= 0)[rows]  # an edge leads to no other component
    others = number[columns]
    if not is_inner.all():
        others = others[is_inner]
    if size > _SMALL:
        degrees = np.bincount(rows, minlength=graph.num_nodes)[components[0]]
        starts = np.concatenate([[0], np.cumsum(degrees)]).astype(index_type(len(others)))
        inner = csr_array((np.ones(len(others), np.int8), others, starts), shape=(size, size))
        del is_inner, others  # memory
        product = _by_columns(inner)
        del inner  # memory
        values, vectors = _leading_of_one(product)
        return [(float(values[0]), components[0], np.abs(vectors[:, 0]))]
    ends = number[rows[is_inner]]
    dense = np.zeros((count, size, size))
    dense[ends // size, ends % size, others % size] = 1
    values, vectors = np.linalg.eigh(dense)
    return [
        (float(value[-1]), row, np.abs(vector[:, -1]))
        for value, row, vector in zip(values, components, vectors, strict=True)
    ]


EXACT_PATHS = 50_000_000
"""Paths of two oriented edges up to which triangles are counted.

One core counts three to ten million paths a second, which is a quarter of a minute at most; a sample
takes two seconds.
"""

_EDGES_AT_ONCE = 2**20
_BLOCK_EDGES = 16_384
"""Edges whose triangles are found at once."""


def degrees(graph: Data) -> NDArray[np.int64]:
    """Return the degree of each node, shape ``(N,)``."""
    return torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).cpu().numpy()


def oriented_adjacency(graph: Data) -> csr_array:
    """Return the adjacency matrix with one orientation of each edge, shape ``(N, N)``.

    Edges point to the end of larger degree. Hubs then begin few paths of two edges, and each
    triangle is one such path and one edge that closes it.
    """
    rows, columns = graph.edge_index.cpu().numpy()
    place = np.empty(graph.num_nodes, dtype=np.int32)  # by degree, and of equal ones by number
    place[np.argsort(degrees(graph), kind="stable")] = np.arange(graph.num_nodes, dtype=np.int32)
    kind = index_type(len(rows) // 2)
    ends, out = np.empty(len(rows) // 2, dtype=kind), np.zeros(graph.num_nodes, dtype=kind)
    count = 0
    for start in range(0, len(rows), _EDGES_AT_ONCE):  # rows ascend, and columns in each row: CSR
        first, second = (each[start : start + _EDGES_AT_ONCE] for each in (rows, columns))
        is_oriented = place[first] < place[second]
        chosen = second[is_oriented]
        ends[count : count + len(chosen)] = chosen
        count += len(chosen)
        found = np.bincount(first[is_oriented] - first[0])
        out[first[0] : first[0] + len(found)] += found.astype(kind)
    starts = np.concatenate([[0], np.cumsum(out)]).astype(kind)
    shape = (graph.num_nodes, graph.num_nodes)
    return csr_array((np.ones(count, dtype=np.int8), ends, starts), shape=shape)


def max_degree(graph: Data) -> float:
    """Return the largest degree."""
    return float(degrees(graph).max()) if graph.num_nodes else math.nan


def assortativity(graph: Data) -> float:
    """Return the correlation of the degrees of both ends of edges; nan where all are equal."""
    degree = degrees(graph).astype(np.float64)
    linked = degree[degree > 0]
    if not linked.size or np.ptp(linked) == 0:
        return math.nan
    # Each edge is there in both orientations: both ends have the same mean and variance.
    centered = degree - linked @ linked / linked.sum()
    first, second = (centered[ends] for ends in graph.edge_index.cpu().numpy())
    return float(first @ second / (first @ first))


def triangles(graph: Data) -> float:
    """Count triangles: two million edges with power-law degrees take less than a second."""
    return float(sum(len(last) for _, last in triangle_blocks(oriented_adjacency(graph))))


def triangles_at_nodes(graph: Data) -> NDArray[np.int64]:
    """Count the triangles that each node is in, shape ``(N,)``."""
    oriented = oriented_adjacency(graph)
    first, middle = oriented.nonzero()
    count = np.zeros(graph.num_nodes, dtype=np.int64)
    for edge, last in triangle_blocks(oriented):
        for nodes in (first[edge], middle[edge], last):
            np.add.at(count, nodes, 1)
    return count


def triangle_blocks(oriented: csr_array) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Yield the T triangles of :func:`oriented_adjacency` in blocks of edges, in bounded memory.

    Yields:
        Number of the edge from the first node to the middle one in the order of the matrix, and the
        last node, to which both point, shapes ``(T,)``.
    """
    first, middle = oriented.nonzero()
    out = np.diff(oriented.indptr)
    for start in range(0, len(first), _BLOCK_EDGES):
        # Where no edge goes on there is no triangle: in many graphs of two sides nowhere.
        edges = start + np.flatnonzero(out[middle[start : start + _BLOCK_EDGES]])
        # Common entries of two sorted rows take a tenth of the time of a product of matrices.
        closed = oriented[first[edges]].multiply(oriented[middle[edges]]).tocoo()
        yield edges[closed.row], closed.col


def measure_clustering(graph: Data) -> tuple[Estimate, LocalClustering]:
    """Count the triangles and the local clustering of a graph, or estimate both.

    They are estimated from random wedges beyond :data:`EXACT_PATHS`.

    Args:
        graph: Graph of one node or more.
    """
    oriented = oriented_adjacency(graph)
    if num_oriented_paths(oriented) > EXACT_PATHS:
        count = estimate_triangles(graph, oriented)
        del oriented  # memory
        return count, estimate_local_clustering(graph)
    at_nodes = triangles_at_nodes(graph)
    nodes = np.flatnonzero(degrees(graph) >= 2)
    shares = local_clustering(graph, at_nodes)
    average = Estimate(float(shares.mean()), 0.0)
    triangle_count = Estimate(float(at_nodes.sum()) / 3, 0.0)
    return triangle_count, LocalClustering(average, nodes, shares[nodes])


def num_oriented_paths(oriented: csr_array) -> int:
    """Count the paths of two oriented edges, the cost of an exact count of triangles."""
    return int(np.diff(oriented.indptr)[oriented.indices].sum(dtype=np.int64))


def power_law_exponent(graph: Data) -> float:
    r"""Return the power-law exponent of the degrees, :math:`1 + n / \sum_i \ln(d_i / d_{min})`.

    The n nodes are those with an edge; nan where all of them have the same degree.
    """
    degree = degrees(graph)
    degree = degree[degree > 0]
    if not len(degree) or np.ptp(degree) == 0:
        return math.nan
    return float(1 + len(degree) / np.log(degree / degree.min()).sum())


def netgan_clustering(graph: Data) -> float:
    """Return three times the triangles per claw; nan without a claw.

    The tables of NetGAN and DP-NetGAN call it the clustering coefficient; its key is ``cluster``.
    """
    return _ratio(3 * triangles(graph), claws(graph))


def largest_component_size(graph: Data) -> float:
    """Count the nodes of the largest connected component."""
    return sizes_of_components(component_labels(graph))["largest_component_size"]


def num_components(graph: Data) -> float:
    """Count connected components; a node without an edge is one."""
    return sizes_of_components(component_labels(graph))["num_components"]


def sizes_of_components(labels: NDArray[np.int32]) -> dict[str, float]:
    """Return those of :data:`STATISTICS` that need components, by the component of each node."""
    if not len(labels):
        return {"largest_component_size": math.nan, "num_components": 0.0}
    sizes = np.bincount(labels)
    return {"largest_component_size": float(sizes.max()), "num_components": float(len(sizes))}


def wedges(graph: Data) -> float:
    """Count pairs of edges with a common end."""
    degree = degrees(graph).astype(np.float64)
    return float((degree * (degree - 1) / 2).sum())


def claws(graph: Data) -> float:
    """Count triples of edges with a common end."""
    degree = degrees(graph).astype(np.float64)
    return float((degree * (degree - 1) * (degree - 2) / 6).sum())


def gini(graph: Data) -> float:
    r"""Return the Gini coefficient of the degrees.

    With ascending degrees it is :math:`2 \sum_{i=1}^N i d_i / (N \sum_i d_i) - (N + 1) / N`.
    """
    ascending = np.sort(degrees(graph)).astype(np.float64)
    count = len(ascending)
    weighted = (np.arange(1, count + 1) * ascending).sum()
    return _ratio(2 * weighted, count * ascending.sum()) - _ratio(count + 1, count)


def relative_edge_distribution_entropy(graph: Data) -> float:
    r"""Return the entropy :math:`-\sum_i p_i \ln p_i / \ln N` of edge ends :math:`p_i = d_i / 2M`.

    It is 1 where all nodes have the same degree.
    """
    degree = degrees(graph).astype(np.float64)
    if degree.sum() == 0:
        return math.nan
    share = degree[degree > 0] / degree.sum()
    return float(-(share * np.log(share)).sum() / math.log(len(degree)))


def transitivity(graph: Data) -> float:
    """Return three times the triangles per wedge; nan without a wedge."""
    return _ratio(3 * triangles(graph), wedges(graph))


def local_clustering(graph: Data, at_nodes: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return the share of linked pairs among each node's neighbors, shape ``(N,)``.

    It is 0 at a node with fewer than two neighbors, as in networkx.

    Args:
        graph: Graph of N nodes.
        at_nodes: Its :func:`triangles_at_nodes`, if they have been counted.
    """
    count = triangles_at_nodes(graph) if at_nodes is None else at_nodes
    degree = degrees(graph).astype(np.float64)
    return count / np.maximum(degree * (degree - 1) / 2, 1)


def edge_overlap(graph: Data, reference: Data) -> float:
    """Return the share of the edges of ``reference`` that ``graph`` has too; nan without any.

    Nodes are matched by their numbers.
    """
    if graph.num_nodes != reference.num_nodes:
        raise Refusal(
            f"graphs must have equal nodes, got {graph.num_nodes} and {reference.num_nodes}"
        )
    return _ratio(count_common(graph, reference), reference.num_edges // 2)


STATISTICS: dict[str, Callable[[Data], float]] = {
    # The six of Zheng et al., "Network Generation with Differential Privacy", 2021, Table 1
    "max_degree": max_degree,
    "assortativity": assortativity,
    "triangles": triangles,
    "power_law_exponent": power_law_exponent,
    "cluster": netgan_clustering,
    "characteristic_path_length": characteristic_path_length,
    # The others of NetGAN that need no second graph and no node classes
    "largest_component_size": largest_component_size,
    "num_components": num_components,
    "wedges": wedges,
    "claws": claws,
    "gini": gini,
    "relative_edge_distribution_entropy": relative_edge_distribution_entropy,
    "transitivity": transitivity,
}


def statistics(graph: Data) -> dict[str, float]:
    """Return all of :data:`STATISTICS` by name; see :func:`statistics_and_errors`."""
    return statistics_and_errors(graph)[0]


def statistics_and_errors(graph: Data) -> tuple[dict[str, float], dict[str, float]]:
    """Return all of :data:`STATISTICS` by name, and the standard errors of the sampled ones.

    Mean distances are sampled in large graphs, see :mod:`lightning_dpg.metrics.paths`, and triangles
    beyond :data:`EXACT_PATHS`.
    """
    oriented = oriented_adjacency(graph)
    is_sampled = num_oriented_paths(oriented) > EXACT_PATHS
    count = estimate_triangles(graph, oriented) if is_sampled else Estimate(triangles(graph), 0.0)
    lengths = distances(graph)
    estimates = triangle_statistics(graph, count.value)
    estimates["characteristic_path_length"] = lengths.mean
    errors = triangle_statistics(graph, count.standard_error)
    errors["characteristic_path_length"] = lengths.standard_error
    values = {
        name: estimates[name] if name in estimates else statistic(graph)
        for name, statistic in STATISTICS.items()
    }
    return values, {name: error for name, error in errors.items() if error > 0}


def triangle_statistics(graph: Data, count: float) -> dict[str, float]:
    """Return those of :data:`STATISTICS` that need triangles, by their count."""
    return {
        "triangles": count,
        "cluster": _ratio(3 * count, claws(graph)),
        "transitivity": _ratio(3 * count, wedges(graph)),
    }


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator else math.nan
