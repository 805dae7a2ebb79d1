"""Columns of attributes become the right numbers, or are refused with the way out."""

import gzip

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.feature_extraction.text import CountVectorizer
from torch_geometric.data import Data

from lightning_dpg.formats.attribute_sources import attributes_of_pyg, numbers_of_nodes
from lightning_dpg.formats.attribute_tables import read_attributes
from lightning_dpg.formats.conversion import read_networkx, read_pyg
from lightning_dpg.formats.io import read, write_graph
from lightning_dpg.graph.attributes import AttributeTable, attach, encode, read_stored
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.node_names import GraphFormatError

PEOPLE = """id,age,branch,bio,income
a,30,retail,likes long walks in parks,1
b,,bank,likes dogs and cats too,2
c,40,,,3
d,51,retail,cats cats cats and walks,4
"""


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def columns(attributes):
    return dict(zip(attributes.names, attributes.x.T.tolist(), strict=True))


def test_numbers_categories_and_missing_cells(people):
    policy = {"bio": "drop", "income": "private"}
    table = read_attributes(people)
    # Rows follow the nodes: d first, z without a row, c missing its branch.
    assert columns(encode(table, ["d", "z", "b", "c"], policy)) == {
        "age": [51, 0, 0, 40],
        "age is missing": [0, 0, 1, 0],
        "branch=bank": [0, 0, 1, 0],
        "branch=retail": [1, 0, 0, 0],
    }


def test_text_is_tf_idf_over_the_whole_table(people):
    policy = dict.fromkeys(("age", "branch", "income"), "drop")
    made = encode(read_attributes(people), ["d", "b"], policy)
    texts = [row.split(",")[3] for row in PEOPLE.splitlines()[1:]]
    counter = CountVectorizer()
    counts = counter.fit_transform(texts).toarray()  # of all four people, not only of d and b
    weights = counts * (np.log(5 / (1 + (counts > 0).sum(axis=0))) + 1)
    weights = weights[[3, 1]] / np.linalg.norm(weights[[3, 1]], axis=1, keepdims=True)
    assert made.names == [f"bio:{word}" for word in counter.get_feature_names_out()]
    np.testing.assert_allclose(made.x, weights, rtol=1e-5)


def test_policies_set_the_kind_of_a_column():
    table = AttributeTable("t", ["a", "b", "c"], {"zip": ["10", "9", "10"], "y": ["2", "", "0"]})
    made = encode(table, ["a", "b", "c"], {"zip": "category"})
    assert columns(made) == {"zip=9": [0, 1, 0], "zip=10": [1, 0, 1]}
    assert made.y.tolist() == [2, -1, 0]
    classes = encode(table, ["a", "b", "c"], {"zip": "label", "y": "drop"})
    assert classes.x.shape == (3, 0) and classes.y.tolist() == [10, 9, 10]
    named = AttributeTable("t", ["a", "b"], {"topic": ["physics", "art"]})
    assert encode(named, ["a", "b"], {"topic": "label"}).y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("cells", "policy", "message"),
    [
        (["1", "2"], {"other": "drop"}, "no column 'other'\nits columns are age"),
        (["1", "2"], {"age": "hide"}, "age is 'hide'\nexpected one of public, number"),
        (["1", "x"], {"age": "number"}, "'x' in column 'age' is no finite number"),
        (["1", "1_2"], {"age": "number"}, "'1_2' in column 'age' is no finite number"),
        (["1", "inf"], {}, "'inf' in column 'age' is no finite number"),
        (["1", "2"], {"age": "drop"}, "no public attribute is left"),
        (["-1", "2"], {"age": "label"}, "a class below 0"),
        (["1e30", "2"], {"age": "label"}, "a class above 9,007"),
        ([".", "!"], {"age": "text"}, "holds no words"),
    ],
)
def test_refused_columns(cells, policy, message):
    with pytest.raises(GraphFormatError, match=message):
        encode(AttributeTable("t", ["a", "b"], {"age": cells}), ["a", "b"], policy)


