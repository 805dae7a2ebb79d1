"""Common neighbors of pairs equal those that networkx finds."""

import networkx as nx
import numpy as np

from lightning_dpg.graph import mixing
from lightning_dpg.graph.mixing import CommonNeighbors


def test_counts_equal_networkx(monkeypatch):
    monkeypatch.setattr(mixing, "_LOOKUPS", 50)  # several blocks
    graph = nx.barabasi_albert_graph(60, 5, seed=0)
    graph.remove_edges_from(list(graph.edges(59)))
    pairs = np.array([(i, j) for i in range(60) for j in range(60) if i != j])
    found = CommonNeighbors(np.array(graph.edges), 60).count(pairs)
    assert found.tolist() == [len(set(graph[i]) & set(graph[j])) for i, j in pairs]


def test_a_graph_without_edges_has_none():
    none = np.empty((0, 2), dtype=np.int64)
    assert CommonNeighbors(none, 3).count(none).tolist() == []
    assert CommonNeighbors(none, 3).count(np.array([[0, 1]])).tolist() == [0]
