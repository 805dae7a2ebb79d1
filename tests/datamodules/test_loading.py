"""Built-in graphs, objects and files load, and unknown names suggest the nearest."""

import networkx as nx
import pytest
import torch
from torch_geometric.datasets import KarateClub

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.datamodules.loading import BUILT_IN, known_graphs, load_graph
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.graph.graph import adjacency, make_graph, undirected_edges


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_edges", "node"),
    [
        ("les_miserables", 77, 254, "Valjean"),
        ("karate", 34, 78, "33"),
        ("davis", 32, 89, "Evelyn Jefferson"),
    ],
)
def test_built_in(name, num_nodes, num_edges, node):
    graph = load_graph(name)
    assert graph.num_nodes == num_nodes and node in graph.node_names
    assert len(undirected_edges(graph)) == num_edges


def test_planted_partition_has_its_blocks_and_is_always_the_same():
    graph = load_graph("planted_partition")
    assert torch.equal(graph.edge_index, load_graph("planted_partition").edge_index)
    assert graph.num_nodes == 200
    blocks = undirected_edges(graph) // 50
    within = int((blocks[:, 0] == blocks[:, 1]).sum())
    # Pairs times probability, within four standard deviations.
    assert within == pytest.approx(4 * 1225 * 0.15, abs=4 * (4 * 1225 * 0.15 * 0.85) ** 0.5)
    assert len(blocks) - within == pytest.approx(6 * 2500 * 0.01, abs=4 * 150**0.5)


def test_planted_words_follow_the_communities_and_not_the_edges():
    data = EdgeListDataModule("planted_words", nodes=Nodes(attributes="from_graph"))
    assert torch.equal(data.graph.edge_index, load_graph("planted_partition").edge_index)
    assert data.graph.attribute_names == [f"word {k:02}" for k in range(32)]
    rates = data.graph.x.view(4, 50, 4, 8).mean(dim=(1, 3))  # of communities and groups of words
    expected = torch.full((4, 4), 0.1) + 0.3 * torch.eye(4)
    # 400 coins each: four standard deviations of the more variable ones.
    torch.testing.assert_close(rates, expected, atol=4 * (0.4 * 0.6 / 400) ** 0.5, rtol=0)


def test_objects():
    karate = load_graph("karate")
    assert torch.equal(load_graph(nx.karate_club_graph()).edge_index, karate.edge_index)
    assert torch.equal(load_graph(KarateClub()[0]).edge_index, karate.edge_index)
    assert torch.equal(load_graph(karate).edge_index, karate.edge_index)


def test_data_folder_before_files_and_its_isolated_nodes(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "toy.edges.gz").write_text("0 1\n1 3\n")
    (tmp_path / "toy.txt").write_text("5 6\n")
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load_graph("toy").node_names == list("0123")
    assert load_graph("./toy.txt").node_names == ["5", "6"]
    monkeypatch.delenv("LIGHTNING_DPG_DATA")
    assert load_graph("toy.txt").node_names == ["5", "6"]
    assert known_graphs() == [*BUILT_IN]


def test_unknown_name_suggests_the_nearest(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "CORA-ML.edges.gz").write_text("0 1\n")
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    for name, nearest in [("les_misérables", "les_miserables"), ("cora_ml", "CORA-ML")]:
        with pytest.raises(GraphFormatError) as error:
            load_graph(name)
        message = str(error.value)
        assert f"did you mean {nearest}" in message and str(tmp_path) in message
        assert len(message.splitlines()) <= 5
    monkeypatch.delenv("LIGHTNING_DPG_DATA")
    with pytest.raises(GraphFormatError, match="LIGHTNING_DPG_DATA is not set"):
        load_graph("cora_ml")
    with pytest.raises(GraphFormatError, match="no such file"):
        load_graph("folder/cora_ml.edges")


def test_real_data(data_root):
    names = known_graphs()
    assert {"karate", "CORA-ML", "cora_ml"} <= set(names)
    assert "CORA-ML_netgan_split" not in names and len(set(names)) == len(names)
    graph = load_graph("CA-GrQc")
    assert graph.num_nodes == 5242 and int((adjacency(graph).sum(axis=0) == 0).sum()) == 1


def test_largest_id_is_not_taken_for_the_node_count_of_a_users_file(tmp_path):
    (tmp_path / "mine.txt").write_text("7 1000000\n")
    graph = load_graph(str(tmp_path / "mine.txt"))
    assert torch.equal(graph.edge_index, make_graph(torch.tensor([[0, 1]]), 2).edge_index)