def test_a_column_of_names_is_refused_before_it_makes_a_column_of_each():
    ids = [f"n{i}" for i in range(300)]
    table = AttributeTable("t", ids, {"email": [f"{name}@x.org" for name in ids]})
    with pytest.raises(GraphFormatError, match=r"300 different values(.|\n)*email drop"):
        encode(table, ids, {})
    assert encode(table, ids, {"email": "category"}).x.sum() == 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,age\na,1\na,2\n", "line 3: its id was on line 2"),
        ("id,age\n,1\n", "line 2: no id"),
        ("id,age\na,1,9\n", "line 2: 3 cells, and line 1 has 2"),
        ("who,age\na,1\n", "which column holds the ids(.|\n)*nodes.column"),
        ("id,age,age\na,1,2\n", "two columns have one name"),
        ("id\na\n", "one column"),
        ("SECRET,34\nann,35\n", r"which column holds the ids\?\nname it"),
        ("# id,SECRET\na,1\n", "the first line is a comment"),
        ("id,age\n", "no rows"),
        ("id,age\nz,1\n", "no row is that of a node"),
    ],
)
def test_refused_tables(tmp_path, text, message):
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(GraphFormatError, match=message) as error:
        encode(read_attributes(path), ["a", "b"], {})
    assert len(str(error.value).splitlines()) <= 5
    assert "SECRET" not in str(error.value).replace(str(path), "")


def test_tables_of_all_kinds_are_read_alike(tmp_path, people):
    expected = encode(read_attributes(people), ["a", "b", "c", "d"], {})
    (tmp_path / "p.tsv").write_text(PEOPLE.replace(",", "\t"))
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(PEOPLE.replace("id,", "who,").encode()))
    frame = pd.read_csv(people)
    for table in (
        read_attributes(tmp_path / "p.tsv"),
        read_attributes(tmp_path / "p.csv.gz", "who"),
        read_attributes(frame),
        read_attributes(frame[["age", "id", "branch", "bio", "income"]], "id"),
    ):
        made = encode(table, ["a", "b", "c", "d"], {})
        assert made.names == expected.names and torch.equal(made.x, expected.x)


def test_parquet_is_read_as_csv_is_and_row_numbers_of_pandas_are_no_column(tmp_path):
    path = tmp_path / "people.parquet"
    cells = {"id": ["b", "a", "c"], "age": [4, None, 7], "is": [True, False, True]}
    frame = pd.DataFrame(cells, index=[7, 8, 9]).assign(size=np.float32([0.1, 2, 3]), y=2)
    frame.to_parquet(path)
    made, own = (encode(read_attributes(each), ["a", "b", "c"], {}) for each in (path, frame))
    assert made.names == ["age", "age is missing", "is=False", "is=True", "size"] == own.names
    assert made.x[0].tolist() == [0, 1, 1, 0, 2]
    assert torch.equal(made.x, own.x) and torch.equal(made.y, own.y)


@pytest.mark.parametrize("suffix", ["graphml", "npz"])
def test_written_graphs_hold_their_attributes(tmp_path, suffix):
    graph = make_graph(torch.tensor([[0, 1], [1, 2]]), 3, ["b", "a10", "a2"])
    table = AttributeTable("t", ["b", "a10"], {"k<": ["u&", "v"], "n": [0.1, -3], "y": [4, ""]})
    made = encode(table, graph.node_names, {})
    attach(graph, made)
    write_graph(graph, tmp_path / f"g.{suffix}")
    again = read(tmp_path / f"g.{suffix}")
    back = encode(again.attributes(), graph.node_names, {})
    assert columns(back) == columns(made)
    assert back.y.tolist() == [4, -1, -1]
    if suffix == "graphml":  # as another program reads it
        other = nx.read_graphml(tmp_path / "g.graphml")
        assert other.nodes["b"] == {"k<=u&": 1.0, "n": pytest.approx(0.1), "y": 4}
        assert other.graph["node_default"] == {"k<=u&": 0.0, "k<=v": 0.0, "n": 0.0}


