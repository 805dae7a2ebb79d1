"""A whole database: one run a kind, one release, its tables, and what an editor cannot change."""

import itertools
import json
import re
import shutil
from datetime import datetime

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from torch_geometric.nn import HeteroConv, SAGEConv
from torch_geometric.transforms import ToUndirected

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.datamodules.database import DatabaseDataModule
from lightning_dpg.errors import BookError, CommandError
from lightning_dpg.evaluation.database import evaluate_database
from lightning_dpg.graph.drawn_tables import rows_of
from lightning_dpg.main import main
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import JOURNAL
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.release import database
from lightning_dpg.release.card.topics import ADDED_UP
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.database import open_database, verify_database
from lightning_dpg.run import database as run
from lightning_dpg.run.data import data_of_run, database_of_run
from lightning_dpg.run.database import fit_database

PERSONS, ACCOUNTS, SHOPS = 12, 15, 4


def schema(**changes):
    """Persons own accounts, one each of theirs; accounts pay; persons buy. ``changes`` are of tables."""
    rng = np.random.default_rng(0)
    tables = {
        "owns": {"person": rng.integers(PERSONS, size=ACCOUNTS), "account": np.arange(ACCOUNTS)},
        "pays": {
            "payer": np.arange(30) % ACCOUNTS,
            "payee": (np.arange(30) * 4 + 1) % ACCOUNTS,
            "amount": 1.5 + np.arange(30.0),
            "at": [f"2026-01-{1 + day % 9:02d}" for day in range(30)],
        },
        "buys": {"person": np.arange(20) % PERSONS, "shop": np.arange(20) * 7 % SHOPS},
    } | changes
    person = {"id": np.arange(PERSONS), "age": 20 + 5 * np.arange(PERSONS)}
    account = {"id": np.arange(ACCOUNTS), "type": np.array(["a", "b"])[np.arange(ACCOUNTS) % 2]}
    found = {name: pyarrow.table(columns) for name, columns in tables.items()}
    return {
        "nodes": {
            "person": {"table": pyarrow.table(person), "id": "id", "private": {"age": [0, 45, 90]}},
            "account": {
                "table": pyarrow.table(account),
                "id": "id",
                "private": {"type": ["a", "b"]},
            },
            "shop": {
                "table": pyarrow.table({"id": np.arange(SHOPS), "size": np.arange(SHOPS) * 10}),
                "id": "id",
                "public": ["size"],
            },
        },
        "relations": {
            "owns": {
                "table": found["owns"],
                "between": ["person", "account"],
                "keys": ["person", "account"],
                "exactly_one": "account",
            },
            "pays": {
                "table": found["pays"],
                "between": ["account", "account"],
                "keys": ["payer", "payee"],
                "amount": "amount",
                "amount_max": 100,
                "time": "at",
                "window": ["2026-01-01", "2026-01-31"],
            },
            "buys": {
                "table": found["buys"],
                "between": ["person", "shop"],
                "keys": ["person", "shop"],
            },
        },
    }


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return fit_database(
        schema(), epsilon=2.0, row_epsilon=1.0, out=tmp_path_factory.mktemp("run") / "run"
    )


@pytest.fixture
def release(fitted, tmp_path):
    """A copy that a test may edit."""
    return fitted.save(tmp_path / "copy")


def test_a_relation_pays_its_kind_and_a_row_all_kinds_that_read_it(fitted):
    epsilons = {kind: each.epsilon for kind, each in fitted.kinds.items()}
    assert epsilons == {"owns": 2.0, "pays": 2.0, "buys": 2.0}
    rows = {
        kind: [each["epsilon"] for each in part.statement["beside"]]
        for kind, part in fitted.kinds.items()
    }
    assert rows == {"owns": [0.5], "pays": [0.5], "buys": [0.5]}
    assert (fitted.epsilon, fitted.delta) == (2.0, 0.0)
    assert fitted.statement["nodes"]["person"]["epsilon"] == 1.0
    assert fitted.statement["nodes"]["account"]["epsilon"] == 1.0
    assert fitted.statement["nodes"]["shop"]["epsilon"] == 0.0  # without private columns
    assert "which one it is, is protected at 4" in fitted.guarantee


