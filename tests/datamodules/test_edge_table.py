"""Tables give the records, names, assumptions and identity of an edge list with the same ids."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import pytorch_lightning as pl
import torch
from pyarrow import parquet
from pytorch_lightning.loggers import CSVLogger

import lightning_dpg as dpg
from lightning_dpg.apps.audit.canaries import find_sites
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import GraphStatistics, PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, EdgeTableDataModule, Nodes
from lightning_dpg.graph.edge_statistics import HoldsStatistics
from lightning_dpg.methods import ErdosRenyi, RandomizedResponse
from lightning_dpg.run.fit import fit_method
from tests.apps.book.conftest import server  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("ids_in_order")

pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
duckdb = pytest.importorskip("duckdb")

NUMBERS = [(10, 2), (2, 10), (2, 2), (2, 30), (30, 2), (2, 30), (7, 10), (10, 7)]
NUMBERS += [(30, 10), (10, 30)]
# The natural order of these is none of text: a1 a1b a01 a2 a10 a-1 b.
NAMES = [("a10", "a2"), ("a-1", "a1"), ("a01", "a1b"), ("b", "a1"), ("b", "a2")]


def table(pairs, **more):
    columns = {"payer": [one for one, _ in pairs], "payee": [other for _, other in pairs]}
    return pa.table(columns | {name: [value] * len(pairs) for name, value in more.items()})


def bank(path, **tables):
    """A file of DuckDB with tables of Arrow."""
    with duckdb.connect(str(path)) as connection:
        for name, rows in tables.items():
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    return f"duckdb:///{path}"


def listed(tmp_path, pairs, **settings):
    path = tmp_path / "pairs.csv"
    path.write_text("payer,payee\n" + "".join(f"{one},{other}\n" for one, other in pairs))
    data = EdgeListDataModule(str(path), **settings)
    data.setup("fit")
    return data


def opened(source, **settings):
    data = EdgeTableDataModule(source, **settings)
    data.setup("fit")
    return data


def assert_same(data, expected):
    assert data.records.node_names == expected.records.node_names
    assert data.assumptions == expected.assumptions
    assert data.num_edges == expected.num_edges
    assert torch.equal(data.records.edges, expected.edges)
    assert data.identity() == expected.identity()


@pytest.mark.parametrize("kind", ["undirected", "directed", "bipartite"])
@pytest.mark.parametrize("pairs", [NUMBERS, NAMES], ids=["numbers", "names"])
def test_parquet_is_the_edge_list_of_the_same_ids(tmp_path, pairs, kind):
    parquet.write_table(table(pairs, amount=1.5), tmp_path / "pairs.parquet")
    settings = {"kind": kind, "undirected": kind == "undirected"}
    assert_same(
        opened(str(tmp_path / "pairs.parquet"), **settings), listed(tmp_path, pairs, **settings)
    )


def test_the_order_of_names_is_that_of_an_edge_list_for_odd_ids(tmp_path):
    rng = np.random.default_rng(0)
    ids = {"".join(rng.choice([*"aB1209 -_.é"], rng.integers(1, 8))).strip() for _ in range(300)}
    ids = sorted(each for each in ids - {""} if not {*each.split()} & (ids - {each}))
    pairs = [*pairwise(ids)]
    parquet.write_table(table(pairs), tmp_path / "ids.parquet")
    data = opened(str(tmp_path / "ids.parquet"))
    expected = EdgeListDataModule(pairs)
    assert data.records.node_names == expected.graph.node_names


def test_summary_counts_what_was_dropped(tmp_path):
    parquet.write_table(table(NUMBERS, amount=1.5), tmp_path / "pairs.parquet")
    data = opened(str(tmp_path / "pairs.parquet"), undirected=True)
    assert data.summary == (
        "read pairs.parquet: 4 nodes, 4 edges (Parquet; columns 'payer' and 'payee' of 3; 1 repeated, "
        "1 loops); e.g. 10, 2, ...; dropped from the edges: amount"
    )


def test_csv_files_database_and_expression_hold_one_graph(tmp_path):
    for place, part in enumerate((NAMES[:2], NAMES[2:])):
        lines = "".join(f"{one},{other}\n" for one, other in part)
        (tmp_path / f"part{place}.csv").write_text("payer,payee\n" + lines)
    url = bank(tmp_path / "bank.duckdb", calls=table(NAMES, year=2024))
    expected = listed(tmp_path, NAMES)
    assert_same(opened(str(tmp_path / "part*.csv")), expected)
    assert_same(opened(url, table="calls"), expected)
    assert "bank.duckdb: table calls: 7 nodes" in opened(url, table="calls").summary
    import ibis

    connection = ibis.duckdb.connect(str(tmp_path / "bank.duckdb"), read_only=True)
    calls = connection.table("calls")
    assert_same(opened(calls.filter(calls.year == 2024)), expected)
    release = dpg.fit(calls, method="erdos_renyi", epsilon=1.0)
    assert release.sample(0).node_names == expected.records.node_names


def test_numbers_in_csv_keep_their_zeros(tmp_path):
    (tmp_path / "calls.csv").write_text("source,target\n007,7\n7,10\n")
    assert opened(str(tmp_path / "calls.csv")).records.node_names == ["007", "7", "10"]


def test_ids_of_any_engine_are_those_of_a_file(tmp_path):
    # Spaces of any kind around an id go; case, accents and the way an accent is written stay.
    ids = ["a ", "\ta", "\u2003a\u00a0", "A", "é", "e\u0301", " "]
    pairs = [(name, f"x{place}") for place, name in enumerate(ids[:-1])]
    parquet.write_table(table(pairs), tmp_path / "ids.parquet")
    expected = EdgeListDataModule(pairs)
    found = opened(str(tmp_path / "ids.parquet"))
    assert found.records.node_names == expected.graph.node_names
    assert len(set(found.records.node_names)) == 4 + 6
    url = bank(tmp_path / "bank.duckdb", calls=table([("A", "b"), ("a", "c")]))
    with duckdb.connect(str(tmp_path / "bank.duckdb")) as connection:
        connection.execute("CREATE TABLE folded (source TEXT COLLATE NOCASE, target TEXT)")
        connection.execute("INSERT INTO folded FROM calls")
    assert opened(url, table="folded").records.node_names == ["A", "a", "b", "c"]


def test_parts_of_a_table_in_folders(tmp_path):
    for year in (2024, 2025):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        parquet.write_table(table([(year, 1), (1, 2)]), folder / "part.parquet")
    found = opened(f"{tmp_path}/**/*.parquet", where="year = 2024")
    assert found.records.node_names == ["1", "2", "2024"]


def test_edges_that_an_audit_inserts_are_counted(tmp_path):
    parquet.write_table(table(NAMES), tmp_path / "names.parquet")
    data = opened(str(tmp_path / "names.parquet"))
    before = data.num_edges
    sites = find_sites(data)
    sites.insert(torch.tensor([[0, 6], [2, 6]]))
    assert len(data.records.edges) == before + 2
    method = ErdosRenyi()
    fit_method(method, data, 1e3, 0.0)
    assert int(method.num_edges) == before + 2


def test_public_nodes_and_a_condition(tmp_path):
    url = bank(
        tmp_path / "bank.duckdb",
        calls=pa.table({"source": [1, 2, 9], "target": [2, 3, 1], "year": [2024, 2024, 2020]}),
        customers=pa.table({"id": [4, 3, 2, 1]}),
    )
    data = opened(url, table="calls", where="year = 2024", nodes="customers(id)")
    assert data.records.node_names == ["1", "2", "3", "4"]
    assert data.records.edges.tolist() == [[0, 1], [1, 2]]
    assert data.assumptions == ["the 4 nodes and their names (given as a list beside the edges)"]


def test_nodes_out_of_the_table_of_edges_are_read_off_the_private_lines(tmp_path):
    calls = pa.table({"source": [1, 2, 9], "target": [2, 3, 1], "id": [1, 2, 3]})
    url = bank(tmp_path / "bank.duckdb", calls=calls)
    data = opened(url, table="calls", where="source < 9", nodes="MAIN.Calls(id)")
    assert data.records.edges.tolist() == [[0, 1], [1, 2]]
    (assumption,) = data.assumptions
    assert "read off the private lines" in assumption


def test_attributes_and_ids_stand_in_the_database_or_in_files(tmp_path):
    calls = pa.table({"source": ["a", "b"], "target": ["b", "c"]})
    people = pa.table({"id": ["d", "b", "a", "c"], "age": [4, None, 1, 3], "kind": [1, 0, 1, 1]})
    url = bank(tmp_path / "bank.duckdb", calls=calls, people=people)
    parquet.write_table(calls, tmp_path / "calls.parquet")
    parquet.write_table(people, tmp_path / "people.parquet")
    (tmp_path / "ids.txt").write_text("b\nc\na\ne\n")
    file, policy = str(tmp_path / "people.parquet"), {"kind": "label"}
    expected = EdgeListDataModule(
        [("a", "b"), ("b", "c")], nodes=Nodes(attributes=file, policy=policy)
    )
    expected.setup("fit")
    in_files = opened(str(tmp_path / "calls.parquet"), nodes=Nodes(attributes=file, policy=policy))
    in_tables = opened(url, table="calls", nodes=Nodes(attributes="people(id)", policy=policy))
    for data in (in_files, in_tables):
        records = data.records
        assert records.node_names == ["a", "b", "c", "d"] == expected.records.node_names
        assert records.attribute_names == ["age", "age is missing"]
        assert torch.equal(records.attributes, expected.records.attributes)
        assert records.classes.tolist() == [1, 0, 1, 1] == expected.records.classes.tolist()
        assert data.assumptions == expected.assumptions
        assert data.summary.endswith("public attributes: age, kind, as 2 numbers")
        assert torch.equal(data.graph.x, expected.graph.x)
        assert data.identity() == expected.identity()
    for ids in (tmp_path / "ids.txt", f"{file}(id)", ["e", "c", "b", "a"], "from_edges"):
        data = opened(str(tmp_path / "calls.parquet"), nodes=Nodes(ids, attributes=file))
        assert data.records.node_names[:3] == ["a", "b", "c"]
        assert data.records.attributes[:3, 0].tolist() == [1, 0, 3]
    numbered = opened(url, table="calls", nodes=Nodes(names="numbers", attributes="people(id)"))
    assert sorted(numbered.records.attributes[:, 0].tolist()) == [0, 1, 3, 4]
    secret = Nodes(attributes="people(id)", policy={"kind": "private_label"}, classes="0,1")
    labels = opened(url, table="calls", nodes=secret).records.private_labels
    assert (labels.column, labels.values.tolist()) == ("kind", [1, 0, 1, 1])


def test_sides_of_a_bipartite_graph_from_two_tables(tmp_path):
    url = bank(
        tmp_path / "shop.duckdb",
        sales=pa.table({"source": ["a", "b", "b"], "target": ["x", "x", "y"]}),
        customers=pa.table({"id": ["b", "a", "c"]}),
        shops=pa.table({"id": ["y", "x"]}),
    )
    sides = Nodes(left="customers(id)", right="shops(id)")
    data = opened(url, table="sales", kind="bipartite", nodes=sides)
    assert data.records.node_names == ["a", "b", "c", "x", "y"]
    assert data.records.edges.tolist() == [[0, 3], [1, 3], [1, 4]]
    assert data.records.num_left == 3


def on_server(request, rows, **settings):
    """A table on a server, which counts it, before a method asks for its edges."""
    postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = request.getfixturevalue("server") + "/postgres"
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("pairs", rows, mode="replace")
    return opened(url, table="pairs", **settings)


def test_numbered_and_split_tables(tmp_path):
    parquet.write_table(table(NUMBERS), tmp_path / "pairs.parquet")
    data = opened(str(tmp_path / "pairs.parquet"), undirected=True, nodes=Nodes(names="numbers"))
    assert data.records.node_names == ["0", "1", "2", "3"]
    assert len(data.edges) == 4
    assert data.identity() == listed(tmp_path, NUMBERS, undirected=True).identity()
    parquet.write_table(table(NAMES), tmp_path / "names.parquet")
    held_out = {"test_fraction": 0.4, "seed": 1}
    expected = listed(tmp_path, NAMES, **held_out)
    split = opened(str(tmp_path / "names.parquet"), **held_out)
    assert 0 < len(split.edges) < len(NAMES)
    assert torch.equal(split.edges, expected.edges)
    assert torch.equal(split.test_links.edges, expected.test_links.edges)


def test_no_rows_of_a_table_decide_about_directions(tmp_path):
    pairs = [(k, k + 1) for k in range(9)] + [(1, 0)]
    parquet.write_table(table(pairs), tmp_path / "pairs.parquet")
    assert len(opened(str(tmp_path / "pairs.parquet")).edges) == 9


def test_curves_leave_the_edges_of_a_server_where_they_are(tmp_path, request):
    for method, is_read in ((ErdosRenyi(), False), (RandomizedResponse(7), True)):
        data = on_server(request, table(NAMES))
        trainer = pl.Trainer(
            max_epochs=1,
            default_root_dir=tmp_path,
            logger=CSVLogger(tmp_path / str(is_read)),
            enable_checkpointing=False,
            enable_progress_bar=False,
            callbacks=[PrivacyAccountant(8.0, 0.0, book=NO_BOOK), GraphStatistics()],
        )
        trainer.fit(method, data)
        assert isinstance(data.records, HoldsStatistics) != is_read
        assert ("nonprivate/" in next(tmp_path.glob(f"{is_read}/**/metrics.csv")).read_text()) == (
            is_read
        )
