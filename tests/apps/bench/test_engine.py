"""The benchmark as a function resumes, returns results, and refuses bad arguments."""

import errno
import json
import re
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest
import torch
import yaml
from torch_geometric.data import Data

from lightning_dpg.apps.bench.engine import compare
from lightning_dpg.apps.bench.given_graphs import named, write_object
from lightning_dpg.apps.bench.result_folder import locked
from lightning_dpg.apps.bench.study import complete
from lightning_dpg.apps.bench.tasks import GRAPH_LABELS, OF_KIND, SINGLE_GRAPHS
from lightning_dpg.datamodules import EdgeListDataModule, TUGraphDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.conversion import read_networkx
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.formats.kinds import in_kind
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.run.data import load


def test_results_are_those_of_the_folder_and_are_made_once(tmp_path, in_this_process):
    said = []
    results = compare(["erdos_renyi"], ["karate"], [2, 0.5], tmp_path, seeds=[0], say=said.append)
    assert [(table.graph, table.epsilon) for table in results.tables] == [
        ("karate", 0.5),
        ("karate", 2),
    ]
    rows = [row.method for table in results.tables for row in table.rows]
    assert rows == ["erdos_renyi (baseline)", "chung_lu (baseline)"] * 2
    recorded = [json.loads(path.read_text()) for path in (tmp_path / "cells").iterdir()]
    assert sorted(run["name"] for run in results.runs) == sorted(run["name"] for run in recorded)
    assert results.failed == 0
    assert all(path.is_file() for path in results.files)
    assert len(in_this_process) == 4
    again = compare(["erdos_renyi"], ["karate"], [2, 0.5], tmp_path, seeds=[0], say=said.append)
    assert len(in_this_process) == 4
    assert again.runs == results.runs
    assert said[-1] == "4 fits, 4 of them done already"


def same_graph(kind):
    """A graph of 30 nodes, some without an edge, in all forms in which Python holds such a graph."""
    graph = nx.gnp_random_graph(30, 0.08, seed=3, directed=kind == "directed")
    frame = pd.DataFrame(graph.edges, columns=["source", "target"])
    if kind == "undirected":
        module = EdgeListDataModule(graph)
        return [graph, from_networkx(graph), nx.to_scipy_sparse_array(graph), module, frame]
    if kind == "bipartite":
        graph = nx.bipartite.random_graph(12, 18, 0.1, seed=3)
        return [graph, in_kind(read_networkx(graph), kind).graph]
    return [graph, nx.to_scipy_sparse_array(graph), EdgeListDataModule(graph, kind=kind), frame]


@pytest.mark.parametrize("kind", ["undirected", "directed", "bipartite"])
def test_a_copy_of_an_object_is_read_as_the_object(kind, tmp_path):
    task, objects = OF_KIND[kind], same_graph(kind)
    original = load(objects[0], False, kind)
    assert original.num_nodes == 30
    for number, graph in enumerate(objects):
        path = write_object(f"g{number}", graph, task, False, tmp_path, needs_attributes=False)
        copy = task.load(path, False)
        if isinstance(graph, pd.DataFrame):  # which lists no nodes without an edge
            assert copy.num_edges == original.num_edges
            continue
        assert torch.equal(copy.edge_index, original.edge_index)
        assert copy.node_names == original.node_names
        assert space_of(copy) == space_of(original)


def test_a_copy_has_the_attributes_and_those_that_are_no_numbers_are_left_out(tmp_path):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.rand(3, 2), num_nodes=3)
    words = nx.path_graph(300)
    nx.set_node_attributes(words, {node: f"word{node}" for node in words}, "note")
    for name, graph in (("a", data), ("b", words)):
        write_object(name, graph, SINGLE_GRAPHS, False, tmp_path, needs_attributes=False)
    assert torch.equal(load(str(tmp_path / "a.npz"), False, attributes=True).x, data.x)
    assert load(str(tmp_path / "b.npz"), False, attributes=True).get("x") is None
    with pytest.raises(CommandError, match=r"graphs: c: .* too many for categories"):
        write_object("c", words, SINGLE_GRAPHS, False, tmp_path, needs_attributes=True)


def test_a_copy_of_a_set_has_its_labels_and_features(tmp_path):
    graphs = [from_networkx(nx.path_graph(n)) for n in (2, 4, 3)] + [Data(num_nodes=2)]
    for label, graph in enumerate(graphs):
        graph.y, graph.x = torch.tensor([3 * (label % 2) - 1]), torch.rand(graph.num_nodes, 2)
        graph.edge_index = torch.empty(2, 0).long() if label == 3 else graph.edge_index
    path = write_object("s", graphs, GRAPH_LABELS, False, tmp_path, needs_attributes=False)
    read = TUGraphDataModule(path)
    read.setup("fit")
    assert read.labels.tolist() == [0, 1, 0, 1]
    for copy, graph in zip(read.graphs, graphs, strict=True):
        assert torch.equal(copy.edge_index, graph.edge_index)
        assert torch.equal(copy.x, graph.x)


def test_objects_are_named_by_themselves_by_number_or_by_a_dictionary():
    graph, club = nx.path_graph(3), nx.karate_club_graph()
    given = named([graph, "karate", club, "karate", Path("a.csv")], SINGLE_GRAPHS)
    assert given == {
        "graph-0": graph,
        "karate": "karate",
        "Zachary's Karate Club": club,
        "a.csv": "a.csv",
    }
    assert list(named([[graph]], GRAPH_LABELS)) == ["set-0"]
    assert named({"mine": Path("a.csv"), "b": graph}, SINGLE_GRAPHS) == {
        "mine": "a.csv",
        "b": graph,
    }


