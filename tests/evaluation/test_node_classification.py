"""Node classification on releases: graphs, predictions, controls, what they read, and refusals."""

import csv
import json

import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation import node_classification
from lightning_dpg.evaluation.node_classification import (
    NamedGraph,
    NamedPredictions,
    evaluate_nodes,
)
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.held_out import split_nodes
from lightning_dpg.main import main
from lightning_dpg.metrics.node_classification import NETWORKS, NODE_QUERIES, node_scores
from tests.attributed import attributed_graph
from tests.small_methods import short_fits  # noqa: F401  # a fixture

CONTROLS = ["no graph", "similarity graph", "no graph"]
TASK = ["--task", "node-classification"]
SMALL = {"rank": 8, "rounds": 1}


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
    """Predictions at two budgets from one split, and from all classes."""
    graph = planted_graph()
    return {
        (epsilon, seed): dpg.fit(
            graph, "neighbor_votes", epsilon=epsilon, split_seed=seed, delta=1e-5, **SMALL
        )
        for epsilon, seed in [(4.0, 3), (1.0, 3), (4.0, None)]
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


def seen_logs(monkeypatch, *arguments, **settings):
    """Log probabilities of the test nodes of all rows, and the rows."""
    seen = []

    def keep(logs, *others):
        seen.append(logs)
        return node_scores(logs, *others)

    with monkeypatch.context() as patch:
        patch.setattr(node_classification, "node_scores", keep)
        return evaluate_nodes(*arguments, **settings).rows, seen


def test_a_release_that_equals_the_real_graph_scores_as_the_real_graph(planted):
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    names = [planted.node_names[i] for i in order]
    shuffled = make_graph(place[undirected_edges(planted)], 120, names)
    graphs = [NamedGraph("a", planted, ""), NamedGraph("b", shuffled, "")]
    found = evaluate_nodes("r", planted, graphs, num_seeds=2)
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
    assert {row.graph for row in rows if row.role == "control"} == {*CONTROLS}
    best = found.best_control
    assert best.mean("node_accuracy") == max(
        row.mean("node_accuracy") for row in rows if row.role == "control"
    )
    for row in rows:
        expected = np.mean(row.values("node_accuracy")) - np.mean(best.values("node_accuracy"))
        assert found.difference(row).mean == pytest.approx(expected)


def test_scores_of_a_release_do_not_depend_on_the_real_edges(planted):
    found = [
        evaluate_nodes("r", real, [NamedGraph("a", planted, "")], num_seeds=1).rows
        for real in (planted, make_graph(torch.tensor([[0, 1], [1, 2]]), 120))
    ]
    for name in ("no graph", "similarity graph", "a"):
        first, second = (
            [[s[:2] for s in scores] for scores in scores_of(rows, name)] for rows in found
        )
        assert first == second
    assert scores_of(found[0], "real graph") != scores_of(found[1], "real graph")


def test_controls_read_no_private_edge_and_no_row_a_class_of_the_test(
    planted, releases, monkeypatch
):
    """Those of the method on the similarity graph among them; all log probabilities are compared."""
    one = [NamedPredictions("votes", releases[4.0, 3])]
    rows, logs = seen_logs(monkeypatch, "r", planted, [], one, num_seeds=1)
    other = planted.clone()
    pairs = torch.combinations(torch.arange(120))
    drawn = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
    edges = pairs[drawn[: planted.num_edges // 2]]  # as many, and all others
    other.edge_index = make_graph(edges, 120).edge_index
    _, on_others = seen_logs(monkeypatch, "r", other, [], one, num_seeds=1)
    same = [torch.equal(*pair) for pair in zip(logs, on_others, strict=True)]
    for row, is_same in zip(rows, same, strict=True):
        assert is_same == (row.role != "real"), row.title  # the release does not change either
    assert [row.title for row in rows if row.role == "control"][-2:] == [
        "similarity graph (NeighborVotes, posteriors)",
        "similarity graph (NeighborVotes, student)",
    ]
    _, validation, test = split_nodes(planted.y, 3)
    assert not torch.isin(test, releases[4.0, 3].method.known_nodes).any()

    def with_wrong(nodes):
        wrong = planted.clone()
        wrong.y = planted.y.clone()
        wrong.y[nodes] = (planted.y[nodes] + 1) % 6
        _, found = seen_logs(monkeypatch, "r", wrong, [], one, num_seeds=1)
        return [torch.equal(*pair) for pair in zip(logs, found, strict=True)]

    assert all(with_wrong(test))
    for row, is_same in zip(rows, with_wrong(validation), strict=True):
        assert is_same or row.network in NETWORKS, row.title  # which stop by these classes


def test_the_first_seed_is_the_release_and_others_are_fits_within_its_budget(
    planted, releases, monkeypatch
):
    budgets = []
    learn = node_classification.PublicNodes.learn

    def kept(public, method, graph, known, *budget):
        budgets.append((graph.num_edges, budget[:2], known))
        learn(public, method, graph, known, *budget)

    monkeypatch.setattr(node_classification.PublicNodes, "learn", kept)
    four, one = releases[4.0, 3], releases[1.0, 3]
    data = dpg.read(planted, attributes="from_graph")
    found = dpg.evaluate(data, [four, planted, one], num_seeds=2)
    assert found.setting.seeds == (3, 4)
    rows = {(row.graph, row.network): row for row in found.rows}
    test = split_nodes(planted.y, 3).test
    for name, release in (("NeighborVotes at 4", four), ("NeighborVotes at 1", one)):
        for part, x in (("posteriors", None), ("student", planted.x)):
            row = rows[name, part]
            right = release.predict(x) == planted.y.numpy()
            assert row.values("node_accuracy")[0] == pytest.approx(right[test].mean())
            assert np.isnan(row.mean("node_accuracy_on_real_edges"))
            assert (row.role, row.num_refits, row.guarantee) == ("released", 1, release.guarantee)
    # One fit of each release again; without noise of their common method for each seed.
    paid, free = budgets[:2], budgets[2:]
    assert [budget for _, budget, _ in paid] == [(4.0, 1e-5), (1.0, 1e-5)]
    assert [budget for _, budget, _ in free] == [(float("inf"), 0.0)] * 2
    for _, _, known in (*paid, free[1]):
        assert torch.equal(known.sort().values, split_nodes(planted.y, 4).train.sort().values)


def test_a_known_class_is_no_prediction(planted):
    """A release of all classes shows them; fits without those of the test are scored in its place."""
    release = dpg.fit(planted, "neighbor_votes", epsilon=0.05, delta=1e-5, **SMALL)
    assert (release.predict() == planted.y.numpy()).all()
    found = dpg.evaluate(planted, release, num_seeds=1, train_fraction=0.75)
    assert found.setting[2:] == ((0,), 90, 12, 18)
    rows = [row for row in found.rows if row.role == "released"]
    assert [row.num_refits for row in rows] == [1, 1]
    assert max(row.mean("node_accuracy") for row in rows) < 1  # within so small a budget
    assert "learned all classes" in str(found)


def private(graph, classes=range(6)):
    nodes = Nodes(attributes="from_graph", policy={"y": "private_label"}, classes=list(classes))
    return EdgeListDataModule(graph, nodes=nodes)


def test_private_labels_are_learned_from_their_reports_in_all_rows(planted, monkeypatch):
    seen = []
    trained = node_classification.PublicNodes.trained
    monkeypatch.setattr(
        node_classification.PublicNodes,
        "trained",
        lambda public, name, graphs, drawn: (
            seen.append(drawn.evidence) or trained(public, name, graphs, drawn)
        ),
    )
    given = {"epsilon": 4.0, "delta": 1e-5, "row_epsilon": 1.0, "train_fraction": 0.75}
    data = private(planted, range(7))  # one class that nobody has
    release = dpg.fit(data, "neighbor_votes", split_seed=1, **given, **SMALL)
    method = release.method
    reported = method.known_classes
    assert (reported != planted.y[method.known_nodes]).any()
    found = dpg.evaluate(data, release, num_seeds=2)
    assert data.graph.y is None  # the true labels stay private
    assert found.setting[2:] == ((1, 2), 90, 12, 18)
    # Two evidences in all: the reports of the release, and those of the other fit.
    first = [each for each in seen if torch.equal(each.nodes, method.known_nodes)]
    assert len(first) * 2 == len(seen)
    for each in first:
        assert torch.equal(each.log_likelihoods, method.evidence().log_likelihoods)
    (likelihoods,) = {tuple(each.log_likelihoods.exp().unique().tolist()) for each in seen}
    assert likelihoods[1] / likelihoods[0] == pytest.approx(np.exp(1.0))
    unknown = np.setdiff1d(np.arange(120), method.known_nodes.numpy())
    right = (release.predict() == planted.y.numpy())[unknown]
    row = next(row for row in found.rows if row.network == "posteriors")
    assert row.values("node_accuracy")[0] * 18 <= right.sum()
    with pytest.raises(CommandError, match="learned from other reports of labels"):
        again = dpg.fit(data, "neighbor_votes", split_seed=1, **given, **SMALL)
        dpg.evaluate(data, [release, again])


def test_releases_keep_their_own_nodes_and_classes(planted):
    """One of fewer known classes of other numbers, whose nodes have another order."""
    order = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    graph = make_graph(order.argsort()[undirected_edges(planted)], 120)
    graph.node_names = [str(node) for node in order.tolist()]
    graph.x, graph.attribute_names = planted.x[order], planted.attribute_names
    graph.y = torch.where(torch.arange(120) < 60, 10 * planted.y[order] + 5, -1)
    release = dpg.fit(graph, "neighbor_votes", epsilon=4.0, delta=1e-5, **SMALL)
    planted.y = 10 * planted.y + 5
    found = dpg.evaluate(planted, release)
    assert found.setting[2:] == ((0,), 60, 20, 40)
    predicted = dict(zip(release.method.node_names, release.predict(), strict=True))
    right = sum(predicted[str(node)] == planted.y[node] for node in order[60:].tolist())
    row = next(row for row in found.rows if row.network == "posteriors")
    count = round(40 * row.mean("node_accuracy"))
    assert right - 20 <= count <= right  # 40 of these 60 nodes are scored
    with pytest.raises(CommandError, match="there are no other splits"):
        dpg.evaluate(planted, release, num_seeds=2)


def test_what_releases_do_not_fit_to_is_refused(planted, releases):
    def refused(real, *chosen, **settings):
        with pytest.raises(CommandError) as error:
            dpg.evaluate(real, [releases[key] for key in chosen], **settings)
        return str(error.value)

    assert "the classes of other nodes than" in refused(planted, (1.0, 3), (4.0, None))
    assert "training nodes of its own" in refused(planted, (1.0, 3), train_fraction=0.75)
    assert "predicts classes of nodes, and draws no" in refused(planted, (1.0, 3), task="queries")
    bare = make_graph(undirected_edges(planted), 120)
    assert "in Python give them" in refused(bare, (1.0, 3))
    other = planted.clone()
    other.y = 5 - planted.y
    assert "learned other classes than real has" in refused(other, (1.0, 3))
    other.x, other.y = planted.x[:, :5], planted.y
    assert "one column for each attribute of the fit" in refused(other, (1.0, 3))


def test_a_run_is_evaluated_as_it_is(tmp_path, capsys):
    words = ["neighbor_votes", "--model.init_args.rank", "4", "--model.init_args.rounds", "1"]
    assert main(["fit", "--config", *words, "--trainer.default_root_dir", "."]) == 0
    (run,) = tmp_path.glob("**/version_0")
    capsys.readouterr()
    assert main(["evaluate", str(run), "--num-seeds", "2", "--html", "o.html"]) == 0
    printed = capsys.readouterr().out
    assert "learned all classes" in printed and "Best control: " in printed
    assert "Best control: " in (tmp_path / "o.html").read_text()


@pytest.mark.usefixtures("files")
def test_a_folder_of_predictions_and_files_of_the_command(releases, tmp_path, capsys):
    releases[4.0, 3].save(tmp_path / "votes")
    command = ["evaluate", "real.graphml", "release", "votes", "plain.edges", "--num-seeds", "1"]
    assert main([*command, "--csv", "o.csv", "--html", "o.html", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["seeds"] == [3]
    assert [content[f"num_{part}"] for part in ("train", "validation", "test")] == [36, 28, 56]
    names = [row["graph"] for row in content["rows"] if row["network"] == "SGC"]
    assert names[2:] == ["degrees alone", "release/synthetic-0.npz", "plain.edges", "real graph"]
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
        "real.graphml", planted, task="node_classification", num_seeds=3, train_fraction=0.75
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
            beyond = "above it" if difference.mean > 0 else "below it"
            group = "within noise of it" if difference.is_noise else beyond
            assert row.title in said.split(f"{group}: ")[1].split(" it: ")[0]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["real.graphml", "plain.edges"], "plain.edges: no classes of nodes"),
        (["les_miserables", "real.graphml"], "les_miserables: none of its nodes"),
        (["real.graphml", "real.graphml", "--kind", "directed"], "leave kind out"),
        (["real.graphml", "real.graphml", "--train-fraction", "1"], "between 0 and 1, got 1"),
        (["real.graphml", "real.graphml", "--num-seeds", "0"], "must be 1 or more, got 0"),
    ],
)
def test_mistakes(args, said, fails):
    assert said in fails("evaluate", *args, *TASK)


def test_options_of_classes_are_refused_for_queries(fails):
    said = fails("evaluate", "karate", "karate", "--num-seeds", "3")
    assert "num_seeds is a setting of node classification" in said


def test_too_few_classes_and_no_attributes_are_refused(planted):
    planted.y = torch.zeros(120, dtype=torch.long)
    with pytest.raises(CommandError, match="120 nodes with a class, of 1 classes: too few"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
    planted.x = planted.x[:, :0]
    with pytest.raises(CommandError, match="a: no attributes of nodes"):
        evaluate_nodes("r", planted, [NamedGraph("a", planted, "")])
