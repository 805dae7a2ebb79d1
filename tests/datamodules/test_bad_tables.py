"""Tables that cannot be read are refused in at most five lines that name a way out."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from lightning_dpg.datamodules import Columns, EdgeTableDataModule, Nodes
from lightning_dpg.datamodules.duckdb_engine import DuckDBEngine
from lightning_dpg.datamodules.server_engines import PostgresEngine, SparkEngine
from lightning_dpg.graph.node_names import GraphFormatError

pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folder of a good table, and of some that are not."""
    folder = tmp_path_factory.mktemp("tables")
    tables = {
        "good": {"payer": [1, 2, 3], "payee": [2, 3, 4], "amount": [1.0, 2.0, 3.0]},
        "nulls": {"source": [1, None, 3], "target": [2, 3, None]},
        "blank": {"source": ["a", " ", "nan"], "target": ["b", "c", "d"]},
        "floats": {"source": [1.5, 2.0], "target": [2.5, 3.0]},
        "negative": {"source": [1, -2], "target": [2, 3]},
        "loops": {"source": [1, 2], "target": [1, 2]},
        "digits": {"source": [Decimal("1.0")], "target": [Decimal("10.0")]},
        "nested": {"source": [["a"]], "target": [["b"]]},
    }
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    whole = (folder / "good.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:-30])
    middle = len(whole) // 3
    (folder / "hole.parquet").write_bytes(whole[:4] + bytes(middle) + whole[4 + middle :])
    for name, text in CSV.items():
        (folder / f"{name}.csv").write_text(text, encoding="latin-1")
    with duckdb.connect(str(folder / "bank.duckdb")) as connection:
        good = folder / "good.parquet"
        connection.execute(f"CREATE TABLE transfers AS SELECT * FROM '{good}'")
        connection.execute("CREATE TABLE customers AS SELECT 1 AS id UNION ALL SELECT 2")
        connection.execute("CREATE TABLE people AS SELECT 'a' AS id")
        connection.execute("CREATE TABLE nobody AS SELECT 1 AS id WHERE false")
        connection.execute("CREATE SCHEMA risk")
        connection.execute('CREATE TABLE risk."big ones" AS FROM transfers')
        # The table has the name of one of its columns, and its schema that of another one.
        connection.execute(
            "CREATE TABLE risk.payment AS SELECT *, 1 AS payment, {'rowid': 1} AS risk FROM transfers"
        )
    return folder


CSV = {
    "headless": "a,b,5\nb,c,6\n",
    "ragged": "source,target\na,b\nc\nd,e,f\n",
    "umlaut": "source,target\nm\xfcller,b\n",
    "one": "source,target\na,b\n",
    "other": "payer,payee\na,b\n",
}
SYSTEM_COLUMNS = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", '"ctid"', "CTID"]
NOT_ONE = "is no condition in SQL"
OTHER_ROWS = "reads other rows, draws at random or calls an unknown function"
FILES = {
    "a column": (
        "good",
        {"columns": Columns("payr", "payee")},
        "no column 'payr'\nthe columns are 'payer'",
    ),
    "one column": ("good", {"columns": Columns("payer")}, "set both"),
    "NULL": ("nulls", {}, r"2 of 3 rows lack an id, (.*\n)*.*--missing-ids drop"),
    "blank ids": ("blank", {}, "2 of 3 rows lack an id"),
    "floats": ("floats", {}, "a value of type float that is no whole number"),
    "a negative id": ("negative", {}, "an id below 0"),
    "loops": ("loops", {}, "no edges"),
    "no row": ("good", {"where": "amount > 100"}, r"where \(amount > 100\) matches no row"),
    "half a condition": ("good", {"where": "amount >"}, NOT_ONE),
    "two statements": ("good", {"where": "1=1); DROP TABLE x; SELECT (1"}, NOT_ONE),
    "another clause": ("good", {"where": "true) HAVING (true"}, NOT_ONE),
    "a column in where": ("good", {"where": "amont > 1"}, "no column 'amont'\ndid you mean amount"),
    "no condition": ("good", {"where": " "}, NOT_ONE),
    "other rows": ("good", {"where": "amount > (SELECT avg(amount) FROM t)"}, OTHER_ROWS),
    "a list of other rows": ("good", {"where": "payer IN (SELECT payee FROM t)"}, OTHER_ROWS),
    "types in where": (
        "good",
        {"where": "payer::text > 5"},
        "the engine cannot read it .*\na column of text needs a cast",
    ),
    "chance": ("good", {"where": "random() < 0.5"}, OTHER_ROWS),
    "a function": ("good", {"where": "query_to_xml('SELECT 1') < amount"}, OTHER_ROWS),
    "numbers of rows": ("good", {"where": "file_row_number < 2"}, "no column 'file_row_number'"),
    "physical rows": ("good", {"where": "good.rowid < 2"}, "no column 'rowid'"),
    "ids by chance": ("good", {"where": "uuid() < '8'"}, OTHER_ROWS),
    "digits": ("digits", {}, "a value of type Decimal"),
    "a nested column": ("nested", {}, "a value of type list"),
    "letter case": (
        "good",
        {"columns": Columns("PAYER", "payee")},
        "no column 'PAYER'\nthe columns are 'payer'",
    ),
    "a hole": ("hole", {}, "not a whole Parquet file"),
    "names": ("good", {"nodes": {"names": "none"}}, "names must be 'auto', 'ids' or 'numbers'"),
    "half a file": ("cut", {}, "not a whole Parquet file\n.*cut short"),
    "no file": ("absent", {}, "no such file"),
    "a table of a file": ("good", {"table": "t"}, "leave it out"),
    "nodes of a file": ("good", {"nodes": "t(id)"}, "has no second table"),
    "a side column": (
        "good",
        {"nodes": Nodes(side_column="s"), "kind": "bipartite"},
        "is a column of the table of nodes",
    ),
    "attributes of a graph": (
        "good",
        {"nodes": Nodes(attributes="from_graph")},
        "a table of edges holds no attributes of nodes\ngive their table: --attributes people",
    ),
    "attributes of no database": (
        "good",
        {"nodes": Nodes(attributes="people(id)")},
        "has no second table\ngive a file of attributes",
    ),
    "a policy alone": ("good", {"nodes": Nodes(policy={"age": "drop"})}, "no attributes are used"),
    "nodes of another type": (
        "good",
        {"nodes": ["1", "2", "3", "x7"]},
        "not among the 4 ids of nodes: 1",
    ),
    "an edge of no row": (
        "good",
        {"nodes": ["1", "2"]},
        "good.parquet: edges with an id that is not among the 2 ids of nodes: 2",
    ),
}
TABLES = {
    "no table": ({}, "table is not set\nit holds customers, nobody, people, transfers"),
    "a schema": ({"table": "big ones"}, 'did you mean risk."big ones"'),
    "no nodes": ({"table": "transfers", "nodes": "nobody(id)"}, "'nobody': no rows"),
    "a table": ({"table": "transfer"}, "no table 'transfer'\ndid you mean transfers"),
    "an id outside": (
        {"table": "transfers", "nodes": "customers(id)"},
        "bank.duckdb: edges with an id that is not among the 2 ids of nodes: 2, the first",
    ),
    "a node table": ({"table": "transfers", "nodes": "customer(id)"}, "did you mean customers"),
    "a node column": ({"table": "transfers", "nodes": "customers(ids)"}, "did you mean id"),
    "a node type": (
        {"table": "transfers", "nodes": "people(id)"},
        "not among the 1 ids of nodes: 3",
    ),
    "a quoted node column": (
        {"table": "transfers", "nodes": 'customers("i d")'},
        "customers has no column 'i d'\ndid you mean id",
    ),
    "no column": ({"table": "transfers", "nodes": "customers"}, r"such as customers\(id\)"),
}


def assert_refused(source, settings, text):
    with pytest.raises(Exception, match=text) as refused:
        EdgeTableDataModule(source, **settings).setup("fit")
    assert len(str(refused.value).splitlines()) <= 5


@pytest.mark.parametrize("case", FILES)
def test_a_file_is_refused(place, case):
    name, settings, text = FILES[case]
    assert_refused(f"{place}/{name}.parquet", settings, text)


ROW_NUMBERS = [
    *("payment.rowid", "PAYMENT.RowId", '"rowid"', 'payment."rowid"', "risk.payment.rowid"),
    *("bank.risk.payment.rowid", "risk.rowid", "payment.payment.rowid", "(rowid)", "payment.*"),
]


@pytest.mark.parametrize("name", ROW_NUMBERS)
def test_row_numbers_are_no_columns(place, name):
    settings = {"table": "risk.payment", "where": f"{name} % 2 = 0"}
    assert_refused(
        f"duckdb:///{place}/bank.duckdb", settings, "no column|no condition|unknown func"
    )


@pytest.mark.parametrize(
    "where",
    [
        *(
            "payment = 1",
            "payment.payment = 1",
            '"payment"."PAYMENT" = 1',
            "payment.risk.rowid = 1",
        ),
        *(
            "amount BETWEEN 0 AND 9 AND NOT payer IN (7, 8)",
            "round(amount, 1) < 9 OR abs(payer) > 1",
        ),
        *(
            "CAST(payer AS VARCHAR) LIKE '_' AND lower('A') = 'a'",
            "payer % 7 < 7 AND payee IS NOT NULL",
        ),
        "CASE WHEN coalesce(amount, 0) > -1 THEN date '2024-01-01' <= current_date ELSE false END",
    ],
)
def test_a_condition_on_one_row_is_read(place, where):
    data = EdgeTableDataModule(f"duckdb:///{place}/bank.duckdb", table="risk.payment", where=where)
    data.setup("fit")
    assert data.num_edges == 3


@pytest.mark.parametrize(
    ("engine", "where", "text"),
    [
        *((PostgresEngine, f"payment.{name} = 1", "no column") for name in SYSTEM_COLUMNS),
        (PostgresEngine, "public.payment.ctid = '(0,1)'", "no column"),
        (PostgresEngine, "other.ctid = '(0,1)'", "no column"),
        (SparkEngine, "shuffle(array(amount, payer))[0] = 1", OTHER_ROWS),
        (SparkEngine, "monotonically_increasing_id() = 1", OTHER_ROWS),
        (SparkEngine, "randn() > 0 OR rand() > 0", OTHER_ROWS),
        (SparkEngine, "payment._metadata.row_index = 1", "no column"),
        (SparkEngine, "input_file_name() = 'a'", OTHER_ROWS),
        (DuckDBEngine, "columns(*) > 1", OTHER_ROWS),
        (DuckDBEngine, "[x for x in [amount]][1] = 1", OTHER_ROWS),
        (DuckDBEngine, "row_number() OVER () = 1", OTHER_ROWS),
        (DuckDBEngine, "nextval('s') = 1", OTHER_ROWS),
    ],
)
def test_what_other_rows_decide_is_refused_in_each_dialect(engine, where, text):
    closed = object.__new__(engine)  # a condition is checked before it is sent
    closed.origin, closed.known_columns = "bank", ["payer", "payee", "amount", "payment"]
    with pytest.raises(GraphFormatError, match=text):
        closed.predicate(where, closed.table("payment"))


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_refused(place, case):
    settings, text = TABLES[case]
    assert_refused(f"duckdb:///{place}/bank.duckdb", settings, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("headless.csv", "the columns are 'a', 'b', '5'"),
        ("ragged.csv", "line 3: 1 cells, and line 2 has 2"),  # and no row is left out silently
        ("umlaut.csv", "line 2: expected text in UTF-8"),
        ("o*.csv", "files with the same columns"),
        ("", "expected the pattern of its files"),
        ("*.json", "no table"),
    ],
)
def test_files_are_refused(place, source, text):
    assert_refused(f"{place}/{source}", {}, text)


def test_rows_without_an_id_are_dropped_and_counted(place):
    data = EdgeTableDataModule(f"{place}/blank.parquet", columns=Columns(missing_ids="drop"))
    data.setup("fit")
    assert data.num_edges == 1
    assert "2 rows without an id" in data.summary


def test_what_is_no_table_is_refused():
    for source in (3, "rows.xlsx", "https://a.b/c.parquet", "duckdb:///absent.duckdb"):
        with pytest.raises(GraphFormatError):
            EdgeTableDataModule(source, table="t").setup("fit")


def test_a_url_without_a_host_is_the_local_server():
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(GraphFormatError, match=r"absent-folder.*\nexpected a PostgreSQL server"):
        EdgeTableDataModule("postgresql:///bank?host=/absent-folder", table="t").setup("fit")


def test_the_connection_cannot_write(place):
    data = EdgeTableDataModule(f"duckdb:///{place}/bank.duckdb", table="transfers")
    data.setup("fit")
    with pytest.raises(duckdb.Error, match="read-only"):
        data._engine._connection.execute("CREATE TABLE copied AS SELECT 1")
