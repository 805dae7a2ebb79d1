"""Directed and bipartite graphs from files and objects."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.sparse import csr_array

from lightning_dpg.datamodules import Columns, EdgeListDataModule, Nodes, base
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.interfaces import GraphRecords, KindOfRecords

SIDED = nx.Graph([("a", "b")])
nx.set_node_attributes(SIDED, {"a": 0, "b": 1}, "bipartite")


def read(source, kind, **options):
    data = EdgeListDataModule(source, kind=kind, **options)
    data.setup("fit")
    return data


def named(data):
    names = data.graph.node_names
    return {(names[i], names[j]) for i, j in data.records.edges.tolist()}


def test_a_directed_record_is_an_ordered_pair():
    data = read([("b", "a"), ("a", "b"), ("b", "c"), ("b", "c"), ("c", "c")], "directed")
    assert named(data) == {("b", "a"), ("a", "b"), ("b", "c")}
    assert data.records.edges.tolist() == sorted(data.records.edges.tolist())
    assert (data.num_edges, data.num_pairs) == (3, 6)
    assert isinstance(data.records, GraphRecords)
    assert isinstance(data.records, KindOfRecords)
    assert (data.records.kind, data.records.num_left) == ("directed", None)
    assert "3 edges (directed)" in data.summary


@pytest.mark.parametrize(
    "source",
    [
        nx.DiGraph([("b", "a"), ("a", "b"), ("b", "c")]),
        pd.DataFrame({"source": ["b", "a", "b"], "target": ["a", "b", "c"]}),
        csr_array(([1, 1, 1], ([1, 0, 1], [0, 1, 2])), shape=(3, 3)),
    ],
    ids=["networkx", "table", "matrix"],
)
def test_each_source_keeps_directions(source):
    assert read(source, "directed", nodes=Nodes(names="ids")).records.edges.tolist() == [
        [0, 1],
        [1, 0],
        [1, 2],
    ]


def test_an_undirected_source_has_no_directions():
    with pytest.raises(GraphFormatError, match="undirected"):
        read(nx.path_graph(3), "directed")


@pytest.mark.usefixtures("ids_in_order")
def test_the_columns_of_an_edge_list_are_the_sides(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("user,shop\nu10,s1\nu2,s1\nu2,s2\n")
    data = read(str(path), "bipartite", columns=Columns("user", "shop"))
    assert data.records.node_names == ["u2", "u10", "s1", "s2"]
    assert data.records.edges.tolist() == [[0, 2], [0, 3], [1, 2]]
    assert (data.records.num_left, data.num_pairs) == (2, 4)
    assert data.graph.sides.tolist() == [0, 0, 1, 1]
    assert data.assumptions[1].startswith("the side of each node (although read off")


@pytest.mark.usefixtures("ids_in_order")
def test_two_numberings_become_two_names():
    data = read([(1, 1), (1, 2), (3, 1)], "bipartite")
    assert data.records.node_names == ["left:1", "left:3", "right:1", "right:2"]
    assert named(data) == {("left:1", "right:1"), ("left:1", "right:2"), ("left:3", "right:1")}


def test_rows_of_equal_ids_are_edges_of_two_numberings_and_no_edges_of_one():
    pairs = [(1, 1), (2, 2)]
    assert read(pairs, "bipartite").num_edges == 2
    for kind in ("undirected", "directed"):
        with pytest.raises(
            ValueError, match="list: no edges\nexpected an edge between two different"
        ):
            read(pairs, kind)


def test_lists_of_both_sides_keep_nodes_without_edges():
    data = read([("s", "u")], "bipartite", nodes=Nodes(left=["u", "v"], right=["s", "t"]))
    assert data.records.node_names == ["u", "v", "s", "t"]
    assert data.assumptions[1] == "the side of each node"
    assert named(data) == {("u", "s")}  # a row may hold the right node first


def test_the_side_can_be_a_column_of_the_table_of_nodes(tmp_path):
    table = tmp_path / "nodes.csv"
    table.write_text("id,what\na,person\nb,film\nc,film\n")
    nodes = Nodes(str(table), column="id", side_column="what")
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n")
    data = read(str(path), "bipartite", nodes=nodes)
    assert data.records.node_names == ["b", "c", "a"]
    assert data.assumptions[1] == "the side of each node"
    assert named(data) == {("b", "a")}


def test_networkx_sides_of_davis_are_read():
    data = read("davis", "bipartite")
    women = nx.davis_southern_women_graph().graph["top"]
    assert data.records.node_names[: data.records.num_left] == sorted(women)
    assert data.num_edges == 89
    assert data.assumptions[1] == "the side of each node"


@pytest.mark.parametrize(
    ("source", "kind", "options", "says"),
    [
        ("karate", "bipartite", {}, "side of each node is not known"),
        (SIDED, "bipartite", {"nodes": ["a", "b", "c"]}, "does not have them: 1"),
        ([("a", "b")], "bipartite", {"nodes": Nodes(left=["a", "b"], right=["c"])}, "two sides"),
        ([("a", "b")], "bipartite", {"nodes": Nodes(left=["a"], right=["c"])}, "on no side: 1"),
        ([("a", "b")], "bipartite", {"nodes": Nodes(left=["a"])}, "give both"),
        ([("a", "b")], "bipartite", {"nodes": Nodes(side_column="what")}, "nodes.column"),
        ([("a", "b")], "sideways", {}, "undirected, directed or bipartite"),
        ([("a", "b")], "directed", {"undirected": True}, "set one of them"),
        ([("a", "b")], "directed", {"largest_component": True}, "largest_component"),
        ([("a", "b")], "directed", {"nodes": Nodes(left=["a"], right=["b"])}, "kind: bipartite"),
    ],
)
def test_contradictions_are_refused_in_five_lines(source, kind, options, says):
    with pytest.raises((ValueError, MisconfigurationException), match=says) as error:
        read(source, kind, **options)
    assert len(str(error.value).splitlines()) <= 5


@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_secret_numbers_keep_edges_and_sides(kind):
    pairs = [(f"a{i}", f"b{(3 * i) % 7}") for i in range(20)]
    plain, data = read(pairs, kind, nodes=Nodes(names="ids")), read(pairs, kind)
    assert data.records.num_left == plain.records.num_left
    assert data.records.node_names == [str(node) for node in range(data.num_nodes)]
    assert named(data) == named(plain)


def test_a_secret_order_is_drawn_until_all_keys_differ(monkeypatch):
    draws = [
        np.array(keys, dtype=np.uint64).tobytes() for keys in ([5, 5, 1], [2**63, 2, 2**64 - 1])
    ]
    monkeypatch.setattr(base.os, "urandom", lambda size: draws.pop(0))
    assert base.secret_order(3) == [1, 0, 2]


def test_konect_headers_say_which_kinds_a_file_can_be(tmp_path):
    rows = "\n1 1 1 1167609600\n2 1 5 0\n1 3 1 0\n"
    for word in ("bip", "asym", "sym"):
        (tmp_path / f"out.{word}").write_text(f"% {word} weighted{rows}")
    both = read(str(tmp_path / "out.bip"), "bipartite")
    assert named(both) == {("left:1", "right:1"), ("left:2", "right:1"), ("left:1", "right:3")}
    assert "4 nodes, 3 edges (2 left, 2 right)" in both.summary
    assert "off the private lines" in both.assumptions[1]
    assert named(read(str(tmp_path / "out.asym"), "directed")) == {("2", "1"), ("1", "3")}
    refused = [
        ("bip", "undirected"),
        ("bip", "directed"),
        ("asym", "undirected"),
        ("sym", "directed"),
    ]
    for word, kind in refused:
        with pytest.raises(GraphFormatError, match="set kind to") as error:
            read(str(tmp_path / f"out.{word}"), kind)
        assert len(str(error.value).splitlines()) <= 4
    with pytest.raises(GraphFormatError, match="--kind bipartite"):
        read(str(tmp_path / "out.bip"), "undirected", undirected=True)


@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_held_out_links_are_pairs_of_the_kind(kind):
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randint(30, (2, 150), generator=generator)
    other = "b" if kind == "bipartite" else "a"
    pairs = [(f"a{i}", f"{other}{j}") for i, j in zip(left, right, strict=True)]
    data = read(pairs, kind, test_fraction=0.3)
    links, edges = data.test_links, {*map(tuple, data.space.edges(data.graph).tolist())}
    train = {*map(tuple, data.records.edges.tolist())}
    held_out = {*map(tuple, links.edges.tolist())}
    assert train | held_out == edges
    assert not train & held_out
    for others in (links.non_edges, links.matched_non_edges):
        assert len(others) == len(held_out)
        numbers = data.space.numbers(others)
        assert torch.equal(data.space.pairs(numbers), others)  # pairs that may be linked
        assert not edges & {*map(tuple, others.tolist())}
