"""Graph kernels without privacy: shortest paths and Weisfeiler-Lehman.

Both are inner products of histograms, normalized to 1 for a graph with itself. On request they
distinguish nodes by the labels among the columns of ``x``.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack
from scipy.sparse.csgraph import dijkstra
from sklearn.preprocessing import normalize
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.kernel_svm import check_number_of_graphs

# Number of nodes whose paths are measured at a time: 24 MB in a graph of 6,000 nodes.
_SOURCES = 512


def shortest_path_kernel(graphs: Sequence[Data], *, labelled: bool = False) -> NDArray[np.float64]:
    """Compute the kernel of shortest path lengths over all pairs of connected nodes.

    Args:
        graphs: G graphs; one without an edge is similar to none, also not to itself.
        labelled: Whether paths must also agree in the labels of their ends, from start to end.

    Returns:
        Kernel of shape ``(G, G)``.

    Raises:
        Refusal: If there are too many graphs, or ``labelled`` is set and they have no labels.

    References:
        Borgwardt, Kriegel, "Shortest-path kernels on graphs", 2005, section 4.
    """
    check_number_of_graphs(len(graphs))
    sizes = [graph.num_nodes for graph in graphs]
    colors = node_labels(graphs) if labelled else np.zeros(sum(sizes), dtype=np.int64)
    count = int(colors.max(initial=0)) + 1
    rows = [
        _path_histogram(graph, part, count)
        for graph, part in zip(graphs, np.split(colors, np.cumsum(sizes)[:-1]), strict=True)
    ]
    width = max(1, *(row.shape[1] for row in rows))
    for row in rows:
        row.resize(1, width)
    return _cosines(vstack(rows, format="csr"))


def weisfeiler_lehman_kernel(
    graphs: Sequence[Data], iterations: int = 4, *, labelled: bool = False
) -> NDArray[np.float64]:
    """Compute the kernel of node colors, refined repeatedly by the colors of neighbors.

    Args:
        graphs: G graphs of one node or more each.
        iterations: Number of refinements h; the histograms of all h + 1 colorings count.
        labelled: Whether nodes start with their labels as colors, instead of their degrees.

    Returns:
        Kernel of shape ``(G, G)``.

    Raises:
        Refusal: If there are too many graphs, or ``labelled`` is set and they have no labels.

    References:
        Shervashidze et al., "Weisfeiler-Lehman Graph Kernels", 2011, definition 4.
    """
    check_number_of_graphs(len(graphs))
    sizes = np.array([graph.num_nodes for graph in graphs])
    starts = np.cumsum(sizes) - sizes
    ends = [graph.edge_index + start for graph, start in zip(graphs, starts.tolist(), strict=True)]
    union = adjacency(Data(edge_index=torch.cat(ends, dim=1), num_nodes=int(sizes.sum())))
    colors = node_labels(graphs) if labelled else np.diff(union.indptr).astype(np.int64)
    graph_of = np.repeat(np.arange(len(graphs)), sizes)
    histograms = [_color_histogram(colors, graph_of, len(graphs))]
    for _ in range(iterations):
        colors = _refined(colors, union)
        histograms.append(_color_histogram(colors, graph_of, len(graphs)))
    return _cosines(hstack(histograms, format="csr"))


def node_labels(graphs: Sequence[Data]) -> NDArray[np.int64]:
    """Return the label of each node, of the first graph first, shape ``(N,)``: numbers from 0.

    The labels are the columns of ``x`` that hold zeros and ones only; nodes with equal columns have
    the same label. Other columns are attributes, which these kernels ignore.

    Raises:
        Refusal: If a graph has no ``x``, or none of its columns is a label.
    """
    if any(graph.x is None for graph in graphs):
        raise Refusal("the graphs have no node features x; set labelled=False")
    x = torch.cat([graph.x for graph in graphs]).numpy()
    x = x[:, ((x == 0) | (x == 1)).all(axis=0)]
    if not x.shape[1]:
        raise Refusal("no column of the node features x is a label; set labelled=False")
    # Rows of single bits are sorted ten times faster than rows of numbers.
    return np.unique(np.packbits(x == 1, axis=1), axis=0, return_inverse=True)[1].ravel()


def _path_histogram(graph: Data, labels: NDArray[np.int64], num_labels: int) -> csr_array:
    """Count ordered node pairs by distance and labels of both ends, in one row."""
    matrix = adjacency(graph)
    counts = np.zeros(0, dtype=np.int64)
    for sources in np.array_split(np.arange(graph.num_nodes), -(-graph.num_nodes // _SOURCES)):
        lengths = dijkstra(matrix, unweighted=True, indices=sources)
        first, second = np.nonzero(np.isfinite(lengths) & (lengths > 0))
        ends = labels[sources[first]] * num_labels + labels[second]
        # Lengths come before labels: longer paths only add columns at the end.
        cells = lengths[first, second].astype(np.int64) * num_labels**2 + ends
        more = np.bincount(cells)
        longer, shorter = (more, counts) if len(more) > len(counts) else (counts, more)
        longer[: len(shorter)] += shorter
        counts = longer
    return csr_array(counts[None].astype(np.float64))


def _refined(colors: NDArray[np.int64], union: csr_array) -> NDArray[np.int64]:
    """Give equal colors to nodes of equal color whose neighbors have equal multisets of colors.

    A multiset of colors is identified by the sum of random 64-bit numbers, one per color. Among a
    million nodes two multisets have the same sum with a probability below one in ten million, while
    hashing them one by one, as ``torch_geometric.nn.WLConv`` does, takes a hundred times as long.
    """
    numbers = np.random.default_rng(0).integers(2**64, size=(2, colors.max() + 1), dtype=np.uint64)
    neighbors = csr_array((np.ones(union.nnz, np.uint64), union.indices, union.indptr), union.shape)
    sums = neighbors @ numbers[0][colors] + numbers[1][colors]
    return np.unique(sums, return_inverse=True)[1]


def _color_histogram(
    colors: NDArray[np.int64], graph_of: NDArray[np.int64], num_graphs: int
) -> csr_array:
    shape = (num_graphs, int(colors.max()) + 1)
    return csr_array((np.ones(len(colors)), (graph_of, colors)), shape=shape)


def _cosines(histograms: csr_array) -> NDArray[np.float64]:
    """Return cosines of the angles between rows; an empty row has cosine 0 with all."""
    rows = normalize(histograms)
    return (rows @ rows.T).toarray()
