"""Random walks follow the transition probabilities of node2vec, enumerated."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from datamodules.walk_batches import random_walks


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (3.0, 0.5)])
def test_second_steps_have_the_probabilities_of_node2vec(p, q):
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (1, 3), (3, 4)])
    adjacency = csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(5), dtype=float))
    walks = random_walks(adjacency, 60_000, 3, np.random.default_rng(0), p=p, q=q)
    came = walks[(walks[:, 0] == 0) & (walks[:, 1] == 1), 2]
    # From 0 to 1: back to 0 has weight 1/p, the common neighbor 2 has 1, the farther 3 has 1/q.
    weight = np.array([1 / p, 0, 1, 1 / q, 0])
    observed = np.bincount(came, minlength=5) / len(came)
    assert observed == pytest.approx(weight / weight.sum(), abs=4 * 0.5 / len(came) ** 0.5)


def test_walks_start_at_nodes_with_an_edge_and_follow_edges():
    adjacency = csr_array(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=float))
    walks = random_walks(adjacency, 50, 4, np.random.default_rng(0))
    assert set(map(tuple, walks)) == {(0, 2, 0, 2), (2, 0, 2, 0)}
