"""One graph through every source of tables: equal records, equal counts, equal releases."""

import re
import shutil
from functools import partial

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import (
    Columns,
    EdgeListDataModule,
    EdgeTableDataModule,
    Nodes,
)
from lightning_dpg.graph.edge_statistics import EdgeStatistics, HoldsStatistics, exact_mixing
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.methods import (
    BTER,
    DK2,
    AggregationPerturbation,
    Attributed,
    NeighborVotes,
    NodeNeighborVotes,
)
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from tests.apps.book.conftest import server  # noqa: F401  # a fixture
from tests.training import quiet_trainer, release_edges

pytestmark = pytest.mark.usefixtures("ids_in_order")

pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
duckdb = pytest.importorskip("duckdb")

SOURCES = [
    "postgresql",
    "expression of postgresql",
    pytest.param("spark", marks=pytest.mark.slow),
    pytest.param("expression of spark", marks=pytest.mark.slow),
]


def power_law_pairs():
    """Pairs with text ids, loops and repeated rows, whose text order is not the natural one."""
    graph = nx.barabasi_albert_graph(150, 4, seed=0)
    edges = [(f"n{i}", f"n{j}") for i, j in graph.edges]
    return [*edges, ("n3", "n3"), edges[0], edges[7][::-1]]


SPARK = "spark://local[2]"


@pytest.fixture(scope="session")
def spark():
    """A session of two threads in one small JVM that starts fast."""
    sql = pytest.importorskip("pyspark.sql", reason="no pyspark: install the extra 'spark'")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark needs: apt-get install openjdk-17-jre-headless")
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": small,
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": False,
    }
    builder = sql.SparkSession.builder.master(SPARK.removeprefix("spark://"))
    session = builder.config(map=settings).getOrCreate()
    yield session
    session.stop()


def stored(kind, rows, folder, request):
    """Source and settings of a table of Arrow, kept by an engine."""
    if kind == "parquet":
        parquet.write_table(rows, folder / "rows.parquet")
        return str(folder / "rows.parquet"), {}
    if kind == "duckdb":
        with duckdb.connect(str(folder / "bank.duckdb")) as connection:
            connection.register("rows", rows)
            connection.execute("CREATE TABLE transfers AS SELECT * FROM rows")
        return f"duckdb:///{folder}/bank.duckdb", {"table": "transfers"}
    if kind.startswith("expression"):
        return expression(kind.split()[-1], rows, folder, request), {}
    if kind == "postgresql":
        postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
        url = request.getfixturevalue("server") + "/postgres"
        with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("transfers", rows, mode="replace")
        return url, {"table": "transfers"}
    # Spark reads files by their path: the user need not have a catalog.
    parquet.write_table(rows, folder / "rows.parquet")
    request.getfixturevalue("spark")
    return SPARK, {"table": f"parquet.`{folder}/rows.parquet`"}


def expression(kind, rows, folder, request):
    """Ibis table expression of a server, in which a second engine keeps tables as well."""
    ibis = pytest.importorskip("ibis")
    if kind == "spark":
        pytest.importorskip(
            "pyarrow_hotfix", reason="no pyarrow_hotfix, which Ibis needs for Spark"
        )
        backend = ibis.pyspark.connect(request.getfixturevalue("spark"))
        parquet.write_table(rows, folder / "rows.parquet")
        table = backend.read_parquet(folder / "rows.parquet")
    else:
        pytest.importorskip("psycopg", reason="no psycopg, which Ibis needs for PostgreSQL")
        source, settings = stored(kind, rows, folder, request)
        user, host, port = re.split("[@:]", source.partition("://")[2].partition("/")[0])
        backend = ibis.postgres.connect(host=host, port=int(port), user=user, database="postgres")
        table = backend.table(settings["table"])
    EdgeTableDataModule(table.limit(5)).setup("fit")
    return table


def released(kind, num_nodes, edges):
    """Released tensors under noise that the test fixes."""
    method = kind(num_nodes)
    method.ledger.budget = Budget(1.0, 0.0)
    method._noise = NoiseSource(unsafe_seed=5)
    release_edges(method, edges)
    return method.released_state()


