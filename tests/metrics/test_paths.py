"""Path lengths equal networkx, and estimates lie within their standard error."""

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.formats.io import from_networkx, read_graph
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.paths import characteristic_path_length, distances


def test_exact_over_several_searches():
    # 300 sources need two searches, and the distances of a path graph are known.
    assert characteristic_path_length(from_networkx(nx.path_graph(300))) == pytest.approx(301 / 3)


def test_exact_on_cora(data_root):
    graph = read_graph(data_root / "graphs" / "CORA-ML.edges.gz")
    assert f"{characteristic_path_length(graph):.2f}" == "5.27"


def test_standard_error_is_the_spread_of_estimates():
    # Two components of different diameters and lonely nodes make sources unequal.
    parts = [nx.barabasi_albert_graph(400, 2, seed=0), nx.cycle_graph(100), nx.empty_graph(50)]
    graph = from_networkx(nx.disjoint_union_all(parts))
    _, exact, no_error, *_ = distances(graph)
    estimates = np.array([distances(graph, 64, seed)[1:3] for seed in range(200)])
    spread = np.sqrt(((estimates[:, 0] - exact) ** 2).mean())
    assert no_error == 0
    assert estimates[:, 1].mean() == pytest.approx(spread, rel=0.2)


def test_large_graph_is_estimated_within_its_error():
    # A star of 25,000 leaves: a pair of leaves is 2 apart, a leaf and the center 1.
    leaves = 25_000
    star = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)], dim=1)
    _, mean, error, *_ = distances(make_graph(star, leaves + 1))
    assert mean == pytest.approx(2 - 2 / (leaves + 1), abs=max(4 * error, 1e-3))


def test_refuses_too_few_sources():
    with pytest.raises(ValueError, match="num_sources must be at least 64, got 3"):
        distances(from_networkx(nx.cycle_graph(100)), 3)


def test_blocks_of_neighbors_have_no_effect(monkeypatch):
    # Hubs have more neighbors than a block, and nodes without an edge come first.
    graph = nx.disjoint_union(nx.empty_graph(3), nx.barabasi_albert_graph(150, 2, seed=0))
    whole = distances(from_networkx(graph))
    monkeypatch.setattr(f"{distances.__module__}._AT_ONCE", 7)
    np.testing.assert_array_equal(distances(from_networkx(graph)).counts, whole.counts)
    assert whole.mean == pytest.approx(
        nx.average_shortest_path_length(graph.subgraph(range(3, 153)))
    )
