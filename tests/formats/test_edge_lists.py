"""Edge lists of every common form are read alike, and others are refused with a way out."""

import csv
import gzip
import io
import json
import re

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.io import GraphFormatError, read, read_graph, write_graph
from lightning_dpg.graph.graph import make_graph, undirected_edges

EDGES = [("C-1", "C-2"), ("C-2", "C-10"), ("C-10", "C-3")]
AMOUNTS = ["0.50", "10.50", "99.99"]


def names_of(graph):
    names = graph.node_names
    return {frozenset((names[i], names[j])) for i, j in undirected_edges(graph).tolist()}


@pytest.fixture
def read_text(tmp_path):
    def read_text(content, name="transfers.csv", columns=(), **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read(path, Columns(*columns), **options)

    return read_text


def table(header, rows, **dialect):
    file = io.StringIO()
    csv.writer(file, **{"lineterminator": "\n", **dialect}).writerows([header, *rows])
    return file.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_columns_are_found_by_the_header(read_text, delimiter, end, quoting):
    rows = [(a, u, v, "x") for a, (u, v) in zip(AMOUNTS, EDGES, strict=True)]
    header = ["amount", "from_account", "to_account", "note"]
    dialect = {"delimiter": delimiter, "lineterminator": end, "quoting": quoting}
    reading = read_text(table(header, rows, **dialect))
    assert names_of(reading.graph) == {*map(frozenset, EDGES)}
    assert reading.graph.node_names == ["C-1", "C-2", "C-3", "C-10"]
    assert "columns 2 and 3 of 4; header 'from_account', 'to_account'" in reading.summary


@pytest.mark.parametrize("columns", [("payer id", "shop"), ("2", "4")])
def test_columns_that_the_user_names(read_text, columns):
    rows = [(a, u, "2024-01-01", v) for a, (u, v) in zip(AMOUNTS, EDGES, strict=True)]
    text = table(["amount", "payer id", "day", "shop"], rows)
    # Numbers do not say whether the first row is a header, and the public nodes do.
    nodes = ["C-1", "C-2", "C-3", "C-10"] if columns[0] == "2" else None
    graph = read_text(text, columns=columns, nodes=nodes).graph
    assert names_of(graph) == {*map(frozenset, EDGES)}


@pytest.mark.parametrize("header", ["source,target", "FromNodeId\tToNodeId", "src dst", "from|to"])
def test_headers_of_integer_files(read_text, header):
    mark = next((mark for mark in ",\t|" if mark in header), " ")
    graph = read_text(f"{header}\n" + "".join(f"{i}{mark}{i + 1}\n" for i in range(9, 12))).graph
    assert graph.node_names == ["9", "10", "11", "12"] and graph.num_edges == 6


def test_quoted_names_hold_separators(read_text):
    graph = read_text('"Smith, C-1","Müller ""M"", C-2"\n"Müller ""M"", C-2","Ö\'Neil"\n').graph
    assert graph.node_names == ['Müller "M", C-2', "Smith, C-1", "Ö'Neil"]


def test_line_on_what_was_read(read_text):
    rows = [(1, "C-7", "C-3"), (2, "C-3", "C-7"), (3, "C-7", "C-3"), (4, "C-3", "C-3")]
    rows += [(5, "C-7", f"C-{k}") for k in range(100, 1200)]
    text = table(["day", "sender", "receiver"], rows, delimiter=";")
    assert read_text(text).summary == (
        "read transfers.csv: 1,102 nodes, 1,101 edges (semicolon; columns 2 and 3 of 3; header "
        "'sender', 'receiver'; 1 repeated, 1 loops, edges whose direction is dropped: 1); e.g. C-7, C-3, ...; "
        "dropped from the edges: day"
    )


RECORDS = [{"from": u, "to": v} for u, v in EDGES]


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("e.json", json.dumps(RECORDS), [".json is no known format", ".edges", ".npz"]),
        ("e.jsonl", "\n".join(map(json.dumps, RECORDS)), [".jsonl is no known format"]),
        ("e.parquet", "PAR1", ["not a whole Parquet file|pyarrow reads Parquet"]),
        ("edges", "1 2\n2 3\n", ["no suffix is no known format", "rename"]),
        ("e.npz.gz", "1 2\n", [".gz is no known format"]),
        ("e.txt", json.dumps(RECORDS), ["line 1", "JSON"]),
        ("e.txt", "\n".join(map(json.dumps, RECORDS)), ["line 1", "JSON"]),
        ("e.txt", "<graphml/>", ["line 1", "XML"]),
        (
            "e.csv",
            "0.50,C-1,C-2\n10.50,C-2,C-3\n",
            ["line 1", "column 1 is an amount", "columns.source"],
        ),
        ("e.csv", "2024-01-01,C-1,C-2\n", ["line 1", "or a date", "columns.source"]),
        ("e.csv", "customer,shop\nC-1,C-2\nC-2,C-3\n", ["line 1", "header", "columns.source"]),
        ("e.csv", "C-1,C-2\nNaN,C-3\n", ["1 of 2 rows", "in line 2, column 1"]),
        ("e.csv", "C-1,C-2\n,C-3\n,\n", ["2 of 3 rows", "line 2, column 1"]),
        ("e.csv", "1,2,5\n3,,7\n", ["line 2, column 2", "--missing-ids drop"]),
        ("e.tsv", "1\t2\t5\n\t3\t7\n", ["line 2, column 1", "missing_ids"]),
        ("e.txt", "17 18\n18 19\n19 nan\n20 17\n", ["1 of 4 rows", "line 3, column 2"]),
        ("e.csv", "C-1,\n,C-3\n", ["each row lacks an id"]),
        ("e.csv", "C-1,C-2\nSmith, John,C-3\n", ["line 2: 3 cells, and line 1 has 2", "quotes"]),
        ("e.csv", '"C-1,C-2\nC-2,C-3\n', ["line 1", "quotes that close"]),
        ("e.csv", 'C-1,C-2\nC-2,"C-3\nC-3,C-1\n', ["line 2", "quotes that close"]),
        ("e.csv", "from,to\n", ["no line behind the header"]),
        ("e.csv", "from;to\n", ["no line behind the header"]),
    ],
)
def test_what_is_no_edge_list_is_refused(read_text, name, content, parts):
    with pytest.raises(GraphFormatError) as error:
        read_text(content, name)
    message = str(error.value)
    assert name in message and len(message.splitlines()) <= 5
    # Rows are private, and a log of errors may be anywhere.
    assert not re.search(r"C-|Smith|10\.50|2024|1[789]\b", message.rpartition(name)[2])
    assert all(any(way in message for way in part.split("|")) for part in parts), message


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        (("payer", "shop"), "no column 'payer'"),
        (("from", "from"), "two different columns"),
        (("1", "4"), "columns 1 and 4 of 3"),
        (("0", "1"), "columns 0 and 1 of 3"),
    ],
)
def test_bad_columns(read_text, columns, part):
    with pytest.raises(GraphFormatError) as error:
        read_text("from,to,day\nC-1,C-2,5\n", columns=columns)
    assert part in str(error.value) and "columns.source" in str(error.value)


