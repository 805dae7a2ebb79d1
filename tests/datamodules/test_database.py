"""A database becomes a graph for each kind of relations, on nodes that all of them share."""

import copy
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.datamodules.database import DatabaseDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.schema import read_schema
from tests.apps.book.conftest import server  # noqa: F401  # a fixture

duckdb = pytest.importorskip("duckdb", reason="no duckdb: install the extra 'tables'")

REGIONS = ["north", "south"]
PERSONS = [(k, 10 * k, REGIONS[k % 2]) for k in range(9, 0, -1)]
ACCOUNTS = [(k, ["current", "savings"][k % 3 == 0], k / 2) for k in range(1, 10)]
OWNS = [(1, 1), (1, 2), (2, 3), (9, 9), (4, 5), (5, 4)]
PAYS = [(1, 2, 5.0, "2026-01-03"), (2, 1, 7.5, "2026-02-01"), (2, 1, 9.0, "2026-03-01"),
        (9, 3, 1.25, "2026-06-30"), (4, 4, 1.0, "2026-01-01")]  # fmt: skip
TABLES = {
    "persons": ("id,age,region", PERSONS),
    "accounts": ("nr,type,rank", ACCOUNTS),
    "owns": ("person,account", OWNS),
    "pays": ("payer,payee,eur,day", PAYS),
}
SCHEMA = {
    "nodes": {
        "person": {
            "table": "persons.csv",
            "id": "id",
            "private": {"age": [0, 30.5, 60, 100], "region": REGIONS},
        },
        "account": {
            "table": "accounts.csv",
            "id": "nr",
            "private": {"type": ["current", "savings"]},
            "public": ["rank"],
        },
    },
    "relations": {
        "owns": {
            "table": "owns.csv",
            "between": ["person", "account"],
            "keys": ["person", "account"],
        },
        "pays": {
            "table": "pays.csv",
            "between": ["account", "account"],
            "keys": ["payer", "payee"],
            "amount": "eur",
            "amount_max": 8,
            "time": "day",
            "window": ["2026-01-01", "2026-06-30"],
        },
    },
}


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """Folder of the tables and of ``schema.yaml``; it is not the current one."""
    folder = tmp_path / "bank"
    folder.mkdir()
    for name, (header, rows) in TABLES.items():
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return folder


def changed(path, value):
    """The schema with one value more, another one or, if it is None, one less."""
    schema = copy.deepcopy(SCHEMA)
    *sections, word = path.split(".")
    section = schema
    for each in sections:
        section = section[each]
    section[word] = value
    if value is None:
        del section[word]
    return schema


