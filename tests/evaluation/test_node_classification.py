"""Node classification on releases: graphs, files, and what is refused."""

import csv
import json

import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.node_classification import NamedGraph, evaluate_nodes
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.main import main
from lightning_dpg.metrics.node_classification import NETWORKS, NODE_QUERIES
from tests.attributed import attributed_graph

BASELINES = ["no graph", "similarity graph", "degrees alone"]


@pytest.fixture(autouse=True)
def short(monkeypatch, tmp_path):
    """A short training, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name, network in NETWORKS.items():
        monkeypatch.setitem(NETWORKS, name, network._replace(steps=5))


@pytest.fixture
def planted():
    """Six groups of 20 nodes, with the group as the class."""
    graph, x = attributed_graph()
    graph.x, graph.y = x, torch.arange(120) % 6
    graph.attribute_names = [f"word {n}" for n in range(x.shape[1])]
    return graph


@pytest.fixture
def files(planted, tmp_path):
    """The real graph, a release with attributes and one without."""
    write_graph(planted, tmp_path / "real.graphml")
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "privacy.json").write_text('{"guarantee": "edge-level (1, 0)-DP"}')
    write_graph(planted, tmp_path / "release" / "synthetic-0.npz")
    write_graph(make_graph(undirected_edges(planted), 120), tmp_path / "plain.edges")


def scores_of(rows, name):
    return [row.scores for row in rows if row.graph == name]


def test_a_release_that_equals_the_real_graph_scores_as_the_real_graph(planted):
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    names = [planted.node_names[i] for i in order]
    shuffled = make_graph(place[undirected_edges(planted)], 120, names)
    graphs = [NamedGraph("a", planted, ""), NamedGraph("b", shuffled, "")]
    rows = evaluate_nodes("r", planted, graphs, [0, 1]).rows
    assert [row.graph for row in rows[::2]] == [*BASELINES, "a", "b", "real graph"]
    assert scores_of(rows, "a") == scores_of(rows, "real graph") == scores_of(rows, "b")
    by_name = {row.graph: row for row in rows if row.network == "SGC"}
    real, degrees = (
        by_name[name].mean("node_accuracy") for name in ("real graph", "degrees alone")
    )
    assert real > degrees
    assert by_name["similarity graph"].num_edges == by_name["a"].num_edges
    assert by_name["no graph"].num_edges == 0
    assert [name for name, row in by_name.items() if row.reads_real] == [
        "degrees alone",
        "real graph",
    ]


def test_scores_of_a_release_do_not_depend_on_the_real_edges(planted):
    found = [
        evaluate_nodes("r", real, [NamedGraph("a", planted, "")], [0]).rows
        for real in (planted, make_graph(torch.tensor([[0, 1], [1, 2]]), 120))
    ]
    for name in ("no graph", "similarity graph", "a"):
        first, second = (
            [[s[:2] for s in scores] for scores in scores_of(rows, name)] for rows in found
        )
        assert first == second
    assert scores_of(found[0], "real graph") != scores_of(found[1], "real graph")


@pytest.mark.usefixtures("files")
def test_tables_and_files_of_the_command(tmp_path, capsys):
    command = ["evaluate", "real.graphml", ".", "plain.edges", "--task", "node-classification"]
    assert main([*command, "--csv", "o.csv", "--html", "o.html", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["seeds"] == [0, 1, 2, 3, 4]
    assert [content[f"num_{part}"] for part in ("train", "validation", "test")] == [36, 28, 56]
    names = [row["graph"] for row in content["rows"][::2]]
    assert names == [*BASELINES, "release/synthetic-0.npz", "plain.edges", "real graph"]
    rows = list(csv.DictReader((tmp_path / "o.csv").open(newline="")))
    assert len(rows) == 6 * len(NETWORKS) * len(NODE_QUERIES)
    for row, (entry, query) in zip(
        rows, ((entry, query) for entry in content["rows"] for query in NODE_QUERIES), strict=True
    ):
        score = entry["scores"][query]
        values = score["values"]
        assert (row["graph"], row["network"], row["score"]) == (
            entry["graph"],
            entry["network"],
            query,
        )
        assert float(row["mean"]) == score["mean"] == pytest.approx(np.mean(values))
        assert score["deviation"] == pytest.approx(np.std(values, ddof=1))
    page = (tmp_path / "o.html").read_text()
    assert "edge-level (1, 0)-DP" in page and "Not private" in page and "plain.edges" in page


@pytest.mark.usefixtures("files")
def test_python_takes_objects_and_shows_the_table(planted):
    found = dpg.evaluate("real.graphml", planted, task="node_classification")
    assert [row.graph for row in found.rows[-4::2]] == ["synthetic-0", "real graph"]
    assert "<table>" in found._repr_html_() and str(found) == repr(found)
    frame = found.to_dataframe()
    assert len(frame) == len(found.rows) * len(NODE_QUERIES)
    assert frame["mean"].tolist()[: len(NODE_QUERIES)] == [*map(found.rows[0].mean, NODE_QUERIES)]
    assert {*frame[frame.trained_on_real_edges].graph} == {"degrees alone", "real graph"}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["real.graphml", "plain.edges"], "plain.edges: no classes of nodes"),
        (["les_miserables", "real.graphml"], "les_miserables: none of its nodes"),
        (["real.graphml", "real.graphml", "--kind", "directed"], "leave kind out"),
    ],
)
def test_mistakes(args, said, fails):
    assert said in fails("evaluate", *args, "--task", "node-classification")


def test_too_few_classes_and_no_attributes_are_refused(planted):
    planted.y = torch.zeros(120, dtype=torch.long)
    with pytest.raises(CommandError, match="120 nodes with a class, of 1 classes: too few"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
    planted.x = planted.x[:, :0]
    with pytest.raises(CommandError, match="a: no attributes of nodes"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