def assert_equal_to_memory(data, expected):
    """Compare records, counts and releases with those of edges in memory."""
    records = data.records
    assert records.node_names == expected.records.node_names
    there, here = records.statistics, EdgeStatistics(expected.edges, expected.space)
    assert there.num_edges() == here.num_edges()
    assert torch.equal(there.degrees(), here.degrees())
    degrees = here.degrees().numpy()
    classes = np.frexp(degrees)[1].astype(np.int64)
    assert (there.mixing(classes) == here.mixing(classes)).all()
    values = np.stack([np.arange(len(degrees)) % 3, classes % 5], axis=1)
    mixed = there.column_mixing(values, [3, 5], 2)
    assert (mixed == exact_mixing(expected.edges.numpy(), degrees, values, [3, 5], 2)).all()
    most = int(np.sort(degrees)[-2:].sum()) // 2  # which leaves some edges out
    assert (there.joint_degrees(most) == here.joint_degrees(most)).all()
    slots = -(-degrees // 2)
    counted = here.wedges(slots, classes, 1, 3)
    assert (there.wedges(slots, classes, 1, 3) == counted).all()
    assert 0 < counted[1].sum() < counted[0].sum()
    rows = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0)).double()
    adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.double)
    adjacency[tuple(expected.edges.T)] = adjacency[tuple(expected.edges.flip(1).T)] = 1
    sums = here.neighbor_sums(rows)
    assert torch.equal(there.neighbor_sums(rows), sums)
    torch.testing.assert_close(sums, adjacency @ rows, rtol=1e-12, atol=1e-12)
    for kind in (BTER, DK2):  # which read all that others read
        one = released(kind, data.num_nodes, there)
        other = released(kind, data.num_nodes, expected.edges)
        assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert isinstance(data.records, HoldsStatistics)
    assert torch.equal(records.edges, expected.edges)
    assert not isinstance(data.records, HoldsStatistics)
    assert data.assumptions == expected.assumptions
    assert data.identity() == expected.identity()


@pytest.mark.parametrize("kind", SOURCES)
def test_a_table_is_the_graph_of_its_rows_in_memory(kind, tmp_path, request):
    pairs = power_law_pairs()
    rows = pa.table({"source": [i for i, _ in pairs], "target": [j for _, j in pairs]})
    source, settings = stored(kind, rows, tmp_path, request)
    data = EdgeTableDataModule(source, **settings)
    data.setup("fit")
    expected = EdgeListDataModule(pairs)
    expected.setup("fit")
    assert_equal_to_memory(data, expected)


def test_sums_over_neighbors_are_added_up_by_the_server(tmp_path, request, monkeypatch):
    rows = pa.table({"source": [1, 2, 2, 3, 5], "target": [2, 1, 3, 3, 1]})
    source, settings = stored("postgresql", rows, tmp_path, request)
    data = EdgeTableDataModule(source, undirected=True, **settings)
    data.setup("fit")
    there, values = data.records.statistics, torch.tensor([[1, 0.5], [10, 0], [100, 0], [7, 7]])
    expected = [[17.0, 7.0], [101.0, 0.5], [10.0, 0.0], [1.0, 0.5]]
    assert there.neighbor_sums(values.double()).tolist() == expected
    from lightning_dpg.datamodules import table_statistics  # of Ibis, an extra

    monkeypatch.setattr(table_statistics, "_MOST_NUMBERS", 4)  # one column at a time
    assert there.neighbor_sums(values.double()).tolist() == expected


