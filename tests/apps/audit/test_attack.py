"""``attack`` prints and writes its numbers, fits again, and refuses bad arguments."""

import json
from pathlib import Path

import networkx as nx
import pytest
import yaml

import lightning_dpg as dpg
from lightning_dpg.apps.audit import attacks
from lightning_dpg.apps.audit.attacks import settings_for_parts
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import from_networkx, write_graph
from lightning_dpg.main import main
from lightning_dpg.run.configurations import find_config, refuse_foreign_code


@pytest.fixture
def folder(here, monkeypatch):
    monkeypatch.delenv("LIGHTNING_DPG_DATA", raising=False)
    write_graph(from_networkx(nx.gnm_random_graph(34, 78, seed=0)), here / "random.edges")
    write_graph(from_networkx(nx.karate_club_graph()), here / "copy.npz")
    return here


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def once(function):
    """A function whose first outcome is that of all its calls."""
    outcomes = []

    def called(*args, **options):
        if not outcomes:
            outcomes.append(function(*args, **options))
        return outcomes[0]

    return called


def report(capsys, *args):
    """Numbers of an attack, as a program reads them."""
    capsys.readouterr()
    assert main(["attack", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=refuse)


def test_copies_are_told_from_random_graphs(folder, capsys):
    for name in ("copy.npz", "random.edges"):
        assert main(["attack", "karate", name]) == 0
    printed = capsys.readouterr().out
    assert printed.count("degrees alone: AUC") == 2
    assert printed.count("not private") == 2
    copy, other = (report(capsys, "karate", name) for name in ("copy.npz", "random.edges"))
    assert (copy["nodes"], copy["edges"], copy["graphs"], copy["targets"]) == (34, 78, 1, 4)
    assert copy["baseline"] == "degrees alone"
    rows = {(row["attack"], row["others"]): row for row in copy["link_stealing"]}
    assert len(rows) == 6
    assert rows["edges", "equal degrees"]["release"]["auc"]["value"] == 1
    assert rows["edges", "equal degrees"]["baseline"]["auc"]["value"] < 1
    assert other["link_stealing"][0]["release"]["auc"]["value"] < 1
    known = {row["knowledge"]: row["release"]["value"] for row in copy["reidentification"]}
    blind = {row["knowledge"]: row["release"]["value"] for row in other["reidentification"]}
    assert known["degrees of neighbors"] > 0.5
    assert blind["degrees of neighbors"] < 0.2


def test_customers_without_an_edge_are_in_no_edge_list_and_in_the_release(folder, capsys):
    graph = nx.gnm_random_graph(30, 70, seed=1)
    nx.write_edgelist(graph, folder / "real.edges", data=False)
    graph.add_nodes_from(["rich", "poor"])
    write_graph(from_networkx(graph), folder / "release.npz")
    assert report(capsys, "real.edges", "release.npz")["nodes"] == 32


def test_a_release_is_fitted_again_without_the_targets(folder, capsys):
    """With next to no noise randomized response publishes the graph, and not what it never saw."""
    options = ["--data.init_args.name", "karate", "--privacy.epsilon", "30"]
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", "runs"]
    assert main(["fit", "--config", "randomized_response", *options, *quiet]) == 0
    (run,) = folder.glob("runs/*/version_0")
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert main(["attack", "karate", str(run)]) == 0
    assert sorted(folder.rglob("*")) == before
    printed = capsys.readouterr().out
    assert "without them: AUC" in printed
    assert "run folder" not in printed  # of the fits without the targets
    numbers = report(capsys, "karate", str(run))
    assert numbers["baseline"] == "fitted without the targets"
    rows = {(row["attack"], row["others"]): row for row in numbers["link_stealing"]}
    assert len(rows) == 8
    edges = rows["edges", "any"]
    assert edges["release"]["auc"]["value"] == edges["release"]["accuracy"]["value"] == 1
    assert edges["baseline"]["auc"]["value"] == pytest.approx(0.5)
    assert edges["baseline"]["found"]["value"] == pytest.approx(0.01)
    # The same method from a configuration named by hand.
    args = ["--baseline-config", "randomized_response"]
    named = report(capsys, "karate", str(run / "release"), *args)
    assert named["link_stealing"][0]["release"] == numbers["link_stealing"][0]["release"]


def test_parts_of_a_graph_keep_all_nodes(folder):
    config = yaml.safe_load(find_config("chung_lu").read_text())
    config["data"]["init_args"] |= {"largest_component": True, "undirected": True}
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(config))
    data = settings_for_parts(path)["data"]["init_args"]
    assert not data["largest_component"]
    assert not data["undirected"]
    config["data"]["init_args"] = {"name": "cora_ml", "split": "cora_ml_train85"}
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(CommandError, match="split names fixed edges"):
        settings_for_parts(path)


