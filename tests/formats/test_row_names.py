"""Rows are never names: every door refuses ids that are rows, before it spends or writes anything."""

import networkx as nx
import pandas as pd
import pytest

import lightning_dpg as dpg
from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.apps.studio.inquiry import read
from lightning_dpg.datamodules import EdgeListDataModule, EdgeTableDataModule
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.main import main

SECRET = "SECRET->ann {'weight': 1}\nann->SECRET2 {'weight': 2}\n"
TRIANGLE = [("SECRET", "ann"), ("ann", "SECRET2"), ("SECRET2", "SECRET")]
THIRD = {
    "attributes": ["{'weight': 1, 'chapter': 0}", "{}", "{'weight': 2, 'text': 'a b, c; d'}"],
    "bars": ["a|b", "c|d", "e|f|g"],
    "decimal commas": ["3,5", "4,5", "5,5"],
    "dates": ["2026-01-01,12:00", "2026-01-02,13:00", "2026-01-03,14:00"],
    "quoted lists": ['"a;b"', '"c;d, e"', '"f"'],
    "tuples": ["(3, 4)", "(4, 5, 6)", "()"],
    "lists": ["[3, 4]", "[4, 5]", "['a b']"],
    "quoted text": ['"a {b"', '"c, d"', '"e"'],
}
REFUSED = {
    "tabs in a third cell": "SECRET ann x\ty\nann SECRET2 z\tw\n",
    "tuples as nodes": "(0, 0) (0, 1) x\n(0, 1) (1, 1) x\n",
    "tuples as rows": "('SECRET', 'bob')\n('bob', 'SECRET2')\n",
    "arrows": "SECRET->bob,3\nbob->SECRET2,4\n",
    "adjacency": "SECRET: bob\nbob: SECRET2\nann bob\n",
    "adjacency by spaces": "SECRET bob ann\nbob SECRET2\n",
    "adjacency of one length": "SECRET bob ann\nbob SECRET2 ann\nann bob SECRET\n",
    "adjacency beside names": "SECRET\tbob,SECRET2\nbob\tSECRET2,ann\nann\tbob\n",
    "a row among names": 'SECRET,bob\nbob,"SECRET,SECRET2"\n',
    "colon": "SECRET:bob,SECRET\nbob,ann\n",
    "the header again": "source,target\nSECRET,bob\nsource,target\nbob,ann\n",
    "the header again among numbers": "id,other\n17,18\nid,other\n18,19\n19,17\n",
    "a header below another line": "x,y\nsource,target\nSECRET,SECRET2\n",
    "another header": "x,y\nFromAccount,ToAccount\nSECRET,SECRET2\n",
    "MatrixMarket": "%%MatrixMarket matrix coordinate pattern general\n5 5 2\n1 2\n2 3\n",
    "Pajek": '*Vertices 2\n1 "SECRET"\n2 "SECRET2"\n*Edges\n1 2\n',
    "DIMACS": "c SECRET\np edge 3 2\ne 1 2\ne 2 3\n",
    "DIMACS without its head": "e 1 2\ne 1 3\ne 2 3\n",
    "METIS": "3 3\n2 3\n1 3\n1 2\n",
    "UCINET": "dl n=3 format=edgelist1\ndata:\n1 2\n2 3\n",
    "SQL": "--\nCOPY pays (a, b) FROM stdin;\nSECRET\tann\nann\tSECRET2\n",
    "statements": "INSERT INTO pays VALUES ('SECRET', 'ann');\n",
    "DOT": "graph G {\n1 2\n2 3\n}\n",
    "TGF": "1 SECRET\n2 ann\n#\n1 2\n",
    "a matrix": "0 1 1\n1 0 0\n1 0 0\n",
    "a matrix of numbers": "0;5;2\n5;0;1\n2;1;0\n",
    "a matrix with names": ";SECRET;ann\nSECRET;0;3\nann;3;0\n",
    "ids that begin a comment": "SECRET #ann\n#ann #SECRET2\n#SECRET2 SECRET\n",
}


