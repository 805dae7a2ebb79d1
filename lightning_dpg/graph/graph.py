"""Simple undirected graphs as PyTorch Geometric ``Data`` objects.

A graph holds ``edge_index`` of shape ``(2, 2M)`` with both orientations of each of its M undirected
edges, sorted and without self loops, ``num_nodes`` N and ``node_names``, a list of N strings.
"""

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.pair_numbers import are_among, contains, pair_keys, pairs_of_keys

_BLOCK = 2**20  # edges that are numbered at once


def make_graph(edges: Tensor, num_nodes: int, node_names: Sequence[str] | None = None) -> Data:
    """Build a graph from pairs of nodes.

    Args:
        edges: Pairs of shape ``(P, 2)`` in any orientation; repeated pairs are merged and self
            loops dropped.
        num_nodes: Number of nodes N; nodes without an edge are kept.
        node_names: One distinct name per node, the node's number by default.
    """
    if edges.ndim != 2 or edges.size(1) != 2:
        raise ValueError(f"edges must have shape (P, 2), got {tuple(edges.shape)}")
    edges = edges.cpu()
    if edges.dtype != torch.int32:  # memory: numbers of 32 bits stay as they are
        edges = edges.long()
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < num_nodes):
        raise ValueError(
            f"edges must hold node numbers from 0 to {num_nodes - 1}, "
            f"got {int(edges.min())} to {int(edges.max())}"
        )
    names = [str(i) for i in range(num_nodes)] if node_names is None else list(node_names)
    if len(names) != num_nodes:
        raise ValueError(f"node_names must hold {num_nodes} names, got {len(names)}")
    if node_names is not None and len(set(names)) < num_nodes:
        repeated = Counter(names).most_common(1)[0][0]
        raise ValueError(f"node_names must differ, but {repeated!r} occurs twice")
    ends = distinct_edges(edges, num_nodes).numpy().T
    edge_index = np.empty((2, 2 * ends.shape[1]), dtype=np.int64)
    keys = edge_index[1]  # memory: many edges fit once
    orientations = keys.reshape(2, -1)
    np.multiply(ends, num_nodes, out=orientations)
    orientations += ends[::-1]
    keys.sort()
    np.divmod(keys, num_nodes, out=(edge_index[0], edge_index[1]))
    return Data(edge_index=torch.from_numpy(edge_index), num_nodes=num_nodes, node_names=names)


def distinct_edges(pairs: Tensor, num_nodes: int) -> Tensor:
    """Return each undirected edge of pairs ``(P, 2)`` once: rows ``i < j``, ``(M, 2)``, in lexicographic order.

    Loops are left out.
    """
    # A pair is one number: sorting and comparing neighbors is much faster than unique().
    keys = np.empty(len(pairs), dtype=np.int64)
    for start in range(0, len(keys), _BLOCK):
        keys[start : start + _BLOCK] = pair_keys(pairs[start : start + _BLOCK].numpy(), num_nodes)
    keys.sort()
    is_edge = keys % (num_nodes + 1) != 0  # the key of a loop is i (N + 1)
    is_edge[1:] &= keys[1:] != keys[:-1]
    return torch.from_numpy(pairs_of_keys(keys if is_edge.all() else keys[is_edge], num_nodes))


def renumber(edges: Tensor, number: Tensor, *, is_directed: bool) -> None:
    """Give each node i the number ``number[i]``, and sort the edges again, all in place.

    Args:
        edges: Edges of shape ``(M, 2)``, of 64 bits; rows ``i < j`` unless their ends have an order.
        number: Permutation of the N nodes, of 64 bits.
        is_directed: Whether the ends have an order, which is kept.
    """
    rows, numbers, keys = edges.numpy(), number.numpy(), np.empty(len(edges), dtype=np.int64)
    for start in range(0, len(keys), _BLOCK):
        part = slice(start, start + _BLOCK)
        ends = numbers[rows[part]]
        one, other = ends.T
        keys[part] = one * len(numbers) + other if is_directed else pair_keys(ends, len(numbers))
    keys.sort()
    np.divmod(keys, len(numbers), out=(rows[:, 0], rows[:, 1]))


def undirected_edges(graph: Data) -> Tensor:
    """Return each undirected edge once: rows ``i < j``, ``(M, 2)``, in lexicographic order."""
    edge_index: Tensor = graph.edge_index
    edges = edge_index.new_empty(int(torch.count_nonzero(edge_index[0] < edge_index[1])), 2)
    place = 0
    for block in torch.split(edge_index, _BLOCK, dim=1):  # memory: many edges fit once
        ascending = block[:, block[0] < block[1]].T
        edges[place : place + len(ascending)] = ascending
        place += len(ascending)
    return edges