@pytest.mark.parametrize("mutual", [0, 2, 39, 40])
def test_no_number_of_mutual_rows_decides_about_directions(read_text, mutual):
    once = [(i, i + 1) for i in range(40)]
    text = "".join(f"{i} {j}\n" for i, j in [*once, *((j, i) for i, j in once[:mutual])])
    assert read_text(text).graph.num_edges == 80
    assert read_text("% sym unweighted\n" + text).graph.num_edges == 80


def test_ids_beside_the_node_list(read_text):
    nodes = ["C-1", "C-2", "C-3", "C-10", "C-11"]
    rows = table(["from", "to"], EDGES)
    graph = read_text(rows, nodes=nodes).graph
    assert graph.node_names == nodes and names_of(graph) == {*map(frozenset, EDGES)}
    with pytest.raises(GraphFormatError, match=r"not among the 3 ids of nodes: 1, .* line 4"):
        read_text("from,to\nC-1,C-2\nC-2,C-3\nC-3,C-10\n", nodes=nodes[:3])
    with pytest.raises(
        GraphFormatError,
        match=r"2 ids of nodes: 1, the first in line 3\n(.*\n)+.*--nodes",
    ):
        read_text("0 1\n# comment\n1 7\n", nodes=["0", "1"])
    assert read_text("2 1\n", nodes=["0", "1", "2"]).graph.edge_index.tolist() == [[1, 2], [2, 1]]


