"""Graph files are read and written without loss, and bad files are refused with their place."""

import gzip

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.io import (
    GraphFormatError,
    from_networkx,
    read_graph,
    write_graph,
)
from lightning_dpg.graph.graph import adjacency, make_graph, undirected_edges


@pytest.fixture
def read(tmp_path):
    def read(text, name="graph.txt", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_graph(path, **options)

    return read


def named_edges(graph):
    """Edges as pairs of names, which no numbering of the nodes changes."""
    return {
        frozenset((graph.node_names[i], graph.node_names[j]))
        for i, j in undirected_edges(graph).tolist()
    }


PAIRS = {frozenset("ab"), frozenset("bc")}


@pytest.mark.parametrize(
    "text",
    [
        "a b\nb c\n",
        "a,b\nc , b",
        "a\tb\r\nb\tc\r\n",
        "# x y z\n\n  a  b 0.5 17\n% text\n   \nc b 1 3\na b\t2 5\nc c 2 3",
        "\ufeffa b\nb c\nc c\na b\n",
        gzip.compress(b"a b\nb c\n", mtime=0),
    ],
)
def test_edge_list_forms(read, text):
    graph = read(text)
    assert graph.node_names == ["a", "b", "c"]
    assert named_edges(graph) == PAIRS


@pytest.mark.parametrize("text", ["10 2\n2 7\n", "10,2,0.5\n2,7,1\n", "10\t2\tx\n7\t2\t\n"])
def test_integer_ids_in_numerical_order(read, text):
    graph = read(text)
    assert graph.node_names == ["2", "7", "10"]
    assert undirected_edges(graph).tolist() == [[0, 1], [0, 2]]


KONECT = (
    "{}\n% 4 3 3\n1 2 1 1167609600\n2\t3 \t5\t1167609601\n 3 2 -1 1167609602\n1 1 1 0\n10 3 1 0"
)


@pytest.mark.parametrize("name", ["out.petster-hamster", "out.petster-hamster.gz"])
def test_konect_files_with_weights_and_time_stamps(read, name):
    text = KONECT.format("% sym weighted").encode()
    graph = read(gzip.compress(text) if name.endswith(".gz") else text, name)
    assert graph.node_names == ["1", "2", "3", "10"]
    assert undirected_edges(graph).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_long_ids_are_integers(read):
    names = ["999999999999999999", "1000000000000000000", "9999999999999999999"]
    assert read(f"{names[1]} {names[0]}\n{names[2]} {names[1]}\n").node_names == names


def test_keep_gaps(read):
    graph = read("1 4\n2 4\n", keep_gaps=True)
    assert graph.node_names == list("01234")
    assert undirected_edges(graph).tolist() == [[1, 4], [2, 4]]


def test_names_with_spaces_after_a_tab_or_comma(read):
    assert read(
        "Jean V\tCosette\tx\nCosette\t1 2 3\t\nJean V\tJavert\t\nCosette\tJavert\t"
    ).node_names == [
        "1 2 3",
        "Cosette",
        "Javert",
        "Jean V",
    ]
    assert read("Jean V, Cosette\n").node_names == ["Cosette", "Jean V"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("# nothing\n\n", ["empty"]),
        ("1 2\n\nhello\n3 4\n", ["line 3", "1 cells, and line 1 has 2"]),
        ("person friend\n1 2\n2 3\n", ["line 1", "header", "columns.source"]),
        ("1 2\n3 -4\n", ["line 2", "0 or more"]),
        ("1 1\n", ["1 node"]),
        ("1 1\n2 2\n", ["no edges"]),
        ("a\tb\nc d\te\n", ["a tab and by a space", "--separator"]),
        (b"a b\nb \xff\n", ["line 2", "UTF-8"]),
        (b"\x89PNG\0\0", ["not a text file"]),
        (gzip.compress(b"1 2\n2 3\n" * 99, mtime=0)[:-9], ["damaged gzip"]),
    ],
)
def test_bad_edge_list(read, text, parts):
    with pytest.raises(GraphFormatError) as error:
        read(text)
    assert all(part in str(error.value) for part in ["graph.txt", *parts])
    assert len(str(error.value).splitlines()) <= 5


def test_missing_file_and_bad_archives(tmp_path, read):
    with pytest.raises(GraphFormatError, match="no such file"):
        read_graph(tmp_path / "none.edges")
    with pytest.raises(GraphFormatError, match="not a graph"):
        read(b"PK text", "broken.npz")
    with pytest.raises(GraphFormatError, match=r"line 2: not well-formed"):
        read("<graphml>\n</graph>", "broken.graphml")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(GraphFormatError, match="adj_indptr"):
        read_graph(tmp_path / "other.npz")


def dense(matrix):
    return sparse.csr_array(np.array(matrix, dtype=float))


