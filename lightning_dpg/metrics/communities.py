"""Communities of a graph, and agreement of two partitions into communities."""

import contextlib
import ctypes
import math
import sys
from importlib.util import find_spec
from typing import Literal

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import gammaln
from torch_geometric.data import Data

from lightning_dpg.graph.node_names import natural_order
from lightning_dpg.metrics.functional import degrees

LOUVAIN_SEED = 0
_EDGES_AT_ONCE = 2**20
MANY_NODES = 20_000
"""Largest number of nodes for networkx' Louvain method if networkit is installed."""
MANY_EDGES = 1_000_000
"""Largest number of edges for networkx' Louvain method, which takes minutes for as many."""
MOST_EDGES = 50_000_000
"""Largest number of edges for networkit's Louvain method, which holds each edge four times."""


def louvain(graph: Data, networkx_edges: int | None = None) -> NDArray[np.int64]:
    """Find the community of each node by the Louvain method, with a fixed seed: shape ``(N,)``.

    The result depends on the order of the nodes, which is that of their names here, for networkit
    within each degree: a graph has the same communities in any numbering. A node without an edge
    is a community of its own.

    Args:
        graph: The graph. :func:`library_of` chooses the implementation; without one the result is
            empty.
        networkx_edges: Largest number of edges for networkx, if the time counts for more than the
            choice of the implementation.
    """
    library = library_of(graph)
    is_slow = networkx_edges is not None and graph.num_edges // 2 > networkx_edges
    if library == "networkx" and is_slow:
        library = "networkit" if find_spec("networkit") is not None else None
    if library is None:
        return np.zeros(0, dtype=np.int64)
    degree = degrees(graph)
    linked = np.flatnonzero(degree)
    names = graph.node_names  # each look-up in a graph takes longer than one in a list
    order = linked[natural_order([names[node] for node in linked.tolist()])]
    if library == "networkit":
        # Ascending degrees: hubs lie together in memory, and choose among communities that are there
        # already. Ten million edges take a fifth to a half less time than in the order of the names.
        order = order[np.argsort(degree[order], kind="stable")]
    find = _networkit_louvain if library == "networkit" else _networkx_louvain
    # No name holds the ends: a library that has its own copy can free them.
    communities = find(_ends(graph, order), len(order))
    labels = np.arange(graph.num_nodes) + len(order)
    labels[order] = communities
    return np.unique(labels, return_inverse=True)[1]


def _ends(graph: Data, order: list[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ends of the edges by their places in an order, shape ``(2, M)``, ascending."""
    place = np.zeros(graph.num_nodes, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    rows, columns = graph.edge_index.cpu().numpy()
    keys, count = np.empty(len(rows) // 2, dtype=np.int64), 0
    for start in range(0, len(rows), _EDGES_AT_ONCE):  # memory
        one, other = (place[each[start : start + _EDGES_AT_ONCE]] for each in (rows, columns))
        is_first = one < other  # each edge is there in both orientations
        part = one[is_first].astype(np.int64) * len(order) + other[is_first]
        keys[count : count + len(part)] = part
        count += len(part)
    keys.sort()
    ends = np.empty((2, len(keys)), dtype=np.int64)
    np.divmod(keys, max(len(order), 1), out=(ends[0], ends[1]))
    return ends


def library_of(graph: Data) -> Literal["networkx", "networkit"] | None:
    """Choose the library for Louvain: networkit for large graphs if installed, else networkx.

    It is None if networkx would take hours, or networkit much memory: :func:`why_left_out` tells.
    Nodes without an edge do not count.
    """
    num_linked = int((torch.bincount(graph.edge_index[0]) > 0).sum())
    num_edges = graph.num_edges // 2
    is_large = num_linked > MANY_NODES or num_edges > MANY_EDGES
    if is_large and find_spec("networkit") is not None:
        return "networkit" if num_edges <= MOST_EDGES else None
    return "networkx" if num_edges <= MANY_EDGES else None


def why_left_out(num_edges: int) -> str:
    """Say why there are no communities of a graph of so many edges."""
    if num_edges > MOST_EDGES:
        return f"Louvain beyond {MOST_EDGES:,} edges would take most of the memory"
    return f"Louvain beyond {MANY_EDGES:,} edges needs networkit: pip install 'lightning_dpg[fast]'"


def _networkx_louvain(ends: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    linked = nx.empty_graph(num_nodes)
    linked.add_edges_from(ends.T.tolist())
    labels = np.zeros(num_nodes, dtype=np.int64)
    for label, part in enumerate(nx.community.louvain_communities(linked, seed=LOUVAIN_SEED)):
        labels[list(part)] = label
    return labels


def _networkit_louvain(ends: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    import networkit  # an extra

    # The ends ascend: they are the rows of half of the adjacency matrix, from which networkit makes the
    # same graph in half of the time that it needs for a list of edges.
    rows, columns = ends
    starts = np.searchsorted(rows, np.arange(num_nodes + 1))
    half = csr_array(
        (np.ones(len(columns), np.int8), columns, starts), shape=(num_nodes, num_nodes)
    )
    del ends, rows, columns  # memory
    linked = networkit.GraphFromCsr(half, directed=False)
    del half
    threads = networkit.getMaxNumberOfThreads()
    networkit.setSeed(LOUVAIN_SEED, False)
    networkit.setNumberOfThreads(1)  # several threads find other communities in each run
    try:
        partition = networkit.community.PLM(linked).run().getPartition()
    finally:
        networkit.setNumberOfThreads(threads)
    communities = np.array(partition.getVector(), dtype=np.int64)
    del linked, partition
    return_freed_memory()
    return communities


def modularity(graph: Data, communities: NDArray[np.int64]) -> float:
    r"""Return the modularity :math:`\sum_c (m_c / M - (D_c / 2M)^2)`.

    It is nan without an edge or without communities.

    Args:
        graph: Graph of M edges.
        communities: Community c of each node, shape ``(N,)``; it holds :math:`m_c` edges and its
            nodes have :math:`D_c` ends of edges. Empty if they were left out.
    """
    if not communities.size:
        return math.nan
    rows, columns = graph.edge_index.cpu().numpy()
    if not len(rows):
        return math.nan
    inside = 0
    for start in range(0, len(rows), _EDGES_AT_ONCE):  # memory
        part = slice(start, start + _EDGES_AT_ONCE)
        inside += int((communities[rows[part]] == communities[columns[part]]).sum())
    shares = np.bincount(communities, np.bincount(rows, minlength=len(communities))) / len(rows)
    return float(inside / len(rows) - (shares**2).sum())


def normalized_mutual_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the mutual information of two partitions divided by the mean of their entropies.

    It is 1 for equal partitions, also where both have a single part.

    Args:
        first: Part of each node, shape ``(N,)``.
        second: Part of each node in the other partition, shape ``(N,)``.
    """
    both = _entropy(first * (second.max() + 1) + second)
    alone = _entropy(first) + _entropy(second)
    return 2 * (alone - both) / alone if alone else 1.0


def adjusted_mutual_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return mutual information beyond its mean over random partitions, normalized.

    It is 1 for equal partitions, and 0 on average for unrelated partitions of the same part sizes.
    Partitions of many small parts, such as isolated nodes, have much mutual information by chance.

    Args:
        first: Part of each node, shape ``(N,)``.
        second: Part of each node in the other partition, shape ``(N,)``.
    """
    by_chance = _expected_information(first, second)
    alone = (_entropy(first) + _entropy(second)) / 2
    if not alone:
        return 1.0
    beyond = 2 * alone - _entropy(first * (second.max() + 1) + second) - by_chance
    # Partitions into single nodes are equal, and all their information is by chance.
    return beyond / (alone - by_chance) if alone - by_chance > 1e-9 * alone else 1.0


def _expected_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the mean mutual information of random partitions with the same part sizes.

    Pairs of parts of equal sizes count at once: each lonely node of a graph is a part. There may
    be billions of pairs of parts, but few sizes.
    """
    total = len(first)
    sizes = [
        np.unique(np.unique(labels, return_counts=True)[1], return_counts=True)
        for labels in (first, second)
    ]
    log_factorial = gammaln(np.arange(total + 1) + 1.0)
    expected = 0.0
    for one, times in zip(*sizes[0], strict=True):
        for other, repeats in zip(*sizes[1], strict=True):
            common = np.arange(max(1, one + other - total), min(one, other) + 1)
            hypergeometric = (
                log_factorial[[one, other, total - one, total - other]].sum()
                - log_factorial[total]
                - log_factorial[common]
                - log_factorial[one - common]
                - log_factorial[other - common]
                - log_factorial[total - one - other + common]
            )
            information = common / total * np.log(common * (total / one / other))
            expected += float(times * repeats * (information * np.exp(hypergeometric)).sum())
    return expected


def average_f1(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    r"""Return the average F1 of two partitions: 1 for equal ones, near 0 for unrelated small parts.

    Each part c is matched with the most similar part c' of the other partition, where :math:`F_1(c,
    c') = 2 |c \cap c'| / (|c| + |c'|)`. The mean over the parts of either partition, large and
    small alike, is averaged over both, as in Zhang et al., "Community Preserved Social Graph
    Publishing with Node Differential Privacy", 2020.

    Args:
        first: Part of each node, shape ``(N,)``.
        second: Part of each node in the other partition, shape ``(N,)``.
    """
    parts = [np.unique(labels, return_inverse=True)[1] for labels in (first, second)]
    both = coo_array((np.ones(len(first)), tuple(parts))).tocsr().tocoo()
    sizes = [np.bincount(labels) for labels in parts]
    similar = 2 * both.data / (sizes[0][both.row] + sizes[1][both.col])
    matches = coo_array((similar, (both.row, both.col)), shape=both.shape)
    return float(sum(matches.max(axis=axis).toarray().mean() for axis in (0, 1)) / 2)


def _entropy(labels: NDArray[np.int64]) -> float:
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / len(labels)
    return float(-(shares * np.log(shares)).sum())


def return_freed_memory() -> None:
    """Give freed memory back to the system, which allocators keep for later otherwise.

    After a graph of ten million edges was read this is a third of a GiB, and half a GiB after networkit.
    """
    if (
        arrow := sys.modules.get("pyarrow")
    ) is not None:  # optional, and has an allocator of its own
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # the function is of Linux
        ctypes.CDLL(None).malloc_trim(0)