def test_parts_of_a_table_are_in_memory(folder):
    config = yaml.safe_load(find_config("chung_lu").read_text())
    table = {"source": "duckdb:///bank.duckdb", "table": "transfers", "where": "amount > 1.5"}
    module = "lightning_dpg.datamodules.EdgeTableDataModule"
    config["data"] = {"class_path": module, "init_args": table | {"kind": "directed"}}
    config["model"]["class_path"] = "lightning_dpg.methods.ChungLu"
    config["trainer"]["callbacks"] = []
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(config))
    refuse_foreign_code(path)  # the values of a table name no code
    section = settings_for_parts(path)["data"]
    assert section["class_path"].endswith(".EdgeListDataModule")
    assert section["init_args"]["kind"] == "directed"
    assert "where" not in section["init_args"]


@pytest.mark.parametrize("domains", ["domains.yaml", {"a.b": ["St. Gallen", 0.5, "north/south"]}])
def test_values_of_private_columns_name_no_code(folder, domains):
    nodes = {"private_columns": ["a.b"], "domains": domains}
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({"data": {"init_args": {"nodes": nodes}}}))
    (folder / "domains.yaml").write_text("a.b: [north]")
    refuse_foreign_code(path)
    hidden = nodes | {"domains": {"a.b": [{"class_path": "evil.Code"}]}}
    path.write_text(yaml.safe_dump({"data": {"init_args": {"nodes": hidden}}}))
    with pytest.raises(CommandError, match=r"evil\.Code"):
        refuse_foreign_code(path)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["karate"], "attack REAL RELEASE"),
        (["karate", "."], "no release/generator.safetensors"),
        (["karate", ".", "copy.npz"], "one release, or files of graphs"),
        (["les_miserables", "copy.npz"], "has 77 nodes, what was published 34"),
        (["full.edges", "full.edges"], "nothing to tell apart"),
    ],
)
def test_mistakes(folder, fails, args, said):
    write_graph(from_networkx(nx.complete_graph(6)), folder / "full.edges")
    assert said in fails("attack", *args)


@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_graphs_of_other_kinds_are_attacked_as_such(kind, folder, capsys, refusal):
    if kind == "directed":
        graph = nx.gnp_random_graph(40, 0.1, seed=1, directed=True)
        nx.write_graphml(graph, "real.graphml")
        source, edges = "real.graphml", graph.number_of_edges()
    else:
        source, edges = "davis", 89
    options = [f"--data.name={source}", f"--data.kind={kind}", "--privacy.epsilon=30"]
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.default_root_dir=runs"]
    assert main(["fit", "--config", "randomized_response", *options, *quiet]) == 0
    (run,) = folder.glob("runs/*/version_0")
    found = report(capsys, source, str(run))  # of the release's kind
    assert (found["edges"], found["baseline"]) == (edges, "fitted without the targets")
    rows = {(row["attack"], row["others"]): row for row in found["link_stealing"]}
    # With next to no noise the release is the graph, in the direction of each link.
    shares = rows["edges", "any"]
    assert shares["release"]["auc"]["value"] == 1
    assert shares["baseline"]["auc"]["value"] == pytest.approx(0.5)
    neighbors = rows["common neighbors", "any"]["release"]["auc"]["value"]
    assert 0 < neighbors < 1
    assert neighbors != 0.5
    capsys.readouterr()
    assert f"--kind {kind}" in refusal(main(["attack", source, str(run), "--kind", "undirected"]))