def test_objects_are_kept_and_another_one_of_the_name_is_refused(tmp_path, in_this_process):
    def run(graphs):
        return compare(["erdos_renyi"], graphs, [4], tmp_path, seeds=[0], say=str)

    results = run([nx.karate_club_graph()])
    assert {run["graph"] for run in results.runs} == {"Zachary's Karate Club"}
    assert not results.failed
    assert [path.name for path in (tmp_path / "graphs").iterdir()] == ["Zachary's Karate Club.npz"]
    assert (tmp_path / "graphs").stat().st_mode & 0o77 == 0
    assert len(in_this_process) == 2
    assert run({"Zachary's Karate Club": nx.karate_club_graph()}).runs == results.runs
    assert len(in_this_process) == 2
    with pytest.raises(CommandError, match=r"Club: in .*, results of another graph have this"):
        run({"Zachary's Karate Club": nx.path_graph(5)})


STUDY = {"methods": ["erdos_renyi"], "graphs": ["karate"], "epsilons": [0.5, 2], "seeds": [3]}


def write_study(folder, changes=None):
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump({"title": "Small", "benchmark": STUDY | (changes or {})}))
    return file


def test_a_study_gives_the_arguments_and_given_ones_win(tmp_path, in_this_process):
    study = write_study(tmp_path)
    results = compare(study=study, out=tmp_path / "out", epsilons=[1], say=str)
    assert {(run["graph"], run["epsilon"], run["run"]) for run in results.runs} == {
        ("karate", 1, 3)
    }
    given = {"delta": 1e-5, "epsilons": None}
    assert complete(study, given) == (
        ["erdos_renyi"],
        ["karate"],
        [0.5, 2],
        [3],
        1e-5,
        False,
        False,
        "undirected",
        None,
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilons": [1, "two"]}, "benchmark: epsilons: must be a list of numbers, got"),
        ({"seeds": 5}, "benchmark: seeds: must be a list of whole numbers, got 5"),
        ({"graphs": "karate"}, "benchmark: graphs: must be a list of names, got 'karate'"),
        (
            {"kind": "both"},
            "benchmark: kind: must be undirected, directed or bipartite, got 'both'",
        ),
        ({"classify": 1}, "benchmark: classify: must be true or false, got 1"),
        ({"epsilon": 1}, "benchmark: epsilon: no such argument, did you mean epsilons?"),
    ],
)
def test_faults_of_a_study_name_file_and_key(tmp_path, changes, said):
    study = write_study(tmp_path, changes)
    with pytest.raises(CommandError, match=re.escape(f"study {study}: {said}")):
        compare(study=study, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_study_is_refused(tmp_path):
    (tmp_path / "study.yaml").write_text("title: Measured otherwise\n")
    for file in ("study.yaml", "missing.yaml"):
        with pytest.raises(
            CommandError, match=f"study .*{file}: (no section benchmark|no such file)"
        ):
            compare(study=tmp_path / file, out=tmp_path / "out")
    with pytest.raises(CommandError, match="methods, epsilons missing; give them, or a study"):
        compare(graphs=["karate"], out=tmp_path / "out")
    with pytest.raises(CommandError, match="out missing"):
        compare(study=write_study(tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": []}, "there must be a seed"),
        ({"processes": 0}, "a process or more, got 0"),
        ({"epsilons": [0]}, "epsilons must be positive and finite, got 0"),
        ({"graphs": ["karat"]}, "did you mean karate"),
        ({"methods": ["bte"]}, r"methods bte: no such file[^-]+lightning_dpg.list_methods\(\)$"),
        ({"methods": "bter"}, r"methods must be a list of names, such as \['bter'\]"),
        ({"epsilons": 1.0}, "epsilons must be a list of numbers, got 1.0"),
        ({"graphs": nx.path_graph(3)}, r"an object of type Graph\ngive \[graph\]"),
        ({"graphs": {"../a": nx.path_graph(3)}}, "'../a' cannot be the name of a graph"),
        ({"graphs": [nx.Graph([(0, 1)], name="/a")]}, "'/a' cannot be the name"),
        ({"graphs": [nx.Graph([(0, 1)], name="a")] * 2 + [nx.Graph(name="a")]}, "two .* named 'a'"),
        ({"queries": ["trangles"]}, "'trangles' is no query of a graph, did you mean triangles"),
        ({"queries": "all"}, r"queries must be a list of names, such as \['all'\]"),
        ({"graphs": {"a": [nx.path_graph(3)]}}, "graphs: a: a list of graphs is a set"),
        ({"graphs": [3]}, "graphs: graph-0: an object of type int is no graph"),
        ({"graphs": ["directed.graphml"]}, "set undirected=True of lightning_dpg.read to"),
    ],
)
def test_refused_arguments_leave_no_folder(here, changes, said):
    nx.write_graphml(nx.DiGraph([("0", "1"), ("1", "2")]), "directed.graphml")
    given = {"methods": ["bter"], "graphs": ["karate"], "epsilons": [1], "out": here / "out"}
    with pytest.raises(CommandError, match=said):
        compare(**given | changes)
    assert not (here / "out").exists()


def test_a_network_folder_without_locks_is_used(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, "refused by the file system")

    monkeypatch.setattr("fcntl.flock", refuse)
    number = errno.ENOLCK
    with locked(tmp_path):
        pass
    number = errno.EIO
    with pytest.raises(CommandError, match="cannot be written to"), locked(tmp_path):
        pass
