"""The order of nodes depends on their names only, and lists of names are checked."""

import random

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.io import (
    GraphFormatError,
    from_networkx,
    read_graph,
    write_graph,
)
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.node_names import natural_key

# A ring keeps every node on an edge of an edge list, whichever chord comes or goes.
RING = [(f"n{i}", f"n{(i + 1) % 12}") for i in range(12)]
CHORDS = [(f"n{i}", f"n{j}") for i in range(12) for j in range(i + 2, 12) if (i, j) != (0, 11)]


def test_numbers_in_names_count_by_value():
    names = ["b", "a10", "a2", "10", "2", "a02", "a2b", "A3", "", "x" + "9" * 5000]
    expected = ["", "2", "10", "A3", "a02", "a2", "a2b", "a10", "b", "x" + "9" * 5000]
    assert sorted(names, key=natural_key) == expected
    names.reverse()
    assert sorted(names, key=natural_key) == expected


def edge_by_edge(edges, seed):
    """A graph as a program makes it that meets the edges in some order."""
    edges = [(v, u) if random.Random(seed + k).random() < 0.5 else (u, v) for k, (u, v) in edges]
    random.Random(seed).shuffle(edges)
    graph = nx.Graph()
    graph.add_edges_from(edges)
    return graph


def as_networkx(graph, folder):
    return from_networkx(graph)


def as_graphml(graph, folder):
    nx.write_graphml(graph, folder / "g.graphml")
    return read_graph(folder / "g.graphml")


def as_gexf(graph, folder):
    nx.write_gexf(graph, folder / "g.gexf")
    return read_graph(folder / "g.gexf")


def as_gml(graph, folder):
    nx.write_gml(graph, folder / "g.gml")
    return read_graph(folder / "g.gml")


def as_edge_list(graph, folder):
    nx.write_edgelist(graph, folder / "g.txt", data=False)
    return read_graph(folder / "g.txt")


def as_npz(graph, folder):
    number = {name: i for i, name in enumerate(graph)}
    pairs = torch.tensor([(number[u], number[v]) for u, v in graph.edges])
    write_graph(make_graph(pairs, len(graph), list(graph)), folder / "g.npz")
    return read_graph(folder / "g.npz")


def as_pyg(graph, folder):
    number = {name: i for i, name in enumerate(graph)}
    pairs = torch.tensor([(number[u], number[v]) for u, v in graph.edges])
    both = torch.cat([pairs, pairs.flip(1)]).T
    return load_graph(Data(edge_index=both, num_nodes=len(graph), node_names=list(graph)))


@pytest.mark.parametrize(
    "convert", [as_networkx, as_graphml, as_gexf, as_gml, as_edge_list, as_npz, as_pyg]
)
def test_neighbors_have_the_same_node_table(convert, tmp_path):
    @settings(max_examples=20)
    @given(st.sets(st.sampled_from(CHORDS), min_size=1), st.integers(0, 2**32), st.data())
    def check(chords, seed, data):
        gone = data.draw(st.sampled_from(sorted(chords)))
        whole = edge_by_edge(list(enumerate(RING + sorted(chords))), seed)
        without = edge_by_edge(list(enumerate(RING + sorted(chords - {gone}))), seed + 1)
        one, other = convert(whole, tmp_path), convert(without, tmp_path)
        assert one.node_names == other.node_names == [f"n{i}" for i in range(12)]
        pairs = [{*map(tuple, undirected_edges(graph).tolist())} for graph in (one, other)]
        expected = tuple(sorted(int(name[1:]) for name in gone))
        assert pairs[0] ^ pairs[1] == {expected}

    check()


def test_features_follow_their_nodes():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, y = torch.tensor([[10.0], [9.0], [2.0]]), torch.tensor([1, 0, 2])
    names = ["a10", "a9", "a2"]
    graph = load_graph(Data(edge_index=edge_index, x=x, y=y, node_names=names, num_nodes=3))
    assert graph.node_names == ["a2", "a9", "a10"]
    assert graph.x.ravel().tolist() == [2, 9, 10] and graph.y.tolist() == [2, 0, 1]


