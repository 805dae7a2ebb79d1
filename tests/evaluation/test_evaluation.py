"""``evaluate`` in Python takes graphs, releases and folders of them, and keeps what it measured."""

import doctest
import json

import networkx as nx
import pytest

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation import evaluate as evaluate_module
from lightning_dpg.evaluation import evaluation, given_graphs
from lightning_dpg.evaluation.evaluate import (
    evaluate,
)
from lightning_dpg.formats.io import from_networkx, write_graph
from lightning_dpg.methods import ErdosRenyi, GraphKernel
from lightning_dpg.metrics import queries
from lightning_dpg.release.release import Release
from lightning_dpg.run.fit import fit_method
from lightning_dpg.run_folder import release_folder

KARATE = nx.karate_club_graph()
GUARANTEE = "edge-level (1, 0)-DP"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run: eleven released graphs in two formats, and their statement."""
    release = tmp_path_factory.mktemp("run") / "release"
    release.mkdir()
    for seed in range(11):
        drawn = from_networkx(nx.gnm_random_graph(34, 60 + seed, seed=seed))
        for suffix in ("edges", "npz"):
            write_graph(drawn, release / f"synthetic-{seed}.{suffix}")
    (release / "privacy.json").write_text(json.dumps({"guarantee": GUARANTEE}))
    return release.parent


def test_answers_are_those_of_the_queries():
    drawn = nx.gnm_random_graph(34, 60, seed=1)
    found = evaluate(KARATE, [drawn, from_networkx(KARATE)])
    assert list(found.answers) == ["synthetic-0", "synthetic-1"]
    expected = queries.compare(queries.profile(from_networkx(KARATE)), from_networkx(drawn))
    assert str(found.answers["synthetic-0"]) == str(expected)  # nan differs from itself
    assert found.answers["synthetic-1"]["edge_overlap"].score == 1
    assert found.measured[1].comparison.is_matched


def test_of_a_folder_all_graphs_are_taken_once_and_in_order(run):
    found = evaluate("karate", run)
    edges = [answers["num_edges"].synthetic for answers in found.answers.values()]
    assert edges == [*range(60, 71)]
    assert {measured.guarantee for measured in found.measured} == {GUARANTEE}
    assert [*found.answers][1] == str(run / "release" / "synthetic-1.npz")
    assert release_folder(str(run)) == release_folder(run / "release") == run / "release"
    assert release_folder("karate") is None


def test_an_open_release_gives_its_graph_and_its_guarantee():
    method = ErdosRenyi(34)
    fit_method(method, EdgeListDataModule("karate"), 1.0, 0.0)
    found = evaluate(KARATE, Release(method, {"guarantee": GUARANTEE}))
    drawn = Release(method, {}).sample(0)
    assert found.answers["synthetic-0"]["num_edges"].synthetic == drawn.num_edges / 2
    assert found.measured[0].guarantee == GUARANTEE


@pytest.mark.parametrize(
    ("synthetic", "count"),
    [([("0", "1"), ("1", "2")], 1), ([[0, 1], [1, 2]], 1), ([KARATE, KARATE], 2), (["a", "b"], 2)],
)
def test_a_list_holds_graphs_or_the_edges_of_one(synthetic, count, monkeypatch):
    monkeypatch.setattr(given_graphs, "load", lambda *_, **__: from_networkx(KARATE))
    assert len(evaluate("karate", synthetic).measured) == count


@pytest.mark.parametrize(
    ("synthetic", "said"),
    [
        ([], "no synthetic graph"),
        (Release(GraphKernel(), {}), "GraphKernel releases features, and draws no graph"),
        ("nowhere.npz", "nowhere.npz: no such file"),
        (nx.DiGraph([(0, 1)]), "set undirected=True of lightning_dpg.read to drop the directions$"),
    ],
)
def test_what_holds_no_graph_is_refused_before_the_work(synthetic, said, monkeypatch):
    monkeypatch.setattr(queries, "profile", None)
    with pytest.raises(CommandError, match=said):
        evaluate("karate", synthetic)


@pytest.mark.parametrize(
    ("content", "said"),
    [("{}", "no privacy statement"), ('{"guarantee": "none"}', "without synthetic graphs")],
)
def test_damaged_folders_are_refused(tmp_path, content, said):
    (tmp_path / "privacy.json").write_text(content)
    with pytest.raises(CommandError, match=said):
        evaluate("karate", tmp_path)


def test_example_in_the_docstring():
    for module in (evaluate_module, evaluation):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed
