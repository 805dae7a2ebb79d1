"""Communities of a graph, and agreement of two partitions into communities."""

import math
from importlib.util import find_spec
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from sklearn.metrics import adjusted_mutual_info_score
from torch_geometric.data import Data

from lightning_dpg.graph.graph import undirected_edges

LOUVAIN_SEED = 0

MANY_NODES = 20_000
"""Largest number of nodes for networkx' Louvain method, which takes minutes beyond it."""


def louvain(graph: Data) -> NDArray[np.int64]:
    """Find the community of each node by the Louvain method, with a fixed seed: shape ``(N,)``.

    Args:
        graph: The graph. :func:`library_for` chooses the implementation.
    """
    if library_for(graph.num_nodes) == "networkit":
        return _networkit_louvain(graph)
    linked = nx.empty_graph(graph.num_nodes)
    linked.add_edges_from(undirected_edges(graph).tolist())
    labels = np.zeros(graph.num_nodes, dtype=np.int64)
    for label, part in enumerate(nx.community.louvain_communities(linked, seed=LOUVAIN_SEED)):
        labels[list(part)] = label
    return labels


def library_for(num_nodes: int) -> Literal["networkx", "networkit"]:
    """Choose the library for Louvain: networkit for large graphs if installed, else networkx."""
    is_large = num_nodes > MANY_NODES
    return "networkit" if is_large and find_spec("networkit") is not None else "networkx"


def _networkit_louvain(graph: Data) -> NDArray[np.int64]:
    import networkit  # an extra

    ends = np.ascontiguousarray(undirected_edges(graph).numpy().T)
    linked = networkit.GraphFromCoo((ends[0], ends[1]), n=graph.num_nodes)
    threads = networkit.getMaxNumberOfThreads()
    networkit.setSeed(LOUVAIN_SEED, False)
    networkit.setNumberOfThreads(1)  # several threads find other communities in each run
    try:
        found = networkit.community.PLM(linked).run().getPartition()
    finally:
        networkit.setNumberOfThreads(threads)
    return np.unique(found.getVector(), return_inverse=True)[1]


def modularity(graph: Data, communities: NDArray[np.int64]) -> float:
    r"""Return the modularity :math:`\sum_c (m_c / M - (D_c / 2M)^2)`; nan without an edge.

    Args:
        graph: Graph of M edges.
        communities: Community c of each node, shape ``(N,)``; it holds :math:`m_c` edges and its
            nodes have :math:`D_c` ends of edges.
    """
    ends = communities[graph.edge_index.cpu().numpy()]
    if not ends.size:
        return math.nan
    shares = np.bincount(ends[0]) / ends.shape[1]
    return float((ends[0] == ends[1]).mean() - (shares**2).sum())


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
    return float(adjusted_mutual_info_score(first, second))


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
