"""The draft of a schema has names of tables and columns, no value, and has to be filled in."""

import pandas as pd
import pytest
import yaml

from lightning_dpg.datamodules.database import DatabaseDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.main import main

duckdb = pytest.importorskip("duckdb", reason="no duckdb: install the extra 'tables'")

TABLES = {
    "persons": {"id": [1, 2], "age": [31, 47], "region": ["secretland", "north"]},
    "accounts": {"account_id": [1, 2], "person_id": [2, 1], "type": ["secret", "x"]},
    "transfers": {
        "id": [7, 8],
        "from_account": [1, 2],
        "to_account": [2, 1],
        "amount": [99.75, 1.5],
        "at": ["2026-01-01", "2026-01-02"],
    },
    "calls": {"caller": ["secret", "b"], "callee": ["b", "c"]},
    "notes": {"17": [4, 5], "secretword": ["x", "y"]},
}
DRAFT = {
    "nodes": {
        "account": {"table": "accounts", "id": "account_id", "private": {"type": []}},
        "person": {"table": "persons", "id": "id", "private": {"age": [], "region": []}},
    },
    "relations": {
        "account_person_id": {
            "table": "accounts",
            "between": ["account", "person"],
            "keys": ["account_id", "person_id"],
        },
        "calls": {"table": "calls", "between": ["TABLE", "TABLE"], "keys": ["caller", "callee"]},
        "transfers": {
            "table": "transfers",
            "between": ["account", "account"],
            "keys": ["from_account", "to_account"],
            "amount": "amount",
            "amount_max": None,
            "time": "at",
            "window": None,
        },
    },
}


def suffixed(suffix):
    """The draft with names of files."""
    parts = {
        part: {name: {**each, "table": f"tables/{each['table']}{suffix}"} for name, each in DRAFT[part].items()}
        for part in DRAFT
    }  # fmt: skip
    return parts


@pytest.mark.parametrize("form", [".csv", ".parquet", "duckdb"])
def test_a_draft_says_nothing_of_the_values(tmp_path, monkeypatch, capsys, form):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    for name, columns in TABLES.items():
        frame = pd.DataFrame(columns)
        if form == "duckdb":
            with duckdb.connect("bank.duckdb") as connection:
                connection.execute(f"CREATE TABLE {name} AS FROM frame")
        elif form == ".csv":
            frame.to_csv(f"tables/{name}.csv", index=False)
        else:
            frame.to_parquet(f"tables/{name}.parquet")
    source = "duckdb:///bank.duckdb" if form == "duckdb" else "tables"
    assert main(["describe-schema", source]) == 0
    text = (tmp_path / "schema.yaml").read_text()
    expected = {"source": source} | DRAFT if form == "duckdb" else suffixed(form)
    assert yaml.safe_load(text) == expected
    assert "secret" not in text
    assert "# tables/notes" in text or "# notes: no known names" in text
    assert "2 kinds of nodes and 3 of relations: complete it" in capsys.readouterr().out
    assert main(["describe-schema", source]) == 2
    assert "it is there already" in capsys.readouterr().err
    with pytest.raises(Refusal, match="'TABLE' is no kind of nodes"):
        DatabaseDataModule("schema.yaml")
    schema = yaml.safe_load(text)
    del schema["relations"]["calls"]
    with pytest.raises(Refusal, match="amount_max is missing"):
        DatabaseDataModule(schema)
    schema["relations"]["transfers"] |= {"amount_max": 100, "window": "2026-01-01,2026-06-30"}
    with pytest.raises(Refusal, match="is no list of values"):
        DatabaseDataModule(schema)
    schema["nodes"]["account"]["private"] = {"type": ["secret"]}
    schema["nodes"]["person"] = {"table": schema["nodes"]["person"]["table"], "id": "id"}
    database = DatabaseDataModule(schema)
    database.setup("fit")
    assert database.relation("transfers").num_edges == 2


def test_a_first_line_that_may_be_a_row_is_not_shown(tmp_path, capsys):
    (tmp_path / "person.csv").write_text("1,ann,secret\n2,bob,x\n")
    (tmp_path / "pays.csv").write_text("secret,17\nann,18\n")
    out = tmp_path / "draft.yaml"
    assert main(["describe-schema", str(tmp_path), "--out", str(out)]) == 0
    assert "secret" not in out.read_text()
    assert out.read_text().count("header: [id, ...] names those of a file") == 2
    assert main(["describe-schema", str(tmp_path / "absent"), "--out", "other.yaml"]) == 2
    assert "no folder" in capsys.readouterr().err