def test_graphml_with_edges_at_nodes_that_its_table_lacks(tmp_path):
    text = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    text += '<node id="a"/><node id="b"/><edge source="a" target="SECRET"/></graph></graphml>'
    (tmp_path / "g.graphml").write_text(text)
    with pytest.raises(GraphFormatError, match="not in the file's node table: 1") as error:
        read_graph(tmp_path / "g.graphml")
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("b2\n# a comment\na10\n\na2\na2\n", None),
        ("id\na10\na2\nb2\n", None),
        ("Customer Id\na10\na2\nb2\n", None),
        ("customer_id\na10\na2\nb2\n", None),
        ("accountNumber\na10\na2\nb2\n", None),
        ("Kunden-Nr.\na10\na2\nb2\n", None),
        ("Customer\na10\na2\nb2\n", "Customer"),
        ('name;id\n"Smith; J";a10\nB;a2\nC;b2\n', "id"),
        ("id,age\r\na2,30\r\nb2,40\r\na10,\r\n", None),
        ("age,name,id\n1,A,a2\n2,B,b2\n3,C,a10\n", None),
    ],
)
def test_node_lists(tmp_path, text, column):
    (tmp_path / "nodes.csv").write_text(text)
    assert given_names(tmp_path / "nodes.csv", column) == ["a2", "a10", "b2"]
    assert given_names(["b2", "a10", "a2"]) == ["a2", "a10", "b2"]
    assert given_names(range(11)) == [str(i) for i in range(11)]


@pytest.mark.parametrize(
    "names", ["Ann\nBob", "New York\nBoston\nRome", "ann\nbob\nann", "root\nr1", "c1\nc2", "A\nB"]
)
def test_the_first_of_like_names_is_no_header(tmp_path, names):
    (tmp_path / "nodes.txt").write_text(names)
    assert given_names(tmp_path / "nodes.txt") == sorted({*names.splitlines()})


@pytest.mark.parametrize(
    ("text", "column", "parts"),
    [
        (None, None, ["no such file"]),
        ("", None, ["empty"]),
        ("nr,age\na,1\n", None, ["2 columns", "nodes.column"]),
        ("id,node\na,b\n", None, ["2 columns", "nodes.column"]),
        ("id,age\na,1\n", "name", ["no column 'name'", "id, age"]),
        ("id,age\na,1\n,2\n", "id", ["line 3: no id"]),
        ("id,age\na,1\nSECRET\n", "id", ["line 3: 1 cells", "line 1 has 2"]),
        ("a\nNaN\n", None, ["line 2: no id"]),
        ("SECRET,34\nann,35\n", None, ["2 columns\n", "nodes.column"]),
        ("SECRET,34\nann,35\n", "id", ["no column 'id' in the first row\n"]),
        ("# index, SECRET\n0, ann\n1, bob\n", None, ["2 columns\nline 1 is a comment"]),
        ("Customer Id,Region\nc1,north\n", None, ["the columns are Customer Id, Region"]),
        *(
            (f"{first}\n{second}\n{third}\n", None, ["may be a header", "nodes.column", "'id'"])
            for first, second, third in [
                ("Customer", "c1", "c2"),
                ("payer", "17", "18"),
                ("E-mail", "ann@b.example", "bob@b.example"),
                ("Customer", "ann", "bob"),
                ("customer", "Ann", "Bob"),
                ("host", "x.example", "y.example"),
                ("customers", "ann", "bob"),
                ("SECRET", "ann", "bob"),
            ]
        ),
    ],
)
def test_bad_node_lists(tmp_path, text, column, parts):
    path = tmp_path / "nodes.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(GraphFormatError) as error:
        given_names(path, column)
    assert all(part in str(error.value) for part in [str(path), *parts])
    assert len(str(error.value).splitlines()) <= 4
    assert "SECRET" not in str(error.value).replace(str(path), "")
