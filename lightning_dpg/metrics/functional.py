"""Statistics of a graph as functions of the graph to a float; nan where one is undefined.

:data:`STATISTICS` lists the statistics of Bojchevski et al., "NetGAN: Generating Graphs via Random
Walks", 2018, in their definitions.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, starmap

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import component_labels, count_common, index_type
from lightning_dpg.metrics.paths import characteristic_path_length, path_length_estimate
from lightning_dpg.metrics.wedge_samples import (
    Estimate,
    LocalClustering,
    estimate_local_clustering,
    estimate_triangles,
)

EXACT_PATHS = 50_000_000
"""Paths of two oriented edges up to which triangles are counted.

One core counts three to ten million paths a second, which is a quarter of a minute at most; a sample
takes two seconds.
"""

_EDGES_AT_ONCE = 2**20
_PATHS_AT_ONCE = 2**25
"""Paths of two edges that are in memory, 12 bytes or more each."""


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
    return csr_array((np.ones(count, dtype=np.int64), ends, starts), shape=shape)


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
    """Count triangles.

    Exact, by products of sparse matrices: the cost is that of all paths of two oriented edges, about
    20 seconds for ten million edges with power-law degrees.
    """
    oriented = oriented_adjacency(graph)
    return float(sum(closed.sum() for _, closed in _closed_paths(oriented, oriented)))


def triangles_at_nodes(graph: Data) -> NDArray[np.int64]:
    """Count the triangles that each node is in, shape ``(N,)``."""
    oriented = oriented_adjacency(graph)
    count = np.zeros(graph.num_nodes, dtype=np.int64)
    # Each triangle counts at its first and last node, and then at its middle node.
    for rows, closed in _closed_paths(oriented, oriented):
        count[rows] += closed.sum(axis=1)
        count += closed.sum(axis=0)
    for rows, closed in _closed_paths(oriented.T.tocsr(), oriented):
        count[rows] += closed.sum(axis=1)
    return count


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
    out = np.diff(oriented.indptr).astype(np.int64)
    return int(out[oriented.indices].sum())


def _closed_paths(first: csr_array, second: csr_array) -> Iterator[tuple[slice, csr_array]]:
    """Yield blocks of rows of the product, at the entries of ``second``, in bounded memory."""
    paths = np.cumsum(first @ np.diff(second.indptr))
    marks = np.arange(_PATHS_AT_ONCE, paths[-1] if len(paths) else 0, _PATHS_AT_ONCE)
    starts = np.unique(np.r_[0, np.searchsorted(paths, marks), len(paths)])
    for rows in starmap(slice, pairwise(starts.tolist())):
        yield rows, (first[rows] @ second).multiply(second[rows]).tocsr()


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
    path_length, path_error = path_length_estimate(graph)
    estimates = triangle_statistics(graph, count.value)
    estimates["characteristic_path_length"] = path_length
    errors = triangle_statistics(graph, count.standard_error)
    errors["characteristic_path_length"] = path_error
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