def write_people():
    """A graph whose links follow the words of the nodes; the node n39 has none."""
    graph = nx.planted_partition_graph(4, 10, 0.6, 0.02, seed=0)
    graph.remove_edges_from(list(graph.edges(39)))
    named = nx.Graph([(f"n{one}", f"n{other}") for one, other in graph.edges])
    named.add_nodes_from((f"n{node}", {"word": f"w{node // 10}"}) for node in graph)
    nx.write_graphml(named, "links.graphml")


CONFIG = {
    "seed_everything": 0,
    "model": {"class_path": "AttributeMoments", "init_args": {"rank": 4}},
    "data": {"class_path": "EdgeListDataModule", "init_args": {"name": "links.graphml"}},
    "trainer": {"max_epochs": 1, "enable_progress_bar": False, "default_root_dir": "runs"},
    "privacy": {"epsilon": 4.0, "delta": 1e-4},
}


def test_attributes_are_known_to_both_columns(folder, capsys, monkeypatch):
    # One attack is shown in both forms.
    monkeypatch.setattr(attacks, "attack_published", once(attacks.attack_published))
    write_people()
    Path("conf.yaml").write_text(yaml.safe_dump(CONFIG))
    name = "links.graphml"
    assert main(["fit", "--config", "conf.yaml", "--attributes", "from_graph"]) == 0
    (run,) = folder.glob("runs/*/version_0")
    capsys.readouterr()
    assert main(["attack", name, str(run)]) == 0
    printed = capsys.readouterr().out
    assert "public attributes alone are an attack without any release" in printed
    numbers = report(capsys, name, str(run))
    assert (numbers["nodes"], numbers["baseline"]) == (40, "fitted without the targets")
    rows = {(row["attack"], row["others"]): row for row in numbers["link_stealing"]}
    alone = rows["public attributes alone", "any"]
    assert alone["release"] == alone["baseline"]
    # The release without the targets has learned from the attributes, too.
    assert alone["release"]["auc"]["value"] > 0.8
    assert rows["scores of the generator", "any"]["baseline"]["auc"]["value"] > 0.8


def test_a_release_of_classes_is_attacked_by_its_predictions(folder, capsys):
    release = dpg.fit("planted_classes", "neighbor_votes", epsilon=1.0, delta=1e-5)
    release.save(folder / "out")
    alone = report(capsys, "planted_classes", "out")  # has no configuration to fit again with
    assert alone["baseline"] is None
    numbers = report(capsys, "planted_classes", "out", "--baseline-config", "neighbor_votes")
    assert numbers["beyond_attributes"] == alone["beyond_attributes"]
    assert list(numbers) == [
        *("command", "graph", "nodes", "edges", "targets", "baseline", "confidence"),
        *("link_stealing", "beyond_attributes"),
    ]
    assert numbers["baseline"] == "fitted without the targets"
    rows = {(row["attack"], row["others"]): row for row in numbers["link_stealing"]}
    assert len(rows) == 6
    for others in ("any", "equal degrees"):
        unseen = {"value": 0.5, "low": 0.5, "high": 0.5}
        asked = rows["influence on predictions", others]
        assert asked["release"]["auc"] == asked["baseline"]["auc"] == unseen
        alone = rows["public attributes alone", others]
        assert alone["release"] == alone["baseline"]
    (beyond, _) = numbers["beyond_attributes"]
    by_classes, alone = (
        rows[name, "any"]["release"]["auc"]["value"]
        for name in ("similarity of classes", "public attributes alone")
    )
    assert beyond["auc"]["value"] == pytest.approx(by_classes - alone)
    printed = str(dpg.attack("planted_classes", release))
    assert "classes of 200 nodes" in printed
    assert "AUC minus that of public attributes alone" in printed
    assert "names:" not in printed


def test_classes_of_other_nodes_are_no_release_of_the_graph(folder):
    release = dpg.fit("planted_classes", "neighbor_votes", epsilon=1.0, delta=1e-5)
    other = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"person {node}")
    with pytest.raises(CommandError, match="200, and their names are not the same"):
        dpg.attack(other, release)
    with pytest.raises(CommandError, match="holds no attributes"):
        dpg.attack(folder / "random.edges", release)