def test_attributes_of_npz_in_both_layouts(tmp_path):
    links = scipy.sparse.csr_array(([1.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    words = scipy.sparse.csr_array(np.array([[0, 2.0], [0, 0], [1, 0]]))
    parts = {
        f"{prefix}_{name}": value
        for prefix, matrix in (("adj", links), ("attr", words))
        for name, value in (
            ("data", matrix.data),
            ("indices", matrix.indices),
            ("indptr", matrix.indptr),
            ("shape", matrix.shape),
        )
    }
    np.savez(tmp_path / "netgan.npz", **parts, labels=[1, 0, 1])
    dense = {key: value for key, value in parts.items() if key.startswith("adj")}
    names = ["u", "v"]
    np.savez(tmp_path / "dense.npz", **dense, attr_matrix=words.toarray(), attr_names=names)
    for name, expected in (("netgan", ["x0", "x1"]), ("dense", names)):
        made = encode(
            read(tmp_path / f"{name}.npz", undirected=True).attributes(), ["0", "1", "2"], {}
        )
        assert made.names == expected and made.x.tolist() == words.toarray().tolist()
    bad = parts | {"attr_shape": (4, 2)}
    np.savez(tmp_path / "bad.npz", **bad)
    reading = read(tmp_path / "bad.npz", undirected=True)  # readable as a graph
    with pytest.raises(GraphFormatError, match="attributes that cannot be read"):
        reading.attributes()


def test_attributes_of_graph_objects_and_gexf(tmp_path):
    graph = nx.Graph([("b", "a"), ("b", "c")])
    graph.nodes["a"].update(age=3, tags=["x"], kind="u")
    graph.nodes["c"].update(age=np.int64(5))
    made = encode(read_networkx(graph).attributes(), ["a", "b", "c"], {})
    assert columns(made) == {"age": [3, 0, 5], "age is missing": [0, 1, 0], "kind=u": [1, 0, 0]}
    graph.nodes["a"].pop("tags")
    graph.nodes["c"].update(age=5)  # networkx 3.7 writes one type of numbers only
    nx.write_gexf(graph, tmp_path / "g.gexf")
    assert columns(encode(read(tmp_path / "g.gexf").attributes(), ["a", "b", "c"], {})) == columns(
        made
    )
    assert read_networkx(nx.path_graph(3)).attributes() is None


def test_attributes_of_pyg():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, y = torch.tensor([[1.0, 2], [3, 4], [5, 6]]), torch.tensor([0, 2, 1])
    data = Data(x=x, edge_index=edge_index, y=y, node_names=["c", "b", "a"])
    made = encode(read_pyg(data).attributes(), ["a", "b", "c"], {"x1": "drop"})
    assert columns(made) == {"x0": [5, 3, 1]} and made.y.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.full((2, 2), 1e300, dtype=torch.double), "not finite in single precision"),
        (torch.tensor([[1.0], [torch.nan]]), "not finite in single precision"),
    ],
)
def test_numbers_beyond_single_precision_are_refused(x, message):
    with pytest.raises(GraphFormatError, match=message):
        numbers_of_nodes("Data", ["a", "b"], x.numpy(), None, None)


def test_classes_of_other_nodes_are_refused():
    with pytest.raises(GraphFormatError, match="3 classes of 2 nodes"):
        numbers_of_nodes("g.npz", ["a", "b"], np.eye(2), None, np.arange(3))


def test_repeated_entries_of_a_sparse_matrix_add_up():
    parts = {"data": [1.0, 2.0, 3.0], "indices": [0, 0, 1], "indptr": [0, 2, 3], "shape": [2, 2]}
    matrix, _, _ = read_stored({f"attr_{name}": np.array(part) for name, part in parts.items()})
    table = AttributeTable("g.npz", ["a", "b"], {}, matrix, ["u", "v"])
    assert encode(table, ["a", "b"], {}).x.tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_half_precision_of_another_kind_is_read():
    x = torch.tensor([[1.5], [2.0]], dtype=torch.bfloat16)
    table = attributes_of_pyg(Data(x=x), ["a", "b"])
    assert table is not None and table.matrix.tolist() == [[1.5], [2.0]]
