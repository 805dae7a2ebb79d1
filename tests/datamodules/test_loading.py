"""Built-in graphs, objects and files load, and unknown names suggest the nearest."""

from collections import deque

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data, HeteroData
from torch_geometric.datasets import KarateClub

from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule, Nodes
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


PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])  # 0 - 1 - 2
INDEX = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
COO = torch.sparse_coo_tensor(INDEX, torch.ones(4), (3, 3), dtype=torch.bfloat16)


@pytest.mark.parametrize(
    "graph",
    [
        Data(edge_index=INDEX.float(), num_nodes=3),
        Data(edge_index=INDEX.numpy()),
        Data(edge_index=INDEX.tolist(), num_nodes=3, sides=[0, 1, 0]),
        Data(adj_t=COO.to_sparse_csr()),
        *(COO, COO.to_sparse_csr(), torch.tensor(PATH).to_sparse_csc()),
        torch.tensor([[0.0, 1.0], [1.0, 2.0], [1.0, 2.0]]).bfloat16(),
        *(np.matrix(PATH), np.matrix([[0, 1], [1, 2], [1, 1]]), PATH.astype(bool)),
        *(sparse.dok_array(PATH), sparse.dia_matrix(PATH), sparse.coo_array(PATH > 0)),
        *(deque([(0, 1), (1, 2)]), [np.array([0, 1]), [2, np.int8(1)]]),
        # A float of a row that came before a whole number: networkx takes them for one node
        nx.Graph([(0.0, 1), (1.0, np.float32(2))]),
    ],
)
def test_objects_with_the_same_two_edges(graph):
    found = load_graph(graph)
    assert found.node_names == ["0", "1", "2"]
    assert undirected_edges(found).tolist() == [[0, 1], [1, 2]]


def test_directions_of_a_transposed_matrix():
    with pytest.raises(GraphFormatError, match="directed"):
        load_graph(Data(adj_t=torch.tensor([[0, 0], [1, 0]]).to_sparse()))


class NoTable:
    """An object with the names of columns, and none of them."""

    columns = ("source", "target")

    def __getitem__(self, label):
        raise KeyError("a secret row")


class NoGraph:
    """As a graph of igraph or rustworkx."""

    def __iter__(self):
        raise RuntimeError("a secret row")


OBJECTS = [
    *(None, 5, 1.5, True, b"a b", {"a": ["b"]}, {(1, 2)}, ((i, i + 1) for i in range(3)), iter([])),
    *([], (), [[]], [(1, 2), (1, 2, 3)], [[[1, 2], [3, 4]]], [nx.path_graph(2), (1, 2)], [None]),
    *([{"source": 1}], [([1], [2])], [(None, 1)], [(float("nan"), 1)], [(True, False)], ["ab"]),
    *(len, nx.Graph, range(3), map(str, [1]), memoryview(b"ab"), NoTable(), NoGraph(), Data()),
    *(Data(edge_index=odd, num_nodes=3) for odd in (INDEX + 0.5, INDEX > 0, INDEX[0], "x", COO, 1j)),
    *(Data(edge_index=odd, num_nodes=3) for odd in (INDEX - 1, INDEX + 9, torch.ones(3, 4), [[1], []])),
    *(Data(edge_index=INDEX[:, :0], num_nodes=size) for size in (0, 1, 3)),
    *(Data(edge_index=INDEX, node_names=odd) for odd in (["a"], 5, [None] * 3, ["a"] * 3)),
    Data(edge_index=INDEX, sides=torch.tensor([0, 1])),
    *(HeteroData(), nx.Graph(), nx.empty_graph(3), nx.Graph([(float("nan"), 2)])),
    nx.MultiDiGraph([(1, 2), (1, 2)]),
    *(np.array(5), np.arange(4), np.ones((3, 2, 2)), np.empty((0, 2)), np.empty((0, 0)), PATH * 1j),
    *(PATH.astype(object), np.array([[1, 2], [object(), 3], [3, 4]]), np.array([[1j, 2]] * 3)),
    *(np.array([[True, False]] * 3), np.ma.masked_array(PATH, PATH == 0), np.array([(1, 2)], "i,i")),
    *(np.full((3, 3), np.nan), np.array([["1", "x"]] * 2), np.full((3, 2), "2020", "datetime64[D]")),
    *(sparse.coo_array(np.arange(3)), sparse.csr_array(PATH * 1j), sparse.csr_array(PATH[:2])),
    *(torch.tensor(PATH) * 1j, torch.ones(2, 4), torch.sparse_coo_tensor(INDEX, torch.ones(4, 2))),
    *(pd.Series([1, 2]), pd.DataFrame(), pd.DataFrame({"source": [[1]], "target": [2]})),
]  # fmt: skip


@pytest.mark.parametrize("graph", OBJECTS, ids=lambda graph: type(graph).__name__)
def test_objects_that_hold_no_graph_are_refused(graph):
    with pytest.raises(GraphFormatError) as refused:
        load_graph(graph)
    message = str(refused.value)
    assert "secret" not in message and 2 <= len(message.splitlines()) <= 5
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    for graphs in (graph, [graph]):
        with pytest.raises(GraphFormatError):
            GraphSetDataModule(graphs).setup("fit")


def test_a_graph_of_a_set_may_have_no_edge_and_not_no_node():
    path, lone = nx.path_graph(3), Data(edge_index=INDEX[:, :0].float(), num_nodes=1)
    data = GraphSetDataModule([path, nx.empty_graph(2), lone, Data(adj_t=COO.to_sparse_csr())])
    data.setup("fit")
    assert data.sizes.tolist() == [3, 2, 1, 3] and data.edges.tolist()[2:] == [[6, 7], [7, 8]]
    for empty in (nx.Graph(), Data(edge_index=INDEX[:, :0], num_nodes=0)):
        with pytest.raises(GraphFormatError, match=r"graph 1 of the list: \w+: 0 node"):
            GraphSetDataModule([path, empty]).setup("fit")
    with pytest.raises(GraphFormatError, match="graph 0 of the list: a label y of type str"):
        GraphSetDataModule([Data(edge_index=INDEX, num_nodes=3, y="a")]).setup("fit")


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
