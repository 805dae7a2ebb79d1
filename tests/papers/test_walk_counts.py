"""Walk counts equal powers of the adjacency matrix."""

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.papers.dubhashi2015.graphlets import walk_counts
from tests.papers.test_graphlets import union_of


def test_equals_powers_of_each_matrix():
    graphs = [nx.karate_club_graph(), nx.empty_graph(3), nx.path_graph(6), nx.star_graph(9)]
    counts = walk_counts(*union_of(graphs), 6)
    assert counts.dtype == torch.long
    for row, graph in zip(counts, graphs, strict=True):
        matrix = nx.to_numpy_array(graph, weight=None).astype(int)
        powers = [np.linalg.matrix_power(matrix, length).sum() for length in range(1, 7)]
        assert row.tolist() == powers


def test_long_walks_are_exact_up_to_the_limit():
    """Walks in a clique of 9 nodes: 9 * 8^l, beyond what floats hold."""
    clique = union_of([nx.complete_graph(9)])
    assert walk_counts(*clique, 19)[0].tolist() == [9 * 8**length for length in range(1, 20)]
    with pytest.raises(ValueError, match="walks of length 20"):
        walk_counts(*clique, 20)
