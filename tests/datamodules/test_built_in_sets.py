"""Built-in sets have their sizes and labels, and ego graphs share no node or edge."""

import gzip

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.datamodules.built_in_sets import (
    SET_ASSUMPTIONS,
    ego_sets,
    graph_atlas,
    planted_sets,
    road_sets,
)
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.functional import triangles


def same(first, second):
    return all(
        torch.equal(one.edge_index, other.edge_index)
        and one.node_names == other.node_names
        and torch.equal(one.y, other.y)
        for one, other in zip(first, second, strict=True)
    )


def test_atlas_holds_each_connected_graph_once():
    graphs = graph_atlas()
    sizes = [graph.num_nodes for graph in graphs]
    # Numbers of connected graphs of four to seven nodes: sequence A001349 of the OEIS.
    assert [sizes.count(size) for size in range(4, 8)] == [6, 21, 112, 853]
    assert len(sizes) == 992


@pytest.mark.parametrize(("make", "pairs"), [(planted_sets, 100), (road_sets, 50)])
def test_generated_pairs_differ_in_structure_only(make, pairs):
    graphs = make()
    assert [int(graph.y) for graph in graphs] == [0, 1] * pairs
    for first, second in zip(graphs[::2], graphs[1::2], strict=True):
        assert first.num_nodes == second.num_nodes and first.num_edges == second.num_edges
    total = [sum(triangles(graph) for graph in graphs[label::2]) for label in (0, 1)]
    assert total[1] > 1.3 * total[0]
    assert same(graphs, make())


def test_roads_are_connected_planar_maps():
    for graph in road_sets()[::7]:
        crossings = nx.Graph(undirected_edges(graph).tolist())
        assert len(crossings) == graph.num_nodes and nx.is_connected(crossings)
        assert nx.check_planarity(crossings)[0]
        assert len(crossings) in range(320, 481, 20)
        # The paper's networks: 13,284 edges on 10,000 crossings
        assert crossings.size() / len(crossings) == pytest.approx(1.3284, abs=0.01)


@pytest.fixture
def networks(monkeypatch, tmp_path):
    """Two networks of small worlds under the names of the real ones."""
    (tmp_path / "graphs").mkdir()
    graphs = {}
    for name, size, seed in (("Facebook", 150, 0), ("ego-Twitter", 600, 1)):
        graphs[name] = nx.connected_watts_strogatz_graph(size, 30, 0.3, seed=seed)
        lines = "".join(f"{u} {v}\n" for u, v in graphs[name].edges)
        path = tmp_path / "graphs" / f"{name}.edges.gz"
        path.write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    return graphs["ego-Twitter"], graphs["Facebook"]


def test_ego_graphs_share_no_node_and_keep_the_edges_between_theirs(networks):
    graphs = ego_sets()
    assert len(graphs) >= 4
    for label, network in enumerate(networks):
        seen = set()
        for graph in graphs[label::2]:
            assert graph.y.tolist() == [label]
            nodes = [int(name) for name in graph.node_names]
            assert seen.isdisjoint(nodes)
            seen |= set(nodes)
            whole = network.subgraph(nodes)
            found = {(nodes[u], nodes[v]) for u, v in undirected_edges(graph).tolist()}
            assert found == {(min(edge), max(edge)) for edge in whole.edges}
            assert max(dict(whole.degree).values()) == graph.num_nodes - 1  # the center
    assert all(graph.num_nodes > 20 for graph in graphs[1::2])
    assert same(graphs, ego_sets())


def test_ego_sets_say_what_they_take_for_public(networks):
    data = GraphSetDataModule("ego_sets")
    data.setup("fit")
    assert SET_ASSUMPTIONS["ego_sets"] in data.assumptions
    other = GraphSetDataModule("road_sets")
    other.setup("fit")
    assert SET_ASSUMPTIONS["ego_sets"] not in other.assumptions


def test_ego_sets_need_the_real_data(monkeypatch):
    monkeypatch.delenv("LIGHTNING_DPG_DATA", raising=False)
    with pytest.raises(GraphFormatError, match="LIGHTNING_DPG_DATA is not set"):
        GraphSetDataModule("ego_sets").setup("fit")


@pytest.mark.slow
def test_real_ego_graphs_have_the_sizes_of_each_other(data_root):
    graphs = ego_sets()
    assert len(graphs) == 142
    sizes = np.array([graph.num_nodes for graph in graphs]).reshape(-1, 2)
    assert (sizes[:, 0] == sizes[:, 1]).all()
    assert sizes.min() == 21 and sizes.max() <= 501
    for label in (0, 1):
        names = [name for graph in graphs[label::2] for name in graph.node_names]
        assert len(names) == len(set(names)) == sizes[:, label].sum()