def adjacency(graph: Data) -> csr_array:
    """Return the symmetric 0/1 adjacency matrix of shape ``(N, N)``."""
    rows, columns = graph.edge_index.cpu().numpy()
    # The edges are sorted by row: CSR needs the row ends only.
    row_ends = np.searchsorted(rows, np.arange(graph.num_nodes + 1))
    shape = (graph.num_nodes, graph.num_nodes)
    return csr_array((np.ones(len(columns)), columns, row_ends), shape=shape)


def index_type(count: int) -> type[np.signedinteger[Any]]:
    """Return the type for indices of a sparse matrix of so many entries, a small one if it can be."""
    return np.int32 if count < 2**31 else np.int64


def narrow(graph: Data) -> Data:
    """Return a graph with node numbers of 32 bits, as all of ours fit: half of the memory.

    Measurements read such graphs; :func:`make_graph` makes those of 64 bits again.
    """
    small = copy.copy(graph)
    if graph.num_nodes < 2**31:
        small.edge_index = graph.edge_index.int()
    return small


def component_labels(graph: Data) -> NDArray[np.int32]:
    """Number the connected component of each node, in any order, shape ``(N,)``."""
    matrix = adjacency(graph)
    # Half of the memory, and strong components, which are the same here, need no transpose.
    kind = index_type(matrix.nnz)
    matrix.indices, matrix.indptr = matrix.indices.astype(kind), matrix.indptr.astype(kind)
    labels = np.zeros(graph.num_nodes, dtype=np.int32)
    others = labels == 0
    if len(labels):  # most are with the largest hub, and a search from it takes a third of the time
        hub = np.diff(matrix.indptr).argmax()
        others[breadth_first_order(matrix, hub, return_predecessors=False)] = False
    rest = matrix[others][:, others]
    labels[others] = 1 + connected_components(rest, connection="strong")[1]
    return labels


def are_edges(
    graph: Data, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of some pairs of nodes are linked, shape ``(P,)``, in memory of these pairs."""
    numbers = np.multiply(first, graph.num_nodes, dtype=np.int64)
    numbers += second
    ascending, present = np.sort(numbers), [np.empty(0, dtype=np.int64)]
    for start in range(0, graph.num_edges, _BLOCK):
        part = _edge_numbers(graph, slice(start, start + _BLOCK))
        first, last = ascending.searchsorted(part[0]), ascending.searchsorted(part[-1], "right")
        asked = ascending[first:last]  # fewer than the edges
        present.append(asked[contains(part, asked)])
    return are_among(numbers, np.concatenate(present))


def count_common(graph: Data, other: Data) -> int:
    """Count the edges of two graphs of the same nodes that both have, in blocks of rows."""
    rows, others = graph.edge_index[0].numpy(), other.edge_index[0].numpy()
    common = 0
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, min(start + _BLOCK, len(rows)))
        low = others.searchsorted(rows[part.start])
        high = others.searchsorted(rows[part.stop - 1], side="right")
        of_other = _edge_numbers(other, slice(low, high))
        common += int(contains(of_other, _edge_numbers(graph, part)).sum())
    return common // 2  # both orientations


def _edge_numbers(graph: Data, part: slice) -> NDArray[np.int64]:
    """Return some orientations (i, j) of edges as i N + j, ascending."""
    rows, columns = graph.edge_index[:, part].cpu().numpy()
    numbers = np.multiply(rows, graph.num_nodes, dtype=np.int64)
    numbers += columns
    return numbers


def largest_component(graph: Data) -> Data:
    """Return the subgraph of the largest connected component.

    The nodes keep their names, features ``x``, classes ``y`` and their order. Of several largest
    components the one with the smallest node is taken.
    """
    _, labels = connected_components(adjacency(graph), directed=False)
    nodes = np.flatnonzero(labels == np.bincount(labels).argmax())
    new_number = np.full(graph.num_nodes, -1)
    new_number[nodes] = np.arange(len(nodes))
    edges = new_number[undirected_edges(graph).numpy()]
    edges = edges[edges[:, 0] >= 0]
    all_names = graph.node_names
    names = [all_names[i] for i in nodes]
    component = make_graph(torch.from_numpy(edges), len(nodes), names)
    for name in {"x", "y"} & set(graph.keys()):
        component[name] = graph[name][torch.from_numpy(nodes)]
    if "attribute_names" in graph:
        component.attribute_names = graph.attribute_names
    return component


def places_of(names: Sequence[str], among: Sequence[str] | None) -> Tensor | None:
    """Return the place of each name among the same names in another order, shape ``(N,)``.

    Args:
        names: Names of N nodes.
        among: The others; None stands for no names.

    Returns:
        Their places; None if the others are not the same names.
    """
    number = {name: place for place, name in enumerate(among or ())}
    if number.keys() != set(names):
        return None
    return torch.tensor([number[name] for name in names])