@pytest.mark.parametrize("kind", SOURCES[:2])  # sums of Spark are compared above
def test_classes_are_learned_from_a_table_whose_edges_stay_there(kind, tmp_path, request):
    graph = nx.planted_partition_graph(3, 40, 0.2, 0.02, seed=0)
    pairs = [*graph.edges, (4, 4), next(iter(graph.edges))]
    words = np.random.default_rng(0).random((len(graph), 6)) < 0.3
    words |= np.arange(6) // 2 == np.arange(len(graph))[:, None] // 40
    columns = {f"word {word}": words[:, word].astype(int) for word in range(6)}
    people = pa.table({"node": [*graph], "y": [node // 40 for node in graph]} | columns)
    parquet.write_table(people, tmp_path / "people.parquet")
    nodes = Nodes(attributes=str(tmp_path / "people.parquet"))
    rows = pa.table({"source": [i for i, _ in pairs], "target": [j for _, j in pairs]})
    source, settings = stored(kind, rows, tmp_path, request)
    there = EdgeTableDataModule(source, nodes=nodes, **settings)
    here = EdgeListDataModule([(str(i), str(j)) for i, j in pairs], nodes=nodes)
    few_steps = partial(AggregationPerturbation, encoder_steps=2, classifier_steps=2)
    for method in (NeighborVotes, NodeNeighborVotes, few_steps):
        tensors = [classified(method, data) for data in (there, here)]
        assert all(torch.equal(value, tensors[1][name]) for name, value in tensors[0].items())
    assert isinstance(there.records, HoldsStatistics)
    assert there.assumptions == here.assumptions
    assert torch.equal(there.records.edges, here.edges)


def classified(method, data):
    """Released tensors of a method of classes under noise that the test fixes."""
    torch.manual_seed(0)  # of the weights of networks
    module = method(rank=4, split_seed=0, train_fraction=0.1)
    module._noise = NoiseSource(unsafe_seed=5)
    quiet_trainer(PrivacyAccountant(4.0, 1e-5, book=NO_BOOK)).fit(module, data)
    return module.released_state()


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_private_columns_and_edges_in_one_database_are_those_of_files(kind, tmp_path, request):
    pairs = [*nx.planted_partition_graph(2, 30, 0.3, 0.02, seed=0).edges]
    people = pa.table(
        {
            "id": [str(node) for node in range(61)],  # the last one has no edge
            "age": [None if node % 7 == 0 else 20 + node for node in range(61)],
            "town": [f"town {node % 4}" for node in range(61)],
        }
    )
    rows = pa.table({"source": [str(i) for i, _ in pairs], "target": [str(j) for _, j in pairs]})
    source, settings = stored(kind, rows, tmp_path, request)
    if kind == "duckdb":
        with duckdb.connect(str(tmp_path / "bank.duckdb")) as connection:
            connection.register("rows", people)
            connection.execute("CREATE TABLE people AS SELECT * FROM rows")
    else:
        postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
        with postgres.connect(source, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("people", people, mode="replace")
    private = {
        "private_columns": ["age", "town"],
        "domains": {"age": [18, 40, 100], "town": ["town 0", "town 1", "town 2"]},
        "names": "ids",
    }
    parquet.write_table(people, tmp_path / "people.parquet")
    there = EdgeTableDataModule(source, nodes=Nodes(attributes="people(id)", **private), **settings)
    nodes = Nodes(attributes=str(tmp_path / "people.parquet"), **private)
    here = EdgeListDataModule([(str(i), str(j)) for i, j in pairs], nodes=nodes)
    one, other = (with_rows(data) for data in (there, here))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert isinstance(there.records, HoldsStatistics) == (kind != "duckdb")
    assert there.identity() == here.identity()


def with_rows(data):
    """Released tensors of edges and private columns under noise that the test fixes."""
    module = Attributed()
    module._noise = NoiseSource(unsafe_seed=5)
    quiet_trainer(PrivacyAccountant(4.0, 0.0, row_epsilon=4.0, book=NO_BOOK)).fit(module, data)
    return module.released_state()


@pytest.mark.slow
def test_facebook_through_a_server(tmp_path, request, data_root):
    expected = EdgeListDataModule("Facebook", nodes="from_edges")
    expected.setup("fit")
    ids = np.array([int(name) for name in expected.graph.node_names])[expected.edges.numpy()]
    rows = pa.table({"source": ids[:, 0], "target": ids[:, 1]})
    source, settings = stored("postgresql", rows, tmp_path, request)
    data = EdgeTableDataModule(source, **settings)
    data.setup("fit")
    assert data.num_edges == 88_234
    assert_equal_to_memory(data, expected)


def test_degrees_of_directed_and_bipartite_tables(tmp_path, request):
    rows = pa.table({"source": ["a", "b", "b", "b"], "target": ["x", "x", "y", "x"]})
    source, settings = stored("postgresql", rows, tmp_path, request)
    for kind, degrees in {"directed": [1, 2, 0, 0, 0, 0, 2, 1], "bipartite": [1, 2, 2, 1]}.items():
        data = EdgeTableDataModule(source, kind=kind, **settings)
        data.setup("fit")
        assert data.records.statistics.degrees().tolist() == degrees


def test_ids_of_a_server_are_those_of_a_file(tmp_path, request):
    # Spaces of any kind around an id go; case, accents and the way an accent is written stay.
    ids = ["a ", "\ta", "\u2003a\u00a0", "A", "é", "e\u0301", "b"]
    rows = pa.table({"source": ids, "target": [f"x{place}" for place in range(6)] + [" "]})
    source, settings = stored("postgresql", rows, tmp_path, request)
    parquet.write_table(rows, tmp_path / "ids.parquet")
    found = []
    for each in ((source, settings), (str(tmp_path / "ids.parquet"), {})):
        data = EdgeTableDataModule(each[0], **each[1], columns=Columns(missing_ids="drop"))
        data.setup("fit")
        found.append((data.records.node_names, data.records.statistics.degrees().tolist()
                      if each[1] else data.space.degrees(data.edges).tolist()))  # fmt: skip
    assert found[0] == found[1]
    assert len(found[0][0]) == 4 + 6


def test_uuids_of_a_server_are_texts(request):
    postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = request.getfixturevalue("server") + "/postgres"
    one, other = ("00000000-0000-0000-0000-00000000000" + end for end in "12")
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE guids AS SELECT '{one}'::uuid AS source, '{other}'::uuid AS target"
        )
    data = EdgeTableDataModule(url, table="guids")
    data.setup("fit")
    assert (data.records.node_names, data.num_edges) == ([one, other], 1)
    assert data.records.edges.tolist() == [[0, 1]]


def test_a_server_that_refuses_is_named_without_a_password():
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(GraphFormatError, match=r"127\.0\.0\.1:1: connection refused"):
        EdgeTableDataModule("postgresql://me@127.0.0.1:1/bank", table="t").setup("fit")
    with pytest.raises(GraphFormatError, match="PGPASSWORD") as refused:
        EdgeTableDataModule("postgresql://me:secret@127.0.0.1:1/bank", table="t").setup("fit")
    assert "secret" not in str(refused.value)


def test_a_table_that_the_user_must_not_read(request):
    postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = request.getfixturevalue("server") + "/postgres"
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE hidden AS SELECT 1 AS source, 2 AS target")
        cursor.execute("CREATE ROLE guest LOGIN")
    guest = url.replace("owner@", "guest@")
    with pytest.raises(GraphFormatError, match="permission denied for table hidden"):
        EdgeTableDataModule(guest, table="hidden").setup("fit")
    with pytest.raises(GraphFormatError, match="did you mean hidden"):
        EdgeTableDataModule(url, table="hiden").setup("fit")


def test_tables_of_the_server_may_have_any_name_and_temporary_ones_may_be_denied(request):
    postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = request.getfixturevalue("server") + "/postgres"
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for name, rows in {
            "edge_pairs": "(1, 5), (5, 3)",
            "nodes": "(1, 1), (3, 3), (5, 5)",
        }.items():
            cursor.execute(
                f"CREATE TABLE {name} AS SELECT * FROM (VALUES {rows}) AS t (payer, payee)"
            )
            cursor.execute(f"GRANT SELECT ON {name} TO PUBLIC")
        cursor.execute("CREATE ROLE reader LOGIN")
        cursor.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
    for user, is_counted in (("owner@", True), ("reader@", False)):
        data = EdgeTableDataModule(
            url.replace("owner@", user),
            table="edge_pairs",
            columns=Columns("payer", "payee"),
            nodes="nodes(payer)",
        )
        data.setup("fit")
        assert isinstance(data.records, HoldsStatistics) == is_counted
        assert data.space.degrees(data.records.edges).tolist() == [1, 1, 2]
        assert data.records.edges.tolist() == [[0, 2], [1, 2]]


def test_rows_that_come_between_the_counts_and_the_edges_are_refused(tmp_path, request):
    postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
    rows = pa.table({"source": [1, 2], "target": [2, 3]})
    url, settings = stored("postgresql", rows, tmp_path, request)
    data = EdgeTableDataModule(url, **settings)
    data.setup("fit")
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO transfers VALUES (0, 1)")
    assert data.records.statistics.degrees().tolist() == [1, 2, 1]
    with pytest.raises(GraphFormatError, match="the table changed while it was read"):
        _ = data.records.statistics.edges
