"""Communities of a graph, and how far two divisions into communities agree."""

import math

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, dia_array
from sklearn.metrics import adjusted_mutual_info_score
from torch_geometric.data import Data

from lightning_dpg.graph.graph import adjacency, undirected_edges

LOUVAIN_SEED = 0

ONE_BY_ONE_UP_TO = 20_000
"""Nodes up to which Louvain moves them one by one, which takes minutes for more."""

_MOST_SWEEPS = 100
_LEAST_GROWTH = 1e-6  # of the modularity in a sweep


def louvain(graph: Data) -> NDArray[np.int64]:
    """Community of each node by the Louvain method under a fixed seed, shape ``(N,)``.

    Up to :data:`ONE_BY_ONE_UP_TO` nodes by networkx, beyond by :func:`louvain_in_parallel`.
    """
    if graph.num_nodes > ONE_BY_ONE_UP_TO:
        return louvain_in_parallel(graph)
    linked = nx.empty_graph(graph.num_nodes)
    linked.add_edges_from(undirected_edges(graph).tolist())
    labels = np.zeros(graph.num_nodes, dtype=np.int64)
    for label, nodes in enumerate(nx.community.louvain_communities(linked, seed=LOUVAIN_SEED)):
        labels[list(nodes)] = label
    return labels


def louvain_in_parallel(graph: Data) -> NDArray[np.int64]:
    """Community of each node, shape ``(N,)``, by Louvain's method with moves of many nodes at a time.

    Each sweep moves a random half of the nodes that gain modularity by a move, each to the community
    where it gains most, and the sweeps end when modularity does not grow.

    * Blondel et al., "Fast unfolding of communities in large networks", 2008.
    """
    rng = np.random.default_rng(LOUVAIN_SEED)
    labels = np.arange(graph.num_nodes)
    weights = csr_array(adjacency(graph), dtype=np.float64)
    while weights.nnz:
        parts = _parts_by_moves(weights, rng)
        labels = parts[labels]
        count = int(parts.max()) + 1
        if count == weights.shape[0]:
            break
        members = _members(parts, count)
        weights = csr_array(members.T @ weights @ members)
    return labels


def _parts_by_moves(weights: csr_array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Part of each node after moves between parts that begin as single nodes.

    Args:
        weights: Symmetric weights of the links, those of a node to itself twice.
        rng: Generator that chooses who moves.
    """
    count = weights.shape[0]
    strength = weights.sum(axis=1)
    others = weights - dia_array((weights.diagonal()[None], [0]), shape=weights.shape)
    own, best, highest = np.arange(count), np.arange(count), -math.inf
    for _ in range(_MOST_SWEEPS):
        members = _members(own, count)
        # A node's own part is a candidate even where no link leads to another node of it.
        links = coo_array(others @ members + np.finfo(np.float64).tiny * members)
        node, part = links.row, links.col
        at_home = part == own[node]
        total = np.bincount(own, strength, minlength=count)
        inside = links.data[at_home].sum() + weights.diagonal().sum()
        value = inside / strength.sum() - ((total / strength.sum()) ** 2).sum()
        if value <= highest + _LEAST_GROWTH:
            break
        best, highest = own, value
        rest = total[part] - strength[node] * at_home
        gain = links.data - strength[node] * rest / strength.sum()
        order = np.lexsort((gain, node))
        last = order[np.flatnonzero(np.r_[np.diff(node[order]) > 0, True])]  # best of each node
        stay = np.empty(count)
        stay[node[at_home]] = gain[at_home]
        better = last[gain[last] > stay[node[last]] + 1e-12]
        moving = better[rng.random(len(better)) < 0.5]
        own = own.copy()
        own[node[moving]] = part[moving]
    return np.unique(best, return_inverse=True)[1]


def _members(parts: NDArray[np.int64], count: int) -> csr_array:
    """One 1 in the row of each node, in the column of its part."""
    shape = (len(parts), count)
    return csr_array((np.ones(len(parts)), parts, np.arange(len(parts) + 1)), shape=shape)


def modularity(graph: Data, communities: NDArray[np.int64]) -> float:
    r"""Modularity :math:`\sum_c (m_c / M - (D_c / 2M)^2)` of a partition; nan without an edge.

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
    """Mutual information of two partitions per mean of their entropies.

    It is 1 for equal partitions, also where both have a single part.

    Args:
        first: Part of each node, shape ``(N,)``.
        second: Part of each node in the other partition, shape ``(N,)``.
    """
    both = _entropy(first * (second.max() + 1) + second)
    alone = _entropy(first) + _entropy(second)
    return 2 * (alone - both) / alone if alone else 1.0


def adjusted_mutual_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Normalized mutual information beyond that of random partitions with parts of these sizes.

    It is 1 for equal partitions, and 0 on average for unrelated ones. Partitions of many small
    parts, such as isolated nodes, have much mutual information by chance.

    Args:
        first: Part of each node, shape ``(N,)``.
        second: Part of each node in the other partition, shape ``(N,)``.
    """
    return float(adjusted_mutual_info_score(first, second))


def average_f1(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    r"""Average F1 of two partitions: 1 for equal ones, little for unrelated ones of many parts.

    Each part c is matched with the part c' of the other partition that is nearest to it, where
    :math:`F_1(c, c') = 2 |c \cap c'| / (|c| + |c'|)`. The mean over the parts of either partition,
    large and small alike, is averaged over both, as Zhang et al., "Community Preserved Social Graph
    Publishing with Node Differential Privacy", 2020, do.

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
