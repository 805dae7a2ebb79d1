"""Node classification on releases: graphs, predictions, controls, files, and what is refused."""

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
from lightning_dpg.graph.node_splits import split_nodes
from lightning_dpg.main import main
from lightning_dpg.metrics.node_classification import NETWORKS, NODE_QUERIES
from tests.attributed import attributed_graph

NETWORK_CONTROLS = ["no graph", "similarity graph", "ensemble of both"]
CONTROLS = [*NETWORK_CONTROLS, "no graph"]
TASK = ["--task", "node-classification"]


@pytest.fixture(autouse=True)
def short(monkeypatch, tmp_path):
    """A short training, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name, network in NETWORKS.items():
        monkeypatch.setitem(NETWORKS, name, network._replace(steps=5))


def planted_graph():
    """Six groups of 20 nodes, with the group as the class."""
    graph, x = attributed_graph()
    graph.x, graph.y = x, torch.arange(120) % 6
    graph.attribute_names = [f"word {n}" for n in range(x.shape[1])]
    return graph


@pytest.fixture
def planted():
    return planted_graph()


@pytest.fixture(scope="module")
def releases():
    """Predictions at two budgets for each of two splits, and one that has learned all classes."""
    fits = [(4.0, 0), (4.0, 1), (1.0, 0), (1.0, 1), (1.0, None)]
    graph = planted_graph()
    return {
        (epsilon, seed): dpg.fit(
            graph, "neighbor_votes", epsilon=epsilon, split_seed=seed, rank=8, rounds=1
        )
        for epsilon, seed in fits
    }


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


def names_of(rows):
    return [row.graph for row in rows if row.network in ("GCN", "self-training")]


def test_a_release_that_equals_the_real_graph_scores_as_the_real_graph(planted):
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    names = [planted.node_names[i] for i in order]
    shuffled = make_graph(place[undirected_edges(planted)], 120, names)
    graphs = [NamedGraph("a", planted, ""), NamedGraph("b", shuffled, "")]
    found = evaluate_nodes("r", planted, graphs, seeds=[0, 1])
    rows = found.rows
    assert names_of(rows) == [*CONTROLS, "degrees alone", "a", "b", "real graph"]
    assert scores_of(rows, "a") == scores_of(rows, "real graph") == scores_of(rows, "b")
    by_name = {row.graph: row for row in rows if row.network == "SGC"}
    real, degrees = (
        by_name[name].mean("node_accuracy") for name in ("real graph", "degrees alone")
    )
    assert real > degrees
    assert by_name["similarity graph"].num_edges == by_name["a"].num_edges
    assert by_name["no graph"].num_edges == 0
    assert {row.graph for row in rows if row.role == "real"} == {"degrees alone", "real graph"}
    assert {row.graph for row in rows if row.role == "control"} == {*NETWORK_CONTROLS}
    assert found.best_control.mean("node_accuracy") == max(
        row.mean("node_accuracy") for row in rows if row.role == "control"
    )
    best = found.best_control.values("node_accuracy")
    for (graph, network), difference in found.differences().items():
        row = next(row for row in rows if (row.graph, row.network) == (graph, network))
        expected = np.mean(row.values("node_accuracy")) - np.mean(best)
        assert difference.mean == pytest.approx(expected)


def test_scores_of_a_release_do_not_depend_on_the_real_edges(planted):
    found = [
        evaluate_nodes("r", real, [NamedGraph("a", planted, "")], seeds=[0]).rows
        for real in (planted, make_graph(torch.tensor([[0, 1], [1, 2]]), 120))
    ]
    for name in ("no graph", "similarity graph", "ensemble of both", "a"):
        first, second = (
            [[s[:2] for s in scores] for scores in scores_of(rows, name)] for rows in found
        )
        assert first == second
    assert scores_of(found[0], "real graph") != scores_of(found[1], "real graph")


def test_predictions_are_scored_on_nodes_that_were_not_learned(planted, releases):
    four, one = ([releases[epsilon, seed] for seed in (0, 1)] for epsilon in (4.0, 1.0))
    data = dpg.read(planted, attributes="from_graph")
    found = dpg.evaluate(data, [*four, planted, *one], task="node_classification")
    assert found.setting.seeds == (0, 1)
    rows = {(row.graph, row.network): row for row in found.rows}
    for name, group in (("NeighborVotes at 4", four), ("NeighborVotes at 1", one)):
        for part in ("posteriors", "student"):
            by_hand = []
            for seed, release in enumerate(group):
                split = split_nodes(planted.y, seed)
                known = torch.nonzero(release.method.known_labels() >= 0)[:, 0]
                assert torch.equal(split.train.sort().values, known)
                assert not torch.isin(split.test, known).any()
                x = None if part == "posteriors" else planted.x
                right = release.predict(x) == planted.y.numpy()
                by_hand.append(right[split.test].mean())
            row = rows[name, part]
            assert row.values("node_accuracy") == pytest.approx(by_hand)
            assert np.isnan(row.mean("node_accuracy_on_real_edges"))
            assert row.role == "released" and row.guarantee == group[0].guarantee
    # Networks have the training nodes of the releases, which are those of the same seeds.
    usual = evaluate_nodes("r", planted, [NamedGraph("synthetic-2", planted, "")], seeds=[0, 1])
    for row in usual.rows:
        assert rows[row.graph, row.network].scores == row.scores
    controls = [row for row in found.rows if row.role == "control"]
    assert [row.title for row in controls[-2:]] == [
        f"similarity graph (NeighborVotes {part})" for part in ("posteriors", "student")
    ]


def test_releases_keep_their_own_nodes_and_classes(planted, releases):
    """One of fewer known classes of other numbers, whose nodes have another order."""
    order = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    graph = make_graph(order.argsort()[undirected_edges(planted)], 120)
    graph.node_names = [str(node) for node in order.tolist()]
    graph.x, graph.y = planted.x[order], 10 * planted.y[order] + 5
    graph.attribute_names = planted.attribute_names
    taught = graph.clone()
    taught.y = torch.where(torch.arange(120) < 60, graph.y, -1)
    release = dpg.fit(taught, "neighbor_votes", epsilon=4.0, rank=8, rounds=1)
    planted.y = 10 * planted.y + 5
    found = dpg.evaluate(
        dpg.read(planted, attributes="from_graph"), release, task="node_classification"
    )
    assert found.setting[2:] == ((0,), 60, 20, 40)
    right = torch.from_numpy(release.predict()) == graph.y
    assert found.setting.num_validation + found.setting.num_test == 60
    tested = order[60:]  # in their names
    (row,) = (row for row in found.rows if row.network == "posteriors")
    split = [node for node in tested.tolist()]
    assert row.mean("node_accuracy") <= 1 and len(split) == 60
    assert right[:60].all()


def test_releases_of_other_splits_and_of_all_classes_are_refused(planted, releases):
    data = dpg.read(planted, attributes="from_graph")

    def refused(*chosen, **settings):
        with pytest.raises(CommandError) as error:
            dpg.evaluate(
                data, [releases[key] for key in chosen], task="node_classification", **settings
            )
        return str(error.value)

    assert "the classes of all nodes, and none is left to score" in refused((1.0, None))
    assert "learned from the classes of other nodes than" in refused((1.0, 0), (4.0, 1))
    for settings in ({"seeds": 3}, {"train_fraction": 0.75}):
        assert "the releases have their splits" in refused((1.0, 0), **settings)
    data.graph.y = 5 - planted.y
    assert "learned other classes than real has" in refused((1.0, 0))
    data.graph.x, data.graph.y = planted.x[:, :5], planted.y
    assert "one column for each attribute of the fit" in refused((1.0, 0))
    with pytest.raises(CommandError, match="NeighborVotes predicts classes of nodes, and draws no"):
        dpg.evaluate(data, releases[1.0, 0])


@pytest.mark.usefixtures("files")
def test_a_folder_of_predictions_and_files_of_the_command(releases, tmp_path, capsys):
    releases[4.0, 0].save(tmp_path / "votes")
    command = ["evaluate", "real.graphml", "release", "votes", "plain.edges", *TASK]
    assert main([*command, "--csv", "o.csv", "--html", "o.html", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["seeds"] == [0]
    assert [content[f"num_{part}"] for part in ("train", "validation", "test")] == [36, 28, 56]
    names = [row["graph"] for row in content["rows"] if row["network"] == "SGC"]
    assert names[3:] == ["degrees alone", "release/synthetic-0.npz", "plain.edges", "real graph"]
    rows = list(csv.DictReader((tmp_path / "o.csv").open(newline="")))
    assert len(rows) == len(content["rows"]) * len(NODE_QUERIES)
    for row, (entry, query) in zip(
        rows, ((entry, query) for entry in content["rows"] for query in NODE_QUERIES), strict=True
    ):
        score = entry["scores"][query]
        numbers = score["mean"], (score["to_best_control"] or {}).get("mean")
        assert [*row.values()][:4] == [
            entry["graph"],
            "" if entry["num_edges"] is None else f"{entry['num_edges']:g}",
            entry["network"],
            query,
        ]
        assert (row["mean"], row["to_best_control"]) == tuple(
            "" if number is None else str(number) for number in numbers
        )
    page = (tmp_path / "o.html").read_text()
    for text in ("edge-level (1, 0)-DP", "Not private", "plain.edges", "Best control", "votes"):
        assert text in page


@pytest.mark.usefixtures("files")
def test_python_takes_objects_seeds_and_a_share_and_shows_the_table(planted):
    found = dpg.evaluate(
        "real.graphml", planted, task="node_classification", seeds=3, train_fraction=0.75
    )
    assert found.setting[2:] == ((0, 1, 2), 90, 12, 18)
    assert [row.graph for row in found.rows[-4::2]] == ["synthetic-0", "real graph"]
    assert "<table>" in found._repr_html_() and str(found) == repr(found)
    frame = found.to_dataframe()
    assert len(frame) == len(found.rows) * len(NODE_QUERIES)
    assert frame["mean"].tolist()[: len(NODE_QUERIES)] == [*map(found.rows[0].mean, NODE_QUERIES)]
    said = " ".join(found.conclusion())
    for row in found.rows:
        if row.role == "released":
            difference = found.difference(row)
            group = (
                "within seed noise of it"
                if difference.is_noise
                else ("above it" if difference.mean > 0 else "below it")
            )
            assert row.title in said.split(f"{group}: ")[1].split(" it: ")[0]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["real.graphml", "plain.edges"], "plain.edges: no classes of nodes"),
        (["les_miserables", "real.graphml"], "les_miserables: none of its nodes"),
        (["real.graphml", "real.graphml", "--kind", "directed"], "leave kind out"),
        (["real.graphml", "real.graphml", "--train-fraction", "1"], "between 0 and 1, got 1"),
    ],
)
def test_mistakes(args, said, fails):
    assert said in fails("evaluate", *args, *TASK)


def test_options_of_classes_are_refused_for_queries(fails):
    said = fails("evaluate", "karate", "karate", "--seeds", "3")
    assert "--seeds is an option of --task node-classification" in said


def test_too_few_classes_and_no_attributes_are_refused(planted):
    planted.y = torch.zeros(120, dtype=torch.long)
    with pytest.raises(CommandError, match="120 nodes with a class, of 1 classes: too few"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
    planted.x = planted.x[:, :0]
    with pytest.raises(CommandError, match="a: no attributes of nodes"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
