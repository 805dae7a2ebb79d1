"""Servers of tables that refuse, stay silent or go away: errors without a password, soon."""

import socket

import pytest

from lightning_dpg.datamodules import Columns, EdgeTableDataModule, server_engines
from lightning_dpg.datamodules.table_source import open_engine
from lightning_dpg.graph.node_names import GraphFormatError
from tests.apps.book.conftest import server  # noqa: F401  # a fixture

pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")


@pytest.fixture(scope="module")
def bank(server):  # noqa: F811  # the fixture above
    """URL of a database with transfers, and with a role that must give a password."""
    run(
        f"{server}/postgres",
        "CREATE SCHEMA other",
        "CREATE TABLE other.transfers AS SELECT 1 AS payer, 2 AS payee, 5 AS amount",
        'CREATE TABLE other."Transfers 2026" AS SELECT * FROM other.transfers',
        "CREATE ROLE locked LOGIN PASSWORD 'right'",
    )
    setting = "SELECT setting FROM pg_settings WHERE name = 'hba_file'"
    path = open_engine(f"{server}/postgres").arrow(setting).column(0)[0].as_py()
    lines = "('host all locked all scram-sha-256'), ('host all all all trust')"
    run(
        f"{server}/postgres",
        f"COPY (SELECT * FROM (VALUES {lines}) AS lines) TO '{path}'",
        "SELECT pg_reload_conf()",
    )
    return f"{server}/postgres"


def run(url, *statements):
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)


def refused(source, **settings):
    """Text of the error of a source, of at most five lines."""
    with pytest.raises(GraphFormatError) as error:
        EdgeTableDataModule(source, **{"table": "other.transfers", **settings}).setup("fit")
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert len(str(error.value).splitlines()) <= 5
    return str(error.value)


@pytest.mark.parametrize(
    ("user", "database", "reason"),
    [
        ("owner", "bank", 'database "bank" does not exist'),
        ("nobody", "postgres", 'role "nobody" does not exist'),
        ("locked", "postgres", "password authentication failed"),
        ("owner", "postgres?sslmode=require", "server does not support SSL"),
    ],
)
def test_a_server_that_does_not_let_in_says_why(bank, user, database, reason, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "wrong")
    address = f"postgresql://{user}@{bank.rpartition('@')[2].partition('/')[0]}/{database}"
    text = refused(address)
    assert text.startswith(f"{bank.rpartition('@')[2].partition('/')[0]}: {reason}")
    assert "wrong" not in text


@pytest.mark.slow
def test_a_server_that_stays_silent_is_named_in_time(monkeypatch):
    monkeypatch.setattr(server_engines, "_SECONDS", 2)  # the least that libpq takes
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert refused(f"postgresql://me@127.0.0.1:{port}/bank").startswith(
            f"127.0.0.1:{port}: timeout expired\nexpected a PostgreSQL server that answers within 2 s"
        )


@pytest.mark.parametrize("middle", [":hunter2", ":hun/hunter2", ":hun?hunter2", ":hun#hunter2"])
def test_a_password_in_a_url_is_refused_without_it(middle):
    text = refused(f"postgresql://me{middle}@127.0.0.1:1/bank")
    assert "PGPASSWORD" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("place", ["127.0.0.1:1", "localhost:1"])
def test_a_master_of_spark_that_refuses_is_named(place):
    pytest.importorskip("pyspark", reason="no pyspark: install the extra 'spark'")
    assert refused(f"spark://{place}").startswith(f"spark://{place}: connection refused\nexpected")


def test_spark_without_java_says_so(monkeypatch):
    pytest.importorskip("pyspark", reason="no pyspark: install the extra 'spark'")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert "Spark needs Java 17" in refused("spark://local[2]")


def test_a_password_among_the_options_of_a_url_is_kept_nowhere(fails):
    source = "postgresql://me@127.0.0.1:1/bank?password=hunter2"
    args = ("--data", "EdgeTableDataModule", "--data.source", source, "--data.table", "t")
    err = fails("fit", "--config", "chung_lu", *args, "--privacy.epsilon", "1")
    assert "PGPASSWORD" in err
    assert "hunter2" not in err


def test_options_of_libpq_reach_the_server(bank):
    source = f"{bank}?options=-c%20search_path%3Dother"
    columns = Columns("payer", "payee")
    data = EdgeTableDataModule(source, table="transfers", columns=columns)
    data.setup("fit")
    assert data.num_edges == 1
    text = refused(source, table="transfers", where="amont > 1", columns=columns)
    assert text.endswith("no column 'amont'\ndid you mean amount?")


def test_a_server_that_goes_away_while_it_is_read(bank):
    engine = open_engine(bank)
    number = engine.arrow("SELECT pg_backend_pid()").column(0)[0].as_py()
    with pytest.raises(GraphFormatError, match="the connection ended while the table was read"):
        for place, _ in enumerate(engine.batches("SELECT * FROM generate_series(1, 3000000)")):
            if place == 0:
                run(bank, f"SELECT pg_terminate_backend({number})")
    with pytest.raises(GraphFormatError):
        engine.define("edge_pairs", "SELECT 1 AS low", keep=True)
        engine.arrow("SELECT 1")


def test_a_name_that_is_advised_works(bank):
    text = refused(bank, table="transfers 2026")
    assert text.endswith('did you mean other."Transfers 2026" or other.transfers?')
    data = EdgeTableDataModule(bank, table='other."Transfers 2026"')
    data.setup("fit")
    assert data.num_edges == 1
