"""Edges in tables, arrays and lists of pairs are read as the lines of an edge list are."""

import csv
from datetime import datetime

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from lightning_dpg.datamodules import Columns
from lightning_dpg.datamodules.loading import load_reading
from lightning_dpg.formats.conversion import NodeSet
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.node_names import is_missing

# A loop, an edge twice in one orientation, and one twice in both; few enough are in both.
PATH = [(i, i + 1) for i in range(40)]
PAIRS = [*PATH, (3, 3), (7, 8), (6, 5)]


def named(reading):
    """Edges by names, made without our order of nodes."""
    names = reading.graph.node_names
    return {frozenset((names[i], names[j])) for i, j in undirected_edges(reading.graph).tolist()}


def as_table(pairs, one="from_account", other="to_account", **columns):
    first, second = zip(*pairs, strict=True)
    return pd.DataFrame({one: first, "amount": 0.5, other: second, **columns})


TEXT = [(f"CUST-{i}", f"CUST-{j}") for i, j in PAIRS]
SOURCES = {
    "table": as_table(PAIRS),
    "text": as_table(TEXT),
    "category": as_table(TEXT).astype({"from_account": "category", "to_account": "string"}),
    "nullable": as_table(PAIRS).astype({"from_account": "Int64"}),
    "after dropna": as_table([*PAIRS, (1, None)]).dropna(),  # whole numbers, now floats
    "two columns": pd.DataFrame(PAIRS),
    "array": np.array(PAIRS),
    "unsigned": np.array(PAIRS, dtype=np.uint64),
    "floats": np.array(PAIRS, dtype=float),  # as from loadtxt
    "array of text": np.array(TEXT),
    "array of objects": np.array(TEXT, dtype=object),
    "tensor": torch.tensor(PAIRS),
    "pairs": PAIRS,
    "tuple of lists": tuple(map(list, TEXT)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_reads_what_an_edge_list_of_the_same_rows_says(kind, tmp_path):
    reading = load_reading(SOURCES[kind])
    rows = TEXT if named(reading) == named_by_networkx(TEXT) else PAIRS
    assert named(reading) == named_by_networkx(rows)
    with (tmp_path / "e.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    expected = load_reading(tmp_path / "e.csv")
    assert torch.equal(reading.graph.edge_index, expected.graph.edge_index)
    assert reading.graph.node_names == expected.graph.node_names
    assert reading.node_set is expected.node_set is NodeSet.LINES
    assert "41 nodes, 40 edges" in reading.summary
    assert "1 repeated, 1 loops, edges whose direction is dropped: 1" in reading.summary
    assert (
        reading.summary.partition("; dropped")[0].partition("; 1 repeated")[2]
        == expected.summary.partition("; 1 repeated")[2]
    )


def named_by_networkx(rows):
    graph = nx.Graph(rows)
    return {frozenset(map(str, pair)) for pair in graph.edges if pair[0] != pair[1]}


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["payer", "who", "when"], ("payer", "when")),
        (["payer", "who", "when"], ("1", "3")),
        ([0, 1, 2], ("0", "2")),  # labels come before numbers
        ([5, 6, 7], ("1", "3")),
        (["who", "dst", "src"], None),
        (["to account", "amount", "from account"], None),
    ],
)
def test_columns_by_label_by_number_or_by_a_known_header(labels, columns):
    graph = nx.path_graph(9)
    chosen = {"dst": (1, 2)}.get(labels[1], (0, 2))
    cells = [[str(other) for other in range(100, 108)] for _ in range(3)]
    for place, ends in zip(chosen, zip(*graph.edges, strict=True), strict=True):
        cells[place] = list(ends)
    table = pd.DataFrame(dict(zip(labels, cells, strict=True)))
    assert named(load_reading(table, columns=Columns(*columns or ()))) == named_by_networkx(
        graph.edges
    )


def test_a_list_of_nodes_stands_beside_a_table():
    reading = load_reading(as_table(PAIRS), nodes=[str(i) for i in range(50)])
    assert reading.node_set is NodeSet.LIST and reading.graph.num_nodes == 50
    assert load_reading(PAIRS, nodes="from_edges").node_set is NodeSet.LINES
    with pytest.raises(GraphFormatError, match="not among the 40 ids of nodes: 1"):
        load_reading(as_table(PAIRS), nodes=[str(i) for i in range(40)])


BOTH = [pair for i, j in PATH for pair in ((i, j), (j, i))]


def test_rows_in_both_directions_have_no_direction_as_in_files():
    assert "direction" not in load_reading(BOTH).summary  # each of them twice: undirected
    reading = load_reading(BOTH[:59])
    assert reading.graph.num_edges == 60 and "direction is dropped: 29" in reading.summary


WIDE = {"id": [1], "who": ["A"], "when": ["B"]}