def test_tables_fit_together_and_a_node_has_one_row(fitted):
    tables = fitted.arrow_tables()
    assert tables["person"].column_names == ["id", "age"]
    assert tables["pays"].column_names == ["payer", "payee", "amount", "at"]
    assert sorted(tables["shop"]["size"].to_pylist()) == [0, 10, 20, 30]
    for kind, (left, right) in {
        "owns": ("person", "account"),
        "pays": ("account", "account"),
        "buys": ("person", "shop"),
    }.items():
        for column, table in enumerate((left, right)):
            keys = {*tables[kind].column(column).to_pylist()}
            assert keys <= {*tables[table]["id"].to_pylist()}
    assert sorted(tables["owns"]["account"].to_pylist(), key=int) == [*map(str, range(ACCOUNTS))]
    graphs = fitted.sample()
    ages = [rows_of(graphs[kind]).values[:PERSONS, 0] for kind in ("owns", "buys")]
    assert np.array_equal(*ages)
    types = rows_of(graphs["owns"]).values[PERSONS:, 1], rows_of(graphs["pays"]).values[:, 0]
    assert np.array_equal(*types)
    again, other = fitted.arrow_tables(), fitted.arrow_tables(1)
    assert all(again[name].equals(tables[name]) for name in tables)
    assert not all(other[name].equals(tables[name]) for name in tables)


def test_nodes_exchange_degrees_over_kinds_with_all_that_belongs_to_them(fitted, monkeypatch):
    asked = []

    def reverse(degrees, scales):
        asked.append((len(degrees), scales))
        return [np.arange(len(each))[::-1].copy() for each in degrees]

    monkeypatch.setattr(database, "coupled_places", reverse)
    release = open_database(fitted.folder)
    methods = {kind: (release.methods[kind], release.kinds[kind].method) for kind in release.kinds}
    # Persons own and buy; accounts pay and are paid, and which one owns each is not counted.
    assert [count for count, _ in asked] == [2, 2, 1]
    assert asked[0][1][1] == pytest.approx(2 / (0.7 * 2.0))  # buys spends all on its degrees
    assert asked[1][1][0] == asked[1][1][1]
    old, new = (each.structure.degrees for each in methods["pays"][::-1])
    assert new.tolist() == [*old[:ACCOUNTS].flip(0), *old[ACCOUNTS:].flip(0)]
    for name in ("count_classes", "sum_classes"):
        before, after = (getattr(each.transfers.amounts, name) for each in methods["pays"][::-1])
        assert after.tolist() == [*before[:ACCOUNTS].flip(0), *before[ACCOUNTS:].flip(0)]
    old, new = (each.structure.degrees for each in methods["owns"][::-1])
    assert new.tolist() == [*old[:PERSONS].flip(0), *old[PERSONS:]]
    assert len(release.sample()) == 3


def test_pytorch_geometric_learns_from_it(fitted):
    data = fitted.to_hetero_data()
    data["shop"].x = torch.ones(SHOPS, 1)
    assert data["person"].x.shape == (PERSONS, 3)  # two bins, and other
    data.validate()
    data = ToUndirected()(data)
    layer = HeteroConv({each: SAGEConv((-1, -1), 4) for each in data.edge_types})
    layer(data.x_dict, data.edge_index_dict)  # which sets the sizes
    optimizer = torch.optim.Adam(layer.parameters())
    losses = []
    for _ in range(3):
        loss = sum(
            each.square().mean() for each in layer(data.x_dict, data.edge_index_dict).values()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]


def test_other_programs_open_it(fitted, tmp_path):
    neo = fitted.to_neo4j(tmp_path / "neo")
    files = [pandas.read_csv(neo / f"{name}.csv", dtype=str) for name in ("pays", "person", "shop")]
    assert [[*file.columns] for file in files] == [
        [":START_ID(account)", ":END_ID(account)", "amount:double", "at:localdatetime", ":TYPE"],
        ["id:ID(person)", "age:string", ":LABEL"],
        ["id:ID(shop)", "size:double", "size is missing:double", ":LABEL"],
    ]
    drawn = fitted.tables()["pays"]
    assert [*map(datetime.fromisoformat, files[0]["at:localdatetime"])] == [*drawn["at"]]
    assert files[0]["at:localdatetime"].str.contains("T").all()
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(fitted.to_duckdb(tmp_path / "a.duckdb"))) as connection:
        count = connection.sql(
            "SELECT count(*) FROM owns JOIN person ON owns.person = person.id"
        ).fetchall()
    assert count == [(ACCOUNTS,)]
    with pytest.raises(CommandError, match="there is a file already"):
        fitted.to_duckdb(tmp_path / "a.duckdb")


def edited(release, name, change):
    path = release / name
    path.write_text(change(path.read_text()))
    write_sums(release)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("owns.csv", lambda text: text.replace("\n", "\n7,7\n", 1), "not the table"),
        (
            "database.json",
            lambda text: text.replace('"epsilon": 2.0', '"epsilon": 1.0', 1),
            "sum of",
        ),
        ("database.json", lambda text: text.replace("twice", "half"), "sum of"),
        ("database.json", lambda text: text.replace("{", '{"rows": "1, 7",', 1), "sum of"),
        (
            "database.json",
            lambda text: text.replace('"size": 12', '"size": 13', 1),
            "facts of person",
        ),
        ("MODEL_CARD.html", lambda text: text.replace("2", "1"), "not the card"),
        ("kinds/owns/privacy.json", lambda text: text.replace("2.0", "1.0"), "kinds/owns/"),
    ],
)
def test_an_edited_release_is_seen_whatever_its_checksums_say(name, change, why, release):
    edited(release, name, change)
    found = verify_database(release)
    assert not found
    assert any(why in fault for fault in found.faults)