def test_scipy_and_netgan_archives(tmp_path):
    matrix = dense([[1, 2, 0], [3, 0, 0], [0, 0, 0]])
    matrix.data[0] = 0  # stored but zero
    sparse.save_npz(tmp_path / "scipy.npz", matrix)
    parts = {f"adj_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    np.savez(tmp_path / "netgan.npz", adj_shape=matrix.shape, **parts)
    for name in ("scipy.npz", "netgan.npz"):
        graph = read_graph(tmp_path / name)
        assert graph.num_nodes == 3 and undirected_edges(graph).tolist() == [[0, 1]]


def test_directed_input_is_refused(tmp_path):
    digraph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")])
    nx.write_graphml(digraph, tmp_path / "g.graphml")
    nx.write_gexf(digraph, tmp_path / "g.gexf")
    sparse.save_npz(tmp_path / "g.npz", dense([[0, 1, 0], [0, 0, 1], [0, 1, 0]]))
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(GraphFormatError, match="undirected=True"):
            read_graph(path)
        assert undirected_edges(read_graph(path, undirected=True)).tolist() == [[0, 1], [1, 2]]
    data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 1]]), num_nodes=3)
    for convert, graph in ((from_networkx, digraph), (load_graph, data)):
        with pytest.raises(GraphFormatError, match="directed"):
            convert(graph)
        assert undirected_edges(convert(graph, undirected=True)).tolist() == [[0, 1], [1, 2]]


def test_symmetric_pyg_graph_with_repeats():
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 0, 2]]), num_nodes=4)
    graph = load_graph(data)
    assert graph.num_nodes == 4 and undirected_edges(graph).tolist() == [[0, 1]]


def test_multigraph_and_equal_names():
    multi = nx.MultiGraph([(5, 3), (5, 3), (3, 4)])
    assert from_networkx(multi).node_names == ["3", "4", "5"]
    with pytest.raises(GraphFormatError, match="name of another one: 1"):
        from_networkx(nx.Graph([(1, "1"), (1, 2)]))


def test_others_read_what_is_written(tmp_path):
    graph = make_graph(torch.tensor([[0, 1], [1, 3], [2, 3]]), 5, list("abcde"))
    for suffix in (".edges", ".graphml", ".npz"):
        write_graph(graph, tmp_path / f"g{suffix}")
    for other in (nx.read_edgelist(tmp_path / "g.edges"), nx.read_graphml(tmp_path / "g.graphml")):
        assert {frozenset(edge) for edge in other.edges} == named_edges(graph)
    assert set(other) == set("abcde")
    matrix = sparse.load_npz(tmp_path / "g.npz")
    np.testing.assert_array_equal(matrix.toarray(), adjacency(graph).toarray())


@pytest.mark.parametrize("name", ["", "NaN", "a\tb", " a", "a\n", "a\0b"])
def test_edge_list_refuses_names_it_would_not_read_back(tmp_path, name):
    graph = make_graph(torch.tensor([[0, 1]]), 2, [name, "x"])
    with pytest.raises(ValueError, match="cannot hold"):
        write_graph(graph, tmp_path / "g.edges")
    assert not list(tmp_path.iterdir())


def test_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match="must end with"):
        write_graph(make_graph(torch.tensor([[0, 1]]), 2), tmp_path / "g.png")


@pytest.mark.parametrize(
    ("file", "num_nodes", "num_edges"),
    [
        ("graphs/CORA-ML.edges.gz", 2810, 7981),
        ("graphs/CA-HepPh.edges.gz", 12008, 118489),
        ("graphs/Facebook.edges.gz", 4039, 88234),
        ("npz/CORA-ML.npz", 2810, 7981),
    ],
)
def test_real_files(data_root, file, num_nodes, num_edges):
    graph = read_graph(data_root / file, keep_gaps=True)
    assert graph.num_nodes == num_nodes
    assert len(undirected_edges(graph)) == num_edges


def test_netgan_archive_with_names(data_root):
    graph = read_graph(data_root / "npz" / "cora_ml.npz", undirected=True)
    assert graph.num_nodes == 2995 and graph.node_names[:2] == ["35", "40"]
    assert nx.number_of_selfloops(nx.from_scipy_sparse_array(adjacency(graph))) == 0


def test_a_networkx_graph_without_edges_is_refused_in_one_message():
    with pytest.raises(GraphFormatError, match="no edges"):
        from_networkx(nx.empty_graph(8))


def test_a_database_is_no_file_and_its_password_is_not_shown():
    with pytest.raises(GraphFormatError, match="EdgeTableDataModule") as refused:
        read_graph("postgresql://ana:secret@db/bank")
    assert str(refused.value).startswith("postgresql://...: a database")
    assert "secret" not in str(refused.value)
