"""Graphlets that contain an edge, and estimates from sampled edges.

All connected node sets with a given edge are listed, each once. A set grows by one of its
candidates; the larger set inherits the later candidates and adds candidates of its own.

* Wernicke, "Efficient detection of network motifs", 2006, lists the sets of a whole graph so.
* Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy", 2015,
  draw edges.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from lightning_dpg.metrics.motifs import motif_classes
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, adjacency_matrix, blocks

_SETS = 1_000_000  # grown at a time, about


class _Sets(NamedTuple):
    """Connected node sets and their candidates for growth."""

    edge: NDArray[np.int64]
    """Number of the edge from which a set was grown, shape ``(S,)``."""
    nodes: NDArray[np.int64]
    """Members in the order in which they came, shape ``(S, size)``."""
    code: NDArray[np.int64]
    """Bits of the pairs of members that are linked: (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    owner: NDArray[np.int64]
    """Set of each candidate, ascending, shape ``(C,)``."""
    candidate: NDArray[np.int64]
    """Node that may be added, shape ``(C,)``."""
    links: NDArray[np.int64]
    """Bits of the members that a candidate is linked to, shape ``(C,)``."""


def edge_graphlet_counts(
    edges: Tensor, num_nodes: int, size: int, chosen: Tensor | None = None
) -> Tensor:
    """Count the connected induced subgraphs that contain an edge, by type: the paper's Z.

    Args:
        edges: Rows ``i < j`` of shape ``(M, 2)``.
        num_nodes: Number of nodes N.
        size: Number of nodes of the subgraphs: 3, 4 or 5.
        chosen: Numbers of the wanted edges, shape ``(E,)``; all by default.

    Returns:
        Whole numbers of shape ``(E, F)``, types as in ``GRAPHLETS[size]`` (private).
    """
    types = motif_classes(size).of_code  # motifs and graphlets have the same order
    matrix = adjacency_matrix(edges, num_nodes)
    pairs = (edges if chosen is None else edges[chosen]).cpu().numpy()
    degree = np.diff(matrix.indptr)
    # A bound on the sets of size - 1 nodes that an edge has
    weights = degree[pairs].sum(axis=1).astype(np.int64) ** (size - 2)
    num_types = len(GRAPHLETS[size])
    counts = np.zeros((len(pairs), num_types), dtype=np.int64)
    for block in blocks(weights, _SETS):
        sets = _start(matrix, pairs[block])
        for _ in range(size - 3):
            sets = _grow(matrix, sets)
        shift = (size - 1) * (size - 2) // 2
        kinds = types[sets.code[sets.owner] | (sets.links << shift)]
        cells = sets.edge[sets.owner] * num_types + kinds
        shape = (block.stop - block.start, num_types)
        counts[block] = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return torch.from_numpy(counts)


def sampled_graphlets(
    edges: Tensor, graph_of: Tensor, num_graphs: int, size: int, draws: Tensor
) -> Tensor:
    """Sum the graphlets that contain an edge over edges drawn with replacement.

    Args:
        edges: Edges of all graphs, rows ``i < j`` of shape ``(M, 2)``.
        graph_of: Graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        size: Number of nodes of the graphlets: 3, 4 or 5.
        draws: Slots drawn from each graph, shape ``(G, S)``. Its edges have the slots 0, 1, ... in
            the order in which they come, and a slot without an edge adds nothing. Where privacy
            rests on the draws they must be secret, and made from as many slots as are public.

    Returns:
        Whole numbers of shape ``(G, F)``, types as in ``GRAPHLETS[size]`` (private);
        :func:`rescale` makes estimates of them.
    """
    owner = graph_of[edges[:, 0]]
    sequence = owner.argsort(stable=True)
    num_edges = torch.bincount(owner, minlength=num_graphs)[:, None]
    places = (num_edges.cumsum(0) - num_edges + draws)[draws < num_edges]
    times = torch.bincount(sequence[places], minlength=len(edges))
    chosen = times.nonzero().flatten()
    counts = edge_graphlet_counts(edges, len(graph_of), size, chosen) * times[chosen, None]
    total = torch.zeros(num_graphs, counts.shape[1], dtype=torch.long)
    return total.index_add_(0, owner[chosen], counts)


def rescale(sums: Tensor, num_slots: Tensor, size: int, num_samples: int) -> Tensor:
    r"""Multiply sums by :math:`\frac{m}{s |m_H|}`, which gives unbiased estimates of the counts.

    Args:
        sums: Result of :func:`sampled_graphlets`, with or without noise, shape ``(G, F)``.
        num_slots: Number m of slots of each graph, shape ``(G,)``. In the paper it is the number of
            edges, which is private.
        size: Number of nodes of the graphlets, whose numbers of edges are the :math:`m_H`.
        num_samples: Number of draws s.
    """
    links = [len(edges.split()) for edges in GRAPHLETS[size].values()]
    return sums * num_slots[:, None] / (num_samples * torch.tensor(links, dtype=torch.double))


def _start(matrix: csr_array, pairs: NDArray[np.int64]) -> _Sets:
    """Start a set from the ends of each edge, ``(E, 2)``; its candidates are their neighbors."""
    sides = [matrix[nodes] for nodes in pairs.T]
    beside = (sides[0] + 2 * sides[1]).tocoo()
    fresh = (beside.col != pairs[beside.row, 0]) & (beside.col != pairs[beside.row, 1])
    return _Sets(
        np.arange(len(pairs)),
        pairs,
        np.ones(len(pairs), dtype=np.int64),
        beside.row[fresh].astype(np.int64),
        beside.col[fresh].astype(np.int64),
        beside.data[fresh],
    )


def _grow(matrix: csr_array, sets: _Sets) -> _Sets:
    """Add every candidate to its set."""
    size = sets.nodes.shape[1]
    owner, added, links = sets.owner, sets.candidate, sets.links
    nodes = np.column_stack([sets.nodes[owner], added])
    code = sets.code[owner] | (links << (size * (size - 1) // 2))
    # Later candidates of the same set
    ends = np.cumsum(np.bincount(owner, minlength=len(sets.nodes)))
    places = np.arange(len(owner))
    inherited, later = _ranges(places + 1, ends[owner])
    new_links = _linked(matrix, added[inherited], sets.candidate[later]) << size
    new_links |= sets.links[later]
    # Neighbors of the added node that are neither members nor neighbors of any
    own, entry = _ranges(matrix.indptr[added], matrix.indptr[added + 1])
    beyond = matrix.indices[entry].astype(np.int64)
    for place in range(size):
        member = nodes[own, place]
        fresh = (beyond != member) & (_linked(matrix, member, beyond) == 0)
        own, beyond = own[fresh], beyond[fresh]
    new_owner = np.concatenate([inherited, own])
    sequence = np.argsort(new_owner, kind="stable")
    return _Sets(
        sets.edge[owner],
        nodes,
        code,
        new_owner[sequence],
        np.concatenate([sets.candidate[later], beyond])[sequence],
        np.concatenate([new_links, np.full(len(own), 1 << size)])[sequence],
    )


def _linked(
    matrix: csr_array, nodes: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return matrix entries, shape ``(P,)``; SciPy changes the type if there are none."""
    return np.asarray(matrix[nodes, others]) if len(nodes) else np.empty(0, dtype=np.int64)


def _ranges(
    starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate ranges; return the number of the range of each value, and the values."""
    lengths = stops - starts
    number = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    return number, np.arange(len(number)) + (starts - before)[number]
