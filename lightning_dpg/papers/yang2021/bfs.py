"""Graphs as sequences: nodes in breadth-first order, each with its links to earlier nodes.

A set of graphs is one union: E edges ``i < j`` of shape ``(E, 2)`` among N nodes, those of the
first graph first, and ``sizes`` of shape ``(G,)``, the number of nodes of each graph.
"""

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor


def bfs_positions(edges: Tensor, sizes: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a random breadth-first order; return each node's position in its graph, ``(N,)``.

    Starts and neighbors are visited in random order, as in You et al., "GraphRNN", 2018, where
    graphs are connected. Here components follow one another, the largest first. Nodes without an
    edge end the sequence.

    Args:
        edges: Edges of the union, shape ``(E, 2)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        generator: Source of the order.
    """
    total = int(sizes.sum())
    shuffled = torch.randperm(total, generator=generator).numpy()
    ends = shuffled[edges.numpy()].reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), ends.T), shape=(total, total))
    number, component = connected_components(links, directed=False)
    _, starts = np.unique(component, return_index=True)
    # An extra node is linked to each start. Within a component, a search from the extra node visits
    # nodes in the order of a search from the start.
    fan = np.stack([np.full(number, total), starts])
    joined = np.concatenate([ends, ends[:, ::-1], fan.T])
    search = coo_array((np.ones(len(joined)), joined.T), shape=(total + 1, total + 1)).tocsr()
    search.sort_indices()
    order = breadth_first_order(search, total, return_predecessors=False)[1:]
    graph = np.empty(total, dtype=np.int64)
    graph[shuffled] = np.repeat(np.arange(len(sizes)), sizes.numpy())
    members = np.bincount(component)
    keys = (component[order], -members[component[order]], graph[order])
    order = order[np.lexsort(keys)]
    first = np.concatenate([[0], sizes.numpy().cumsum()[:-1]])
    positions = np.empty(total, dtype=np.int64)
    positions[order] = np.arange(total) - first[graph[order]]
    return torch.from_numpy(positions[shuffled])


def bandwidths(edges: Tensor, sizes: Tensor, positions: Tensor) -> Tensor:
    """Return the longest reach back of a link in each graph, shape ``(G,)``; 0 without an edge."""
    reach = (positions[edges[:, 0]] - positions[edges[:, 1]]).abs()
    graph_of = torch.repeat_interleave(sizes)
    widest = torch.zeros(len(sizes), dtype=torch.long)
    return widest.scatter_reduce(0, graph_of[edges[:, 0]], reach, "amax")


def adjacency_rows(edges: Tensor, sizes: Tensor, positions: Tensor, look_back: int) -> Tensor:
    """Return each node's links to earlier nodes as zeros and ones of shape ``(N, W)``.

    The rows follow the graphs, and in each graph the positions. Column k is the link to the node k
    + 1 places back. The first row of a graph can have no link; it is all ones, the sign of a start.

    Args:
        edges: Edges of the union, shape ``(E, 2)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        positions: Position of each node in its graph, shape ``(N,)``.
        look_back: Number W of places to look back; links that reach farther are left out.
    """
    first = sizes.cumsum(0) - sizes
    rows = torch.zeros(int(sizes.sum()), look_back)
    rows[first] = 1
    low, high = positions[edges].sort(1).values.T
    is_near = high - low <= look_back
    start = first[torch.repeat_interleave(sizes)[edges[:, 0]]]
    rows[(start + high)[is_near], (high - low - 1)[is_near]] = 1
    return rows