def test_damaged_archives(tmp_path):
    write_graph(make_graph(torch.tensor([[0, 1]]), 2), tmp_path / "g.npz")
    content = (tmp_path / "g.npz").read_bytes()
    for damaged in (content[:-30], content[:60], b"PK\3\4" + content[9:], b"", b"PK"):
        (tmp_path / "g.npz").write_bytes(damaged)
        with pytest.raises(GraphFormatError, match=r"g\.npz: not a graph"):
            read_graph(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", adj_data=np.ones(1), adj_indices=[0], adj_indptr=3, adj_shape=2)
    with pytest.raises(GraphFormatError, match=r"g\.npz: not a graph"):
        read_graph(tmp_path / "g.npz")


def test_compressed_formats(tmp_path):
    graph = nx.Graph([("a", "b"), ("b", "c")])
    for suffix, write in [("graphml", nx.write_graphml), ("gexf", nx.write_gexf)]:
        write(graph, tmp_path / f"g.{suffix}.gz")
        assert names_of(read_graph(tmp_path / f"g.{suffix}.gz")) == {*map(frozenset, graph.edges)}
    (tmp_path / "g.tsv.gz").write_bytes(gzip.compress(b"a\tb\nb\tc\n"))
    assert names_of(read_graph(tmp_path / "g.tsv.gz")) == {*map(frozenset, graph.edges)}


MISSING = ("", "nan", "nat", "none", "null", "<na>", "n/a", "#n/a")
NAMES = st.text(
    st.one_of(st.sampled_from("ab01-,;|\"'#%[{< _"), st.characters(exclude_categories=["Cs"])),
    min_size=1,
).filter(
    lambda name: (
        name.strip() == name
        and not {*name} & {*"\t\r\n\0"}
        and name.casefold() not in MISSING
        and not re.fullmatch(r"[0-9]+[.]0+", name)
        and name.isprintable()
    )
)


@settings(max_examples=20)
@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
@example(["source", "target", "x"])
@example(["007", "7", "08"])
@example(["1", "2", "3", "a"])
@example(["-4", "2", "3"])
@example(["1 2", "3 4", "5,6"])
@example(["alpha", "beta", "1", "2", "3", "4"])
@example(["0.5", "2024-01-01", "12:30"])
def test_what_was_written_is_read_again(tmp_path_factory, names):
    names = sorted(names)
    pairs = torch.tensor([(i, i + 1) for i in range(len(names) - 1)])
    graph = make_graph(pairs, len(names), names)
    expected = {frozenset((names[i], names[j])) for i, j in undirected_edges(graph).tolist()}
    folder = tmp_path_factory.mktemp("names")
    for suffix in (".edges", ".graphml", ".npz"):
        write_graph(graph, folder / f"g{suffix}")
        assert names_of(read_graph(folder / f"g{suffix}")) == expected, suffix


def test_plain_names_are_written_as_they_are(tmp_path):
    names = ["C-1", "Jean V", "b, c", 'Jean "V"']
    write_graph(make_graph(torch.tensor([[0, 1], [2, 3]]), 4, names), tmp_path / "g.edges")
    assert (tmp_path / "g.edges").read_text() == 'source\ttarget\nC-1\tJean V\nb, c\t"Jean ""V"""\n'