def written(folder, schema):
    (folder / "schema.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    return DatabaseDataModule(folder / "schema.yaml")


def pairs_of(database, name):
    """Edges of a kind by the ids in the tables."""
    kind = database.relation(name)
    kind.setup("fit")
    left, right = (database.node_names(node) for node in kind.given.between)
    shift = kind.space.num_left or 0
    return {(int(left[i]), int(right[j - shift])) for i, j in kind.records.edges.tolist()}


def test_equal_ids_of_two_tables_are_different_nodes_with_columns_of_both(bank):
    database = DatabaseDataModule(bank / "schema.yaml")
    owns = database.relation("owns")
    assert pairs_of(database, "owns") == set(OWNS)
    assert (owns.kind, owns.num_nodes, owns.records.num_left) == ("bipartite", 18, 9)
    found = owns.records.private_columns
    assert list(found.domains) == ["person.age", "person.region", "account.type"]
    assert found.right == ("account.type",)
    places = [[min((age > 30) + (age >= 60), 2), REGIONS.index(region), 0]
              for _, age, region in sorted(PERSONS)]  # fmt: skip
    types = [[0, 0, int(kind == "savings")] for _, kind, _ in ACCOUNTS]
    order = [int(name) - 1 for name in database.node_names("person")]
    assert found.values[:9].tolist() == [places[k] for k in order]
    order = [int(name) - 1 for name in database.node_names("account")]
    assert found.values[9:].tolist() == [types[k] for k in order]
    public = owns.records.attributes[:, owns.records.attribute_names.index("account.rank")]
    assert public.tolist() == [0] * 9 + [ACCOUNTS[k][2] for k in order]
    pays = database.relation("pays")
    assert pairs_of(database, "pays") == {(1, 2), (2, 1), (9, 3)}
    assert pays.records.private_columns.right == ()
    assert pays.records.private_columns.values.tolist() == [types[k][2:] for k in order]
    assert sorted(pays.transfers.amounts.tolist()) == [125, 500, 750, 800]
    before = owns.identity()
    (bank / "accounts.csv").write_text(
        (bank / "accounts.csv").read_text().replace("savings", "current")
    )
    (after,) = [DatabaseDataModule(bank / "schema.yaml").relation("owns").identity()]
    assert (after.edges, after.nodes) == (before.edges, before.nodes)
    assert after.rows != before.rows != b""


def test_kinds_share_secret_numbers_that_the_key_files_hold(bank, tmp_path):
    database = DatabaseDataModule(bank / "schema.yaml")
    keys = tmp_path / "keys"
    assert database.write_key(keys)
    key = keys / "account.csv"
    assert key.stat().st_mode & 0o777 == 0o600
    assert list(pd.read_csv(key, dtype=str).name) == database.node_names("account")
    again = DatabaseDataModule(bank / "schema.yaml")
    again.read_key(keys)
    for name in SCHEMA["relations"]:
        assert pairs_of(again, name) == pairs_of(database, name)
        kind, other = again.relation(name), database.relation(name)
        assert kind.records.edges.tolist() == other.records.edges.tolist()
        assert kind.records.node_names == [str(k) for k in range(kind.num_nodes)]
    kind.load_state_dict(other.state_dict())
    orders = {
        tuple(DatabaseDataModule(bank / "schema.yaml").node_names("person")) for _ in range(4)
    }
    assert len(orders) > 1
    stranger = DatabaseDataModule(bank / "schema.yaml").relation("pays")
    with pytest.raises(MisconfigurationException, match="read the key files of the run first"):
        stranger.load_state_dict(other.state_dict())
    key.write_text(key.read_text().replace(",9", ",10"))
    with pytest.raises(
        Refusal, match=r"account\.csv: no key of the nodes account\ngive the folder"
    ):
        again.read_key(keys)
    named = written(bank, {**SCHEMA, "names": "ids"})
    assert not named.write_key(keys)
    assert pairs_of(named, "owns") == set(OWNS)
    assert named.relation("owns").records.node_names[9] == "right:1"


def test_a_row_without_a_key_is_no_relation_and_only_the_owner_is_told(bank):
    with (bank / "owns.csv").open("a") as file:
        file.write("7,\n,7\n")
    with (bank / "pays.csv").open("a") as file:
        file.write(",1,3,2026-01-01\n")
    database = DatabaseDataModule(bank / "schema.yaml")
    assert pairs_of(database, "owns") == set(OWNS)
    assert pairs_of(database, "pays") == {(1, 2), (2, 1), (9, 3)}
    assert "; 2 rows without an id)" in database.relation("owns").summary
    assert "; 1 rows without an id)" in database.relation("pays").summary
    kinds = [database.relation(name) for name in SCHEMA["relations"]]
    assert not any("without" in text for kind in kinds for text in kind.assumptions + kind.notes)


def test_keys_of_a_table_to_itself_without_direction_and_in_the_table_of_the_nodes(bank):
    database = written(bank, changed("relations.pays.directed", False))
    assert {tuple(sorted(pair)) for pair in pairs_of(database, "pays")} == {(1, 2), (3, 9)}
    assert database.relation("pays").kind == "undirected"
    (bank / "accounts.csv").write_text("nr,type,rank,owner\n" + "".join(
        f"{','.join(map(str, row))},{row[0] if row[0] < 5 else ''}\n" for row in ACCOUNTS
    ))  # fmt: skip
    database = written(bank, changed("relations.owns", {
        "table": "accounts.csv", "between": ["person", "account"], "keys": ["owner", "nr"],
    }))  # fmt: skip
    assert pairs_of(database, "owns") == {(k, k) for k in range(1, 5)}


def forms(bank, form, request):
    """The database in one form, with the edges of those who own current accounts only."""
    schema = changed("relations.owns.where", "account <> '9'")
    if form == "postgresql":
        source = request.getfixturevalue("server") + "/postgres"
        postgres = pytest.importorskip("adbc_driver_postgresql.dbapi")
        types = {str: "text", int: "int", float: "numeric"}
        with postgres.connect(source, autocommit=True) as connection:
            for name, (header, rows) in TABLES.items():
                columns = zip(
                    header.split(","), (types[type(cell)] for cell in rows[0]), strict=True
                )
                for sql in (
                    f"CREATE TABLE {name} ({', '.join(map(' '.join, columns))})",
                    f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}",
                ):
                    connection.cursor().execute(sql)
    elif form == "duckdb":
        source = "duckdb:///bank.duckdb"
        with duckdb.connect(str(bank / "bank.duckdb")) as connection:
            for name in TABLES:
                file = bank / f"{name}.csv"
                connection.execute(f"CREATE TABLE {name} AS FROM read_csv('{file}')")
    for part in schema["nodes"], schema["relations"]:
        for section in part.values():
            name = section["table"].removesuffix(".csv")
            frame = pd.read_csv(bank / f"{name}.csv")
            if form == "parquet":
                section["table"] = f"{name}.parquet"
                frame.to_parquet(bank / f"{name}.parquet")
            elif form == "python":
                section["table"] = frame
            elif form == "no header":
                section["header"] = list(frame.columns)
                text = (bank / f"{name}.csv").read_text().partition("\n")[2]
                (bank / f"{name}.csv").write_text(text)
            else:
                section["table"] = name
    if form == "python":
        frame = schema["relations"]["owns"]["table"]
        schema["relations"]["owns"] |= {"table": frame[frame.account < 9], "where": None}
        return DatabaseDataModule(schema)
    return written(bank, schema | ({"source": source} if form in ("duckdb", "postgresql") else {}))