def test_a_foreign_or_missing_file_is_seen(release):
    assert verify_database(release).ok
    for name in ("notes.csv", "more/owns.csv", "owns.parquet"):  # the last has the name of a table
        place = release / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("real rows\n")
        write_sums(release)
        assert any(fault.startswith(f"{name}: no") for fault in verify_database(release).faults)
        place.unlink()
    (release / "more").rmdir()
    shutil.rmtree(release / "kinds" / "buys")
    write_sums(release)
    assert not verify_database(release)


def test_the_real_database_without_noise_has_its_cardinalities(tmp_path):
    with pytest.warns(UserWarning, match="protects next to nothing"):
        found = fit_database(schema(), epsilon=1e6, row_epsilon=1e6, out=tmp_path / "run")
    figures = evaluate_database(DatabaseDataModule(schema()), found)
    assert [each.synthetic for each in figures.keys] == [1.0] * 6
    assert max(each.error for each in figures.cardinalities) < 0.1
    assert "Cardinalities" in figures.text()
    assert figures.kinds["owns"].answers["owns"]["num_edges"].score == 0.0
    assert figures.kinds["owns"].measured[0].has_key  # of the run beside the release
    page = figures.to_html_text()
    ids = re.findall(r'<h\d id="([\w-]+)"', page)
    assert len(ids) == len({*ids}) > 0
    for kind, titles in {
        "owns": {"private-columns"},
        "pays": {"private-columns", "transfers"},
    }.items():
        assert {f"{kind}-{title}" for title in {"queries", "charts", *titles}} <= {*ids}


@pytest.mark.parametrize("kind", ["owns", "pays", "buys"])
def test_a_neighbor_in_one_kind_changes_what_this_kind_releases_alone(kind, tmp_path, monkeypatch):
    """With fixed noise, a relation more changes tensors of its own kind, and of no other one."""
    numbers = itertools.count()
    monkeypatch.setattr(
        PrivateModule,
        "noise",
        property(
            lambda method: noises.setdefault(id(method), NoiseSource(unsafe_seed=next(numbers)))
        ),
    )
    more = {
        "owns": {"person": [0, 1], "account": [3, 1]},
        "pays": {
            "payer": [0, 1],
            "payee": [1, 2],
            "amount": [1.0, 2.0],
            "at": ["2026-01-02", "2026-01-03"],
        },
        "buys": {"person": [0, 5], "shop": [3, 3]},
    }
    tensors = []
    for size in (1, 2):
        noises, numbers = {}, itertools.count()
        own = {kind: {name: cells[:size] for name, cells in more[kind].items()}}
        own = schema(**own) | {"names": "ids"}
        run_of = fit_database(own, epsilon=9.0, row_epsilon=1.0, out=tmp_path / str(size))
        tensors.append({name: part.method.state_dict() for name, part in run_of.kinds.items()})
    for name in ("owns", "pays", "buys"):
        one, other = (
            {key: value for key, value in each[name].items() if not key.endswith("extra_state")}
            for each in tensors
        )
        is_equal = all(torch.equal(one[key], other[key]) for key in one)
        assert is_equal == (name != kind)


def ends_after_a_kind(monkeypatch):
    """Let the next run of a database end after its first kind; the list will hold the folder of that."""
    fit, calls = run.fit, []

    def once(*args, **options):
        if calls:
            raise KeyboardInterrupt
        calls.append(options["out"])
        return fit(*args, **options)

    monkeypatch.setattr(run, "fit", once)
    return calls