@pytest.mark.parametrize(
    ("source", "columns", "parts"),
    [
        (pd.DataFrame(WIDE), None, ["3 columns", "'id', 'who', 'when'", "columns.source"]),
        (pd.DataFrame(WIDE), ("who", "whom"), ["no column 'whom'", "'id', 'who', 'when'"]),
        (pd.DataFrame(WIDE), ("who", "who"), ["two different columns"]),
        (pd.DataFrame(WIDE), ("0", "2"), ["two different columns"]),
        (pd.DataFrame([[1, 2]], columns=["from", "from"]), None, ["two columns", "'from'"]),
        (pd.DataFrame(), None, ["table: 0 columns"]),
        (pd.DataFrame({"from": [], "to": []}), None, ["table: no rows"]),
        # A header that was the first edge: pandas.read_csv of a file without one.
        (pd.DataFrame({"C-1": ["C-2"], "C-3": ["C-1"]}), None, ["read as a header", "header=None"]),
        (as_table([(1, 2), (2, None)]), None, ["1 of 2 rows", "row 1", "missing_ids"]),
        (as_table([("a", "b"), ("b", "NaN")]), None, ["row 1 (from 0)", "missing"]),
        (as_table([("a", "b"), ("b", pd.NA)]).astype("string"), None, ["row 1", "missing"]),
        (as_table([(1, 2), (0.5, 2)]), None, ["row 1", "float", "text or whole numbers"]),
        (as_table([("a", "b"), (datetime(2024, 1, 2), "b")]), None, ["row 1", "datetime"]),
        (as_table([("a", "b"), (-1, "b")]), None, ["row 1", "0 or more"]),
        (np.array([(1, 2), (3, -1)] * 2), None, ["row 1", "0 or more"]),
        (np.array([(1.0, 2.0), (1e300, 1.0), (1, 2)]), None, ["row 1", "float"]),
        (np.array([(True, False)] * 3), None, ["bool", "text or whole numbers"]),
        (np.ones((2, 2)), None, ["2 x 2", "two edges", "csr_array"]),
        (np.ones((3, 4)), None, ["shape (3, 4)", "(M, 2)"]),
        (np.array([[0, 1, 2], [1, 2, 3]]), None, ["shape (2, 3)", "edge_index", "(M, 2)"]),
        (np.ones(4), None, ["shape (4,)"]),
        (np.array([["a", "b", "c"]] * 3), None, ["matrix", "numbers"]),
        (np.full((3, 3), np.nan), None, ["matrix", "NaN"]),
        ([("a", "b"), ("a", "b", 3)], None, ["row 1", "tuple", "pairs"]),
        (["ab", "cd"], None, ["row 0", "str"]),
        ([], None, ["list: no rows"]),
        ([nx.path_graph(3)], None, ["list of graphs", "GraphSetDataModule"]),
        (PAIRS, ("a", "b"), ["columns.source and columns.target are for"]),
        ({"from": [1], "to": [2]}, None, ["dict is no graph", "DataFrame"]),
    ],
)
def test_refusals_name_the_place_and_the_way_out(source, columns, parts):
    with pytest.raises(GraphFormatError) as error:
        load_reading(source, columns=Columns(*columns or ()))
    said = str(error.value)
    assert all(part in said for part in parts), said
    assert len(said.splitlines()) <= 5


def test_two_rows_as_a_list_are_edges():
    assert named(load_reading([[0, 1], [1, 2]])) == {frozenset("01"), frozenset("12")}


GAPS = {
    "names": [("a", "b"), ("", "c"), ("b", "c"), ("c", "NaN"), ("c", "d"), ("null", "null")],
    "numbers": [("1", "2"), ("", "3"), ("2", "3"), ("3", ""), ("3", "17"), ("2", "17")],
    "one gap": [("1", "2"), ("2", "3"), ("3", "4"), ("4", "n/a"), ("4", "5")],
}


@pytest.mark.parametrize("rows", GAPS.values(), ids=GAPS)
@pytest.mark.parametrize("form", [".csv", ".tsv", ".txt", ".parquet", "frame", "list", "array"])
def test_rows_without_an_id_are_dropped_and_counted(rows, form, tmp_path):
    if form == ".txt" and rows is not GAPS["one gap"]:
        pytest.skip("cells between spaces are never empty")
    whole = [row for row in rows if not any(map(is_missing, row))]

    def source(rows, path):
        if form in ("frame", ".parquet"):
            table = pd.DataFrame(rows, columns=["source", "target"])
            return table.to_parquet(path) or path if form == ".parquet" else table
        if form in ("list", "array"):
            return rows if form == "list" else np.array(rows)
        mark = {".csv": ",", ".tsv": "\t", ".txt": " "}[form]
        path.write_text("".join(f"{one}{mark}{other}\n" for one, other in rows))
        return path

    given = source(rows, tmp_path / f"gaps{form}")
    dropped = load_reading(given, columns=Columns(missing_ids="drop"))
    expected = load_reading(source(whole, tmp_path / f"whole{form}"))
    assert (
        named(dropped) == named(expected) and dropped.graph.node_names == expected.graph.node_names
    )
    count = len(rows) - len(whole)
    assert f"; {count} rows without an id" in dropped.summary
    with pytest.raises(
        GraphFormatError, match=rf"{count} of {len(rows)} rows lack an id, the first"
    ):
        load_reading(given)
