"""``fit FILE --epsilon 1``: short options are those of Lightning's command line."""

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.io import from_networkx, write_graph
from lightning_dpg.main import main
from lightning_dpg.run.commands.fit import long_form
from lightning_dpg.run.configurations import conf_folder
from lightning_dpg.run.fit import complete_settings

BTER = f"--config={conf_folder() / 'methods' / 'bter.yaml'}"
CHUNG_LU = f"--config={conf_folder() / 'methods' / 'chung_lu.yaml'}"
TRANSFERS = f"--config={conf_folder() / 'methods' / 'transfers.yaml'}"
ATTRIBUTED = f"--config={conf_folder() / 'methods' / 'attributed.yaml'}"
UNSET = (
    "--data.nodes.private_columns=null --data.nodes.domains=null --data.nodes.attributes=null "
    "--privacy.row_epsilon=null"
)
ONE = "--privacy.epsilon=1.0"
TABLE = "--data=EdgeTableDataModule"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIGHTNING_DPG_DATA", raising=False)
    write_graph(from_networkx(nx.les_miserables_graph()), tmp_path / "graph.edges")
    (tmp_path / "set").mkdir()
    (tmp_path / "own.yaml").write_text("model: {class_path: ErdosRenyi}\nprivacy: {epsilon: 3}\n")
    (tmp_path / "table.yaml").write_text("data: {class_path: EdgeTableDataModule}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a.csv --epsilon 1", f"{BTER} {ONE} --data.name=a.csv"),
        ("--epsilon=1 a.csv", f"{BTER} {ONE} --data.name=a.csv"),
        (
            "a.csv --epsilon 1 --kind directed",
            f"{CHUNG_LU} {ONE} --data.name=a.csv --data.kind=directed",
        ),
        (
            "a.csv --epsilon 1 --method BTER --source p --target q --nodes c.csv --undirected",
            (
                f"{BTER} {ONE} --data.name=a.csv --data.nodes.ids=c.csv --data.columns.source=p "
                "--data.columns.target=q --data.undirected=true"
            ),
        ),
        (
            "t.parquet --epsilon 1 --goal degrees --missing-ids drop",
            f"{CHUNG_LU} {ONE} {TABLE} --data.source=t.parquet --data.columns.missing_ids=drop",
        ),
        # Columns of the data of a configuration are none of other data.
        (
            "a.csv --epsilon 1 --method transfers --weight eur --weight-max 9.5",
            (
                f"{TRANSFERS} --data.columns.weight=null --data.columns.time=null {ONE} "
                "--data.name=a.csv --data.columns.weight=eur --data.columns.weight_max=9.5"
            ),
        ),
        (
            "a.csv --epsilon 1 --method attributed --row-epsilon 2",
            f"{ATTRIBUTED} {UNSET} {ONE} --privacy.row_epsilon=2.0 --data.name=a.csv",
        ),
        (
            "a.csv --epsilon 1 --method attributed --data.nodes.private_columns age",
            (
                f"{ATTRIBUTED} --data.nodes.domains=null --data.nodes.private_columns age {ONE} "
                "--data.name=a.csv"
            ),
        ),
        (
            "t.parquet --epsilon 1 --method chung_lu --weight eur --weight-max 9.5",
            (
                f"{CHUNG_LU} {ONE} {TABLE} --data.source=t.parquet --data.columns.weight=eur "
                "--data.columns.weight_max=9.5"
            ),
        ),
        (
            "t*.parquet --epsilon 1 --method chung_lu --time at",
            f"{CHUNG_LU} {ONE} {TABLE} --data.source=t*.parquet --data.columns.time=at",
        ),
        (
            "t.csv --epsilon 1 --where a>1",
            f"{BTER} {ONE} {TABLE} --data.source=t.csv --data.where=a>1",
        ),
        (
            "bank.duckdb --epsilon 1 --table t",
            f"{BTER} {ONE} {TABLE} --data.source=duckdb:///bank.duckdb --data.table=t",
        ),
        ("--config own.yaml --seed 3", "--config own.yaml --seed_everything=3"),
        (
            "a.csv --config own.yaml --trainer.max_epochs -1",
            "--config own.yaml --trainer.max_epochs -1 --data.name=a.csv",
        ),
        (
            "a.csv --config own.yaml --config table.yaml --no-book --delta .1",
            (
                "--config own.yaml --config table.yaml --no-book --privacy.delta=0.1 "
                "--data.source=a.csv"
            ),
        ),
        ("--method mine.Own --epsilon 1", f"--model=mine.Own {ONE}"),
        (
            "a.csv --method mine.Own --epsilon 1",
            f"--model=mine.Own {ONE} --data=EdgeListDataModule --data.name=a.csv",
        ),
    ],
)
def test_short_options_become_those_of_lightning(folder, given, words):
    assert long_form(given.split()).words == words.split()


@pytest.mark.parametrize("method", ["attributed", "transfers"])
def test_columns_of_a_configuration_are_none_of_other_data(folder, method):
    given = f"a.csv --epsilon 1 --method {method} --weight eur --weight-max 9"
    settings = complete_settings(long_form(given.split()).words)
    columns, nodes = (settings["data"]["init_args"][name] for name in ("columns", "nodes"))
    set_ones = {name: value for name, value in columns.items() if value is not None}
    assert set_ones == {"missing_ids": "refuse", "weight": "eur", "weight_max": 9.0}
    assert [nodes[name] for name in ("attributes", "private_columns", "domains")] == [None] * 3
    assert settings["privacy"]["row_epsilon"] is None


@pytest.mark.parametrize(
    ("given", "config"),
    [
        ("set --epsilon 1", "methods/pooled_set"),
        ("set --epsilon .5", "baselines/erdos_renyi_set"),
        ("planted_sets --epsilon 1 --goal labels", "methods/private_kernel"),
        ("a.csv --epsilon 1 --time at", "methods/attributed"),
        ("karate --epsilon 1 --goal links", "methods/chung_lu"),
        ("karate --epsilon 6 --goal links", "methods/randomized_response_spectral"),
        (
            "karate --epsilon 6 --goal links --attributes a.csv --delta .1",
            "methods/attribute_encoder",
        ),
    ],
)
def test_a_goal_chooses_the_method(folder, given, config):
    form = long_form(given.split())
    assert form.words[0] == f"--config={conf_folder() / config}.yaml"
    assert form.notes[0].startswith(f"method {config.rpartition('/')[2]}, for ")


def test_a_setting_stands_beside_the_name_of_its_method(folder):
    words = long_form(
        ["a.csv", "--epsilon", "1", "--method", "bter", "--model.init_args.count_share", ".1"]
    ).words
    assert words[0] == f"--config={conf_folder() / 'methods' / 'bter.yaml'}"
    assert words[1:3] == ["--model.init_args.count_share", ".1"]  # later ones win


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "a.csv",
            "--epsilon is missing.*, and a.csv is no folder of a run\n.*fit a.csv --epsilon 1",
        ),
        ("a.csv --epsilonn 1", "unknown option --epsilonn, did you mean --epsilon?"),
        ("a.csv --epsilon two", "--epsilon: invalid float value: 'two'"),
        ("a.csv b.csv --epsilon 1", "unknown word b.csv: a.csv is FILE already"),
        ("a.csv --epsilon 1 --privacy.epsilon 2", "--privacy.epsilon stands beside its short form"),
        ("a.csv --epsilon 1 --data.init_args.name b", "--data.init_args.name stands beside"),
        ("a.csv --epsilon 1 --method bter --config own.yaml", "a configuration names a method"),
        (
            "a.csv --epsilon 1 --method bter --model.init_args.rank 2 --model ChungLu",
            "--model names a method",
        ),
        ("a.csv --epsilon 1 --method bter --goal links", "a goal chooses a method"),
        ("a.csv --epsilon 1 --method btr", "--method btr: no such file.*did you mean bter?"),
        ("a.csv --epsilon 1 --goal labels", "labels is no goal of one graph"),
        ("set --epsilon 1 --nodes ids.txt", "--nodes is no option of a set of graphs"),
        ("a.csv --epsilon 1 --out set/..", "--out set/..: there is a file or a folder with files"),
    ],
)
def test_mistakes(folder, given, said):
    with pytest.raises(Refusal, match=said):
        long_form(given.split())


def test_a_folder_of_parts_of_a_table_names_their_pattern(folder):
    for name, first in {
        "2026-01": "payer,payee",
        "2026-02": "payer,payee",
        "notes": "day,text",
    }.items():
        (folder / "monthly").mkdir(exist_ok=True)
        (folder / "monthly" / f"{name}.csv").write_text(f"{first}\na,b\n")
    for pattern in ("monthly/2026-0\\*.csv", "monthly/\\*.csv"):
        with pytest.raises(Refusal, match=f"write '{pattern}'"):
            long_form(["monthly", "--epsilon", "1"])
        (folder / "monthly" / "notes.csv").unlink(missing_ok=True)


def test_messages_name_the_options_that_were_given(folder, capsys):
    args = ["fit", "graph.edges", "--method", "dp_netgan", "--epsilon", "1e-9"]
    assert main(args) == 2
    said = capsys.readouterr().err
    assert "--epsilon" in said and "privacy.epsilon" not in said


def test_a_fit_of_a_file_and_then_of_its_run(folder, capsys):
    quick = ["--trainer.accelerator", "cpu"]
    assert main(["fit", "graph.edges", "--epsilon", "2", "--out", "one", *quick]) == 0
    assert "method bter, for the shape of a graph" in capsys.readouterr().err
    assert main(["fit", "one", "--epsilon", "3", "--out", "two", *quick]) == 0
    one, two = (
        yaml.safe_load((folder / name / "config.yaml").read_text()) for name in ("one", "two")
    )
    assert one["data"]["init_args"]["name"] == "graph.edges"
    assert [each.pop("privacy")["epsilon"] for each in (one, two)] == [2.0, 3.0]
    assert one == two
    assert (folder / "two" / "release" / "privacy.json").is_file()


def test_classes_are_learned_from_a_table_beside_a_table_of_attributes(folder, capsys):
    pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
    graph, groups = nx.planted_partition_graph(3, 40, 0.3, 0.01, seed=0), np.arange(120) // 40
    one, other = zip(*[(f"n{i}", f"n{j}") for i, j in graph.edges], strict=True)
    calls = {"source": [*one, *other[:9], "n1"], "target": [*other, *one[:9], "n1"]}
    parquet.write_table(pa.table(calls), "calls.parquet")
    draws = np.random.default_rng(0).normal(size=(120, 3)) + 2 * np.eye(3)[groups]
    subjects = np.array(["art", "biology", "law"])[groups]
    people = pd.DataFrame(draws, columns=["a", "b", "c"]).assign(subject=subjects)
    people.insert(0, "id", [f"n{i}" for i in range(120)])
    people.to_csv("people.csv", index=False)
    method = ["--config", "neighbor_votes", "--model.split_seed", "0", "--out", "run"]
    edges = ["--data", "EdgeTableDataModule", "--data.source", "calls.parquet"]
    nodes = ["--data.nodes.attributes", "people.csv", "--data.nodes.policy.subject", "label"]
    budget = ["--privacy.epsilon", "8", "--privacy.delta", "1e-4"]
    people.iloc[1:].to_csv("few.csv", index=False)
    few = ["few.csv" if word == "people.csv" else word for word in nodes]
    assert main(["fit", *method, *edges, *few, *budget]) == 2
    assert (
        "calls.parquet: edges with an id that is not among the 119 ids of nodes: "
        in capsys.readouterr().err
    )
    assert not (folder / "run").exists()
    assert main(["fit", *method, *edges, *nodes, *budget]) == 0
    assert "edge-level (8, 0.0001)-DP" in capsys.readouterr().out
    with np.load("run/release/features.npz") as found:
        assert found["node_names"].tolist() == people["id"].tolist()
        assert (found["posteriors"].argmax(1) == groups).mean() > 0.9