def test_a_run_that_ends_between_two_kinds_has_booked_the_first(tmp_path, monkeypatch):
    calls = ends_after_a_kind(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit_database(schema(), epsilon=2.0, row_epsilon=1.0, out=tmp_path / "run")
    entries = map(json.loads, (calls[0] / JOURNAL).read_text().splitlines())
    spent = sum(entry["epsilon"] for entry in entries if entry["relation"] == "edge")
    assert spent == pytest.approx(2.0)
    assert not (tmp_path / "run" / "release").exists()
    assert not (tmp_path / "run" / "kinds" / "pays").exists()


def test_the_book_has_a_database_as_one_data_set(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'book.db'}"
    book = Book(url, is_new=True)
    content = DatabaseDataModule(schema()).identity()
    owner.register(
        book,
        "bank",
        book.fingerprint(content),
        relation=Relation.EDGE,
        total=Budget(3.0, 0.0),
        people=book.marks(content),
        row_total=Budget(2.0, 0.0),
    )
    calls = ends_after_a_kind(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit_database(schema(), epsilon=2.0, row_epsilon=1.0, out=tmp_path / "run", book=url)
    # All kinds were booked before the first one was read, and the largest of them counts.
    assert [(each.method, each.outcome) for each in book.runs("bank")] == [("database", "stopped")]
    assert book.left("bank") == pytest.approx(1.0)
    assert book.left("bank", Relation.ATTRIBUTES) == pytest.approx(1.0)
    assert ADDED_UP in (calls[0] / "release" / "MODEL_CARD.md").read_text()
    with pytest.raises(BookError, match="does not pay"):
        fit_database(schema(), epsilon=2.0, row_epsilon=1.0, out=tmp_path / "more", book=url)
    assert not (tmp_path / "more").exists()
    other = schema()
    other["relations"].pop("pays")
    with pytest.raises(BookError, match="not registered"):
        fit_database(other, epsilon=0.5, row_epsilon=0.5, out=tmp_path / "more", book=url)


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ({"epsilon": 1.0}, "--row-epsilon is missing"),
        ({"epsilon": -1.0, "row_epsilon": 1.0}, "epsilon"),
    ],
)
def test_a_budget_that_does_not_do_is_refused_before_any_kind_spends(budget, why, tmp_path):
    with pytest.raises(CommandError, match=why):
        fit_database(schema(), out=tmp_path / "run", **budget)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("source", ["files", "duckdb"])
def test_the_commands_take_a_schema_and_a_run(source, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "persons.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(9)))
    (tmp_path / "knows.csv").write_text("one,other\n0,1\n1,2\n2,3\n5,6\n")
    (tmp_path / "schema.yaml").write_text(
        "nodes:\n  person: {table: persons.csv, id: id}\n"
        "relations:\n  knows: {table: knows.csv, between: [person, person], keys: [one, other], directed: false}\n"
    )
    if source == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect("bank.duckdb") as connection:
            for name in ("persons", "knows"):
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{name}.csv'")
                (tmp_path / f"{name}.csv").unlink()
        text = (tmp_path / "schema.yaml").read_text().replace(".csv", "")
        (tmp_path / "schema.yaml").write_text(f"source: duckdb:///bank.duckdb\n{text}")
    (tmp_path / "half.yaml").write_text("nodes:\n  person: {table: persons.csv, id: id}\n")
    assert main(["fit", "half.yaml", "--epsilon", "2", "--out", "run"]) == 2
    assert "half.yaml: relations is missing" in capsys.readouterr().err
    assert main(["fit", "schema.yaml", "--epsilon", "-2", "--out", "run"]) == 2
    assert "epsilon must be positive, got -2.0" in capsys.readouterr().err
    assert main(["fit", "schema.yaml", "--epsilon", "2", "--out", "run"]) == 0
    assert "knows (2, 0)" in capsys.readouterr().out
    assert main(["verify", "run"]) == 0
    assert main(["evaluate", "run", "--html", "page.html"]) == 0
    assert main(["generate", "run", "--seed", "3"]) == 0
    assert (tmp_path / "run" / "generated" / "3" / "knows.csv").is_file()
    assert main(["fit", "schema.yaml", "--out", "other"]) == 2
    assert "--epsilon is missing" in capsys.readouterr().err
    for command, way in {
        "attack": "attack RUN/kinds/KIND",
        "compare": "--like RUN/kinds/KIND",
        "audit": "audit the method of a kind",
        "validate": "evaluate RUN",
        "predict": "generate RUN",
        "plan": "fit checks the plans",
        "studio": "by the command line",
        "fit": "fit SCHEMA",
    }.items():
        assert main([command, "run"]) == 2
        problem = capsys.readouterr().err
        assert way in problem
        assert len(problem.splitlines()) == 2
    assert main(["card", "run", "--operator", "Bank", "--purpose", "a text " * 100]) == 0
    assert "Bank" in (tmp_path / "run/release/kinds/knows/MODEL_CARD.md").read_text()
    assert main(["verify", "run"]) == 0
    assert main(["card", "run/release/kinds/knows", "--operator", "Bank"]) == 2
    assert main(["card", "run", "--audit", "audit.json"]) == 2
    assert data_of_run("run/kinds/knows").num_edges == 4
    assert database_of_run(tmp_path / "run").schema.relations["knows"].kind == "undirected"
    assert open_database(tmp_path / "run").epsilon == 2.0