@pytest.mark.parametrize("mark", [" ", ";", ",", "\t", "|"])
@pytest.mark.parametrize("third", THIRD.values(), ids=THIRD)
def test_a_third_cell_is_no_part_of_an_id(tmp_path, third, mark):
    if mark != " ":  # a cell that holds the separator is in quotes
        third = [cell if '"' in cell else f'"{cell}"' for cell in third]
    rows = [mark.join((*pair, cell)) for pair, cell in zip(TRIANGLE, third, strict=True)]
    (tmp_path / "g.csv").write_text("\n".join(rows))
    data = EdgeListDataModule(str(tmp_path / "g.csv"), undirected=True)
    data.setup("fit")
    assert {*data.graph.node_names} == {*sum(TRIANGLE, ())}
    assert data.num_edges == len(rows)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_rows_of_a_file_are_no_names(tmp_path, text):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(GraphFormatError) as error:
        EdgeListDataModule(str(tmp_path / "g.csv"), undirected=True).setup("fit")
    assert 2 <= len(str(error.value).splitlines()) <= 5
    assert "SECRET" not in str(error.value) and "missing-ids" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ('source,target\n"Smith, John","Doe, Jane"\n"Doe, Jane","Lee, Ann"\n', None),
        (
            "Ann Smith,Mary Ann Lee\nMary Ann Lee,Bob Jones\nBob Jones,Ann Smith\nBob Jones,Ann Smith\n",
            None,
        ),
        ("from,to\nThe Art of War,War and Peace now\nWar and Peace now,The Idiot\n", None),
        ("New York,Boston\nYork,Boston\n", ["New York", "York", "Boston"]),
        ("a->b,a\na,b\n", ["a->b", "a", "b"]),
        ("10.0.0.1:80,10.0.0.1\n10.0.0.1,user:1\n", None),
        ("x,{3F2504E0-4F89-11D3-9A0C-0305E82C3301}\nx,y\n", None),
        ("source target note\nann bob a,b\nbob cy c,d\n", None),
        ("source,target\nann,bob\n# cy,dee\nbob,cy\n", None),
        ("a1,payee1\npayer1,payee1\n", None),
    ],
)
def test_names_that_look_like_rows_are_names(tmp_path, text, nodes):
    """Expected are the names in the order of Python's csv module, or those of the list."""
    (tmp_path / "g.csv").write_text(text)
    data = EdgeListDataModule(str(tmp_path / "g.csv"), nodes=nodes)
    data.setup("fit")
    assert data.num_nodes == 3
    assert nodes is None or sorted(data.graph.node_names) == sorted(nodes)


def test_rows_in_objects_are_no_names(tmp_path):
    pairs = [("a b {'w': 1", " 'c': 2}"), ("b c {'w': 1", " 'c': 3}")]
    ends_and_edges = nx.Graph([("ann", "(ann, bob)"), ("bob", "(ann, bob)")])
    repeated = pd.DataFrame({"Giver": ["a", "Giver"], "Taker": ["b", "Taker"]})
    for data in (nx.Graph(pairs), pairs, pd.DataFrame(pairs), ends_and_edges):
        with pytest.raises(dpg.CommandError, match="rows were read as names"):
            dpg.read(data)
    with pytest.raises(dpg.CommandError, match="the header once more"):
        dpg.read(repeated, source="Giver", target="Taker")
    of_a_table = nx.Graph([("New York", "Boston"), ("York", "Boston"), ((1, 2), (2, 3))])
    assert dpg.read(of_a_table).num_nodes == 5
    write_graph(dpg.read(of_a_table).graph, tmp_path / "g.graphml")
    assert dpg.read(tmp_path / "g.graphml").num_nodes == 5


@pytest.mark.slow
def test_rows_of_a_table_are_no_names(tmp_path):
    pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
    names = {"payer": ["ann", "ann bob"], "payee": ["bob", "cy"]}
    for number, columns in enumerate([names, {"payer": ["a", "payer"], "payee": ["b", "payee"]}]):
        place = str(tmp_path / f"g{number}.parquet")
        pd.DataFrame(columns).to_parquet(place)
        for reader in (EdgeTableDataModule, EdgeListDataModule):
            with pytest.raises(GraphFormatError, match=r"rows were read as names|header once more"):
                reader(place).setup("fit")
    EdgeTableDataModule(str(tmp_path / "g0.parquet"), nodes=["ann", "bob", "cy", "ann bob"]).setup(
        "fit"
    )


def test_no_door_takes_rows_as_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", f"sqlite:///{tmp_path}/book.db")
    (tmp_path / "g.edgelist").write_text(SECRET)
    total = ["--relation=edge", "--epsilon=1", "--delta=0"]
    assert main(["budget", "init"]) == 0
    assert main(["budget", "register", "crm", "g.edgelist", *total]) == 2
    assert main(["fit", "g.edgelist", "--epsilon=1", "--method=bter", "--out=run"]) == 2
    with pytest.raises(GraphFormatError, match="rows were read as names"):
        read(Answers(data="g.edgelist"))
    assert "SECRET" not in capsys.readouterr().err
    assert main(["budget", "history"]) == 0
    assert "crm" not in capsys.readouterr().out and not (tmp_path / "run").exists()