@pytest.mark.parametrize("form", ["parquet", "duckdb", "python", "no header", "postgresql"])
def test_every_source_gives_the_same_graphs(bank, form, request):
    database = forms(bank, form, request)
    database.check()
    assert pairs_of(database, "owns") == set(OWNS) - {(9, 9)}
    assert pairs_of(database, "pays") == {(1, 2), (2, 1), (9, 3)}
    assert sorted(database.relation("pays").transfers.amounts.tolist()) == [125, 500, 750, 800]
    columns = database.relation("owns").records.private_columns
    savings = columns.values[9:, 2].nonzero().flatten().tolist()
    assert {int(database.node_names("account")[k]) for k in savings} == {3, 6, 9}


OTHER = {"table": "owns.csv", "between": ["person", "account"], "keys": ["person", "account"]}
WRONG = {
    "a word of the schema": (
        "relatoins",
        {"a": 1},
        "schema: 'relatoins' is unknown, did you mean relations?",
    ),
    "no nodes": ("nodes", None, "schema: nodes is missing"),
    "a word of a relation": (
        "relations.owns.betwen",
        ["person"],
        "relations.owns: 'betwen' is unknown, did you mean between?",
    ),
    "no keys": ("relations.owns.keys", None, "relations.owns: keys is missing\nexpected two"),
    "one key": ("relations.owns.keys", ["person"], "relations.owns: keys: \"['person']\""),
    "one key twice": ("relations.owns.keys", ["person"] * 2, "'person' twice"),
    "unknown nodes": (
        "relations.owns.between",
        ["persom", "account"],
        "relations.owns.between: 'persom' is no kind of nodes, did you mean person?",
    ),
    "a direction between two tables": (
        "relations.owns.directed",
        True,
        "relations.owns.directed: relations of person and account have sides",
    ),
    "no bound": (
        "relations.pays.amount_max",
        None,
        "counts; larger ones are clipped\nset it from public knowledge, such as a limit",
    ),
    "no window": ("relations.pays.window", None, "relations.pays: window is missing"),
    "secret nodes": (
        "nodes.person.private",
        True,
        "nodes.person: nodes are public here: that a row of their table exists is no secret",
    ),
    "no domain": (
        "nodes.person.private",
        {"age": []},
        "nodes.person: private, age: '[]' is no list of values",
    ),
    "columns alone": ("nodes.person.private", ["age"], "expected private columns with all their"),
    "private and public": (
        "nodes.account.public",
        ["type"],
        "nodes.account.public: 'type' is private\nname it in one of both",
    ),
    "nodes of no relation": (
        "nodes.shop",
        {"ids": ["a", "b"]},
        "nodes.shop: no relation has such nodes\nleave it out",
    ),
    "ids and a table": (
        "nodes.account.ids",
        ["a"],
        "nodes.account: 'table' is unknown\nexpected ids",
    ),
    "one table of two kinds of nodes": (
        "nodes.account",
        {"table": "persons.csv", "id": "id"},
        "nodes.account: its table is that of nodes.person",
    ),
    "rows in two kinds": (
        "relations.again",
        OTHER,
        "relations.again: a row may be in relations.owns as well, and would cost the epsilon of both",
    ),
    "one name twice": ("relations.person", OTHER, "'person' is no name, or that of two tables"),
    "a unit": (
        "relations.pays.unit",
        "row",
        "pays: unit: 'row' is not right\nexpected relation or",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_schema_is_refused_before_a_table_is_opened(fault):
    path, value, said = WRONG[fault]
    with pytest.raises(Refusal) as error:
        DatabaseDataModule(changed(path, value))
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) <= 5
    assert not any(word in str(error.value) for word in ("--", "columns.", "nodes.domains"))


def test_no_value_of_any_type_ends_in_another_error():
    odd = [5, 1.5, True, "", "x", [], ["x"], [["x"], {}], {}, {"x": 1}, {1: ["a", 5]}]
    paths = [f"{part}.{name}.{word}" for part in ("nodes", "relations") for name in SCHEMA[part]
             for word in (*SCHEMA[part][name], "header", "where", "unit", "directed", "time_zone")]  # fmt: skip
    for path in [*paths, "nodes.person", "relations.owns", "nodes", "relations", "source", "names"]:
        for value in odd:
            try:
                DatabaseDataModule(changed(path, value))
            except Refusal as error:
                assert len(str(error).splitlines()) <= 5


@pytest.mark.parametrize(
    ("table", "text", "said"),
    [
        (
            "owns",
            "person,account\n1,1\n77,2\n",
            ", the first in line 3\nexpected edges between a left and a right node\nadd the id to its",
        ),
        (
            "pays",
            "payer,payee,eur,day\n1,2,3,2026-01-01\n\n1,77,1,2026-01-01\n",
            "not among the 9 ids of nodes: 1, the first in line 4\nexpected edges between ids of the",
        ),
        ("persons", "id,age,region\n77,3,north\n77,4,south\n", "line 3: its id was on line 2"),
        ("persons", "id,age\n77,3\n", "no column 'region'\nthe columns are age"),
        (
            "owns",
            "persons,account\n77,1\n",
            "no column 'person'\nthe columns are 'persons', 'account'",
        ),
        ("owns", None, "owns.csv: no such file"),
        ("persons", None, "persons.csv: no such file"),
    ],
)
def test_a_wrong_table_is_named_with_its_line_and_without_a_value(bank, table, text, said):
    if text is None:
        (bank / f"{table}.csv").unlink()
    else:
        (bank / f"{table}.csv").write_text(text)
    database = DatabaseDataModule(bank / "schema.yaml")
    with pytest.raises(Refusal) as error:
        database.setup("fit")
    assert said in str(error.value)
    assert str(error.value).startswith(f"{bank / 'schema.yaml'}: ")
    assert len(str(error.value).splitlines()) <= 5
    assert "77" not in str(error.value).replace(str(bank), "")
    if "the first in" not in said:
        with pytest.raises(Refusal, match=r"schema\.yaml: "):
            DatabaseDataModule(bank / "schema.yaml").check()


@pytest.mark.parametrize(
    ("first", "second", "are_apart"),
    [
        ("kind = 'O'", " KIND = 'd' ", True),
        ("kind = 'O'", "kind = 'o'", False),
        ("kind = 'O'", "other = 'D'", False),
        ("kind = 'O'", None, False),
        ("kind = 'yes'", "kind = 'true'", False),
        ("kind = 'O' OR 1 = 1", "kind = 'D'", False),
        ("kind = '01'", "kind = '1'", False),
    ],
)
def test_rows_of_one_table_are_in_two_kinds_only_if_no_row_can_be_in_both(first, second, are_apart):
    schema = changed("relations.owns.where", first)
    schema["relations"]["again"] = {**OTHER, "where": second, "table": "./owns.csv"}
    if are_apart:
        assert list(read_schema(schema).relations) == ["owns", "pays", "again"]
    else:
        with pytest.raises(Refusal, match="would cost the epsilon of both"):
            read_schema(schema)


def test_the_built_in_database_is_the_same_each_time():
    database, again = DatabaseDataModule("small_database"), DatabaseDataModule()
    for name, relation in database.schema.relations.items():
        assert relation.table.equals(again.schema.relations[name].table)
    assert [len(database.table(node).ids) for node in database.schema.nodes] == [1000, 1300, 60]
    database.setup("fit")
    owns, buys = database.relation("owns"), database.relation("buys")
    assert (owns.num_edges, buys.num_edges) == (1550, 3000)
    degrees = [kind.records.edges[:, 0].bincount(minlength=1000).double() for kind in (owns, buys)]
    assert float(pd.Series(degrees[0]).corr(pd.Series(degrees[1]))) > 0.15
    age = dict(
        zip(
            database.table("person").ids,
            database.table("person").columns["person.age"],
            strict=True,
        )
    )
    ids = database.node_names("person")
    pairs = pd.DataFrame(owns.records.edges.numpy(), columns=["person", "account"])
    spans = pairs.groupby("account").person.agg(
        lambda few: abs(age[ids[min(few)]] - age[ids[max(few)]])
    )
    assert (spans[pairs.groupby("account").size() == 2] <= 5).mean() > 0.9


def test_names_of_columns_of_a_file_without_them_are_its_own(bank):
    schema = changed("nodes.person.header", ["id", "age"])
    with pytest.raises(Refusal, match=r"persons\.csv, line 1: expected 2 cells"):
        written(bank, schema).check()
    schema["nodes"]["person"]["header"] = ["id", "age", "place"]
    with pytest.raises(Refusal, match=r"no column 'region'\nthe columns are age, place"):
        written(bank, schema).check()
    header = ["person", "accounts"]
    with pytest.raises(Refusal, match=r"no column 'account'\nthe columns are 'person', 'accounts'"):
        written(bank, changed("relations.owns.header", header)).check()


BERKA = Path(os.environ.get("LIGHTNING_DPG_DATA", "/absent")) / "tables/berka"


@pytest.mark.skipif(not BERKA.is_dir(), reason="no tables of Berka")
def test_berka_needs_names_for_its_columns_only(tmp_path):
    disp = {"table": "disp.tsv", "header": ["id", "client", "account", "kind"],
            "between": ["client", "account"], "keys": ["client", "account"]}  # fmt: skip
    schema = {
        "nodes": {
            "client": {
                "table": "client.tsv",
                "header": ["id", "born", "sex", "district"],
                "id": "id",
                "private": {"sex": ["F", "M"]},
            },
            "account": {
                "table": "account.tsv",
                "header": ["id", "district", "opened", "frequency"],
                "id": "id",
                "private": {"frequency": ["M", "W", "T"]},
            },
            "bank": {"ids": ["AB", "CD", "EF", "GH", "IJ", "KL", "MN", "OP", "QR", "ST", "UV", "WX", "YZ"]},
        },
        "relations": {
            "owns": {**disp, "where": "kind = 'O'"},
            "disposes": {**disp, "where": "kind = 'D'"},
            "orders": {
                "table": "order.tsv",
                "header": ["id", "account", "bank", "other", "amount", "kind"],
                "between": ["account", "bank"],
                "keys": ["account", "bank"],
                "amount": "amount",
                "amount_max": 1500,
            },
        },
    }  # fmt: skip
    for file in BERKA.glob("*.tsv"):
        shutil.copy(file, tmp_path)
    database = written(tmp_path, schema)
    database.setup("fit")
    sizes = {name: database.relation(name).num_edges for name in database.schema.relations}
    assert (sizes["owns"], sizes["disposes"]) == (4500, 869)
    orders = database.relation("orders")
    assert len(orders.transfers.amounts) == 6471
    assert orders.num_nodes == 4500 + 13
