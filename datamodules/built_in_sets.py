"""Built-in sets of graphs: generated ones, and ego graphs of the folder of real data."""

from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import adjacency, make_graph

# Neighbors of the center of an ego graph
_FEWEST, _MOST = 20, 500


def graph_atlas() -> list[Data]:
    """The 992 connected graphs of four to seven nodes.

    Each is there once and without a label.
    """
    atlas = (graph for graph in nx.graph_atlas_g() if len(graph) >= 4)
    return [from_networkx(graph) for graph in atlas if nx.is_connected(graph)]


def planted_sets() -> list[Data]:
    """100 pairs of graphs: communities (label 1) and uniform.

    Graphs have 12 to 30 nodes; those of label 1 have three communities, the others uniform edges.
    Both graphs of a pair have equal numbers of nodes and of edges: only their structure predicts
    the label.
    """
    graphs = []
    for number in range(100):
        blocks = nx.planted_partition_graph(3, 4 + number % 7, 0.8, 0.1, seed=number)
        uniform = nx.gnm_random_graph(len(blocks), blocks.number_of_edges(), seed=number)
        for label, graph in enumerate((uniform, blocks)):
            graphs.append(from_networkx(graph))
            graphs[-1].y = torch.tensor([label])
    return graphs


def road_sets() -> list[Data]:
    """50 pairs of road maps: many avenues (label 1) and few.

    Maps have 320 to 480 crossings. Avenues run across the blocks of a grid of streets. Both maps of
    a pair have equal numbers of nodes and of edges: four thirds as many edges as nodes, as in the
    set ROADS of the paper, 200 networks of 10,000 crossings in Texas and California. These maps are
    generated, fewer and smaller.

    * Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
      2015.
    """
    graphs = []
    for number in range(50):
        # An avenue begins at every 10th or every 5th crossing.
        for label, spacing in enumerate((10, 5)):
            graphs.append(_roads(16 + number % 9, 20, spacing, 2 * number + label))
            graphs[-1].y = torch.tensor([label])
    return graphs


def ego_sets() -> list[Data]:
    """71 pairs of ego graphs: Facebook (label 1) and Twitter.

    They correspond to the set SOCIAL of the paper, 262 ego graphs of Twitter and Google+ with 1,072
    nodes on average; the folder of real data has no Google+, and these have 36. No node is in two
    graphs, and therefore no edge. Centers of Facebook come in a public random order, each with the
    20 to 500 neighbors that are in no earlier graph. The other graph of a pair is that of the first
    center of Twitter with its number of nodes, or the nearest number.

    * Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
      2015.

    Raises:
        GraphFormatError: If ``$LIGHTNING_DPG_DATA`` does not have the graphs of the two networks.
    """
    facebook, twitter = load_graph("Facebook"), load_graph("ego-Twitter")
    egos = _disjoint_egos(adjacency(facebook))
    similar = _egos_of_sizes(adjacency(twitter), [len(ego.nodes) for ego in egos])
    graphs = []
    for pair in zip(similar, egos, strict=True):
        for label, (whole, ego) in enumerate(zip((twitter, facebook), pair, strict=True)):
            edges = np.stack(ego.links.nonzero(), axis=1)
            names = [whole.node_names[node] for node in ego.nodes]
            graphs.append(make_graph(torch.from_numpy(edges), len(names), names))
            graphs[-1].y = torch.tensor([label])
    return graphs


BUILT_IN_SETS: dict[str, Callable[[], list[Data]]] = {
    "graph_atlas": graph_atlas,
    "planted_sets": planted_sets,
    "road_sets": road_sets,
    "ego_sets": ego_sets,
}

SET_ASSUMPTIONS = {
    "ego_sets": "the nodes of the ego graphs (although found by looking at the private edges of both "
    "networks)"
}
"""Assumptions of a guarantee because of the construction of a set."""


def _roads(rows: int, columns: int, spacing: int, seed: int) -> Data:
    """Draw a connected planar map: part of the streets of a grid and of avenues across blocks."""
    crossings = np.arange(rows * columns).reshape(rows, columns)
    row, column = np.indices((rows - 1, columns - 1))
    crossed = (column - row) % spacing == 0
    links = [
        (crossings[:, :-1], crossings[:, 1:]),
        (crossings[:-1], crossings[1:]),
        (crossings[:-1, :-1][crossed], crossings[1:, 1:][crossed]),
    ]
    ends = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in links])
    weights = 1 - np.random.default_rng(seed).random(len(ends))  # none is 0
    size = crossings.size
    tree = minimum_spanning_tree(csr_array((weights, tuple(ends.T)), shape=(size, size)))
    chosen = np.lexsort((weights, ~np.isin(weights, tree.data)))[: 4 * size // 3]
    return make_graph(torch.from_numpy(ends[chosen]), size)


class _Ego(NamedTuple):
    """Part of an ego graph."""

    nodes: NDArray[np.int64]
    """Nodes, ascending."""
    links: csr_array
    """Adjacency matrix."""


def _disjoint_egos(matrix: csr_array) -> list[_Ego]:
    """Yield ego graphs of centers in random order, without nodes of earlier graphs."""
    free, egos = np.ones(matrix.shape[0], dtype=bool), []
    for center in np.random.default_rng(0).permutation(len(free)):
        if free[center] and _FEWEST <= free[_neighbors(matrix, center)].sum() <= _MOST:
            egos.append(_ego(matrix, free, center))
            free[egos[-1].nodes] = False
    return egos


def _egos_of_sizes(matrix: csr_array, sizes: list[int]) -> list[_Ego]:
    """Yield ego graphs of given or nearly given sizes, without nodes of earlier graphs."""
    free, egos = np.ones(matrix.shape[0], dtype=bool), []
    order = np.random.default_rng(0).permutation(len(free))
    for size in sizes:
        order = order[free[order]]
        misfits = abs(1 + (matrix @ free)[order] - size)
        egos.append(_ego(matrix, free, order[misfits.argmin()]))
        free[egos[-1].nodes] = False
    return egos


def _ego(matrix: csr_array, free: NDArray[np.bool_], center: int) -> _Ego:
    """Return the center and its free neighbors."""
    beside = _neighbors(matrix, center)
    nodes = np.sort(np.append(beside[free[beside]], center)).astype(np.int64)
    return _Ego(nodes, matrix[nodes][:, nodes])


def _neighbors(matrix: csr_array, node: int) -> NDArray[np.int64]:
    return matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]]
