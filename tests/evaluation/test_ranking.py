"""Order of models on a release and on the real graph: tau, what is held out, and the command."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from lightning_dpg.evaluation import ranking
from lightning_dpg.evaluation.node_classification import NamedGraph
from lightning_dpg.evaluation.ranking import MODELS, Trial, held_out, rank_models, tau_of
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.main import main
from tests.evaluation.test_node_classification import planted_graph


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A short bootstrap."""
    monkeypatch.setattr(ranking, "_REPLICATES", 10)


def counted_tau(first, second):
    """Tau-b, from the signs of all pairs of models."""
    signs = [
        np.sign([a - b for a, b in itertools.combinations(each, 2)]) for each in (first, second)
    ]
    return (signs[0] @ signs[1]) / math.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum())


def items_of(correct, total=20):
    """Items of one seed of which so many are right, by model."""
    return (np.arange(total) < np.array(correct)[:, None]).astype(np.float32)[None]


def test_tau_is_that_of_counted_pairs_and_its_interval_is_narrow_where_models_are_far_apart():
    real = items_of([2, 4, 6, 8, 10, 12, 14, 16])
    for correct in (
        [2, 4, 6, 8, 10, 12, 14, 16],
        [4, 2, 6, 6, 10, 16, 14, 12],
        [9, 8, 7, 6, 5, 4, 3, 2],
    ):
        found = tau_of(items_of(correct), real)
        assert found.value == pytest.approx(counted_tau(correct, real.sum((0, 2))))
        assert found.low <= found.high
    assert tau_of(np.full_like(real, np.nan), real).text() == "-"
    apart = np.repeat([0.0, 1.0], 4)[None, :, None] * np.ones((2, 8, 50))
    assert tau_of(apart, apart)[1:] == pytest.approx((1, 1))


def test_models_of_known_order_have_its_tau_and_a_mirrored_graph_has_the_contrary(monkeypatch):
    """A model is right as often as its number says, on a graph without edges in the contrary order."""
    seen = []

    def items(trial, name):
        seen.append(trial)
        place = MODELS.index(name)
        place = place if trial.graph.num_edges else len(MODELS) - 1 - place
        return np.repeat(items_of([place + 3]), 2, axis=0)[:, 0]

    monkeypatch.setattr(Trial, "_classes", items)
    monkeypatch.setattr(Trial, "_links", items)
    real = planted_graph()
    found = rank_models("r", real, [NamedGraph("a", real, "a guarantee")], num_seeds=2)
    taus = {(row.task, row.graph): row.tau.value for row in found.rows}
    for task in ("classes", "links"):
        assert taus[task, "a"] == taus[task, "real graph again"] == pytest.approx(1)
        assert taus[task, "no graph"] == pytest.approx(-1)
    assert (
        len({trial.seed for trial in seen}) == 4
    )  # two seeds, and other weights of the real graph
    assert "a guarantee" in found.text() and "not private" in found.text()


def test_no_tested_pair_is_learned_from_and_other_pairs_are_no_edges():
    real = planted_graph()
    links, others = held_out(real, 3)
    edges = {*map(tuple, undirected_edges(real).tolist())}
    assert {*map(tuple, links.tolist())} <= edges
    assert {*map(tuple, others.tolist())}.isdisjoint(edges)
    assert len(links) == len(others) == math.ceil(len(edges) / 10)
    given = make_graph(torch.cat([undirected_edges(real), others]), 120)
    left = Trial(None, None, real, links, others, given, 0)._untested(given)
    assert {*map(tuple, left.tolist())} == edges - {*map(tuple, links.tolist())}


def test_the_command_ranks_models_of_a_release(tmp_path, capsys):
    """Planted classes follow edges: models of edges stand first on the real graph, and on a copy."""
    graph = planted_graph()
    write_graph(graph, tmp_path / "real.graphml")
    write_graph(graph, tmp_path / "copy.npz")
    command = ["evaluate", str(tmp_path / "real.graphml"), str(tmp_path / "copy.npz")]
    page = tmp_path / "page.html"
    rest = ["--task", "ranking", "--num-seeds", "1", "--html", str(page), "--json"]
    assert main([*command, *rest]) == 0
    values = json.loads(capsys.readouterr().out)
    rows = {(row["task"], row["graph"]): row for row in values["rows"]}
    copy, real = (rows["classes", name] for name in (str(tmp_path / "copy.npz"), "real graph"))
    assert copy["scores"] == real["scores"] and copy["tau"][0] == pytest.approx(1)
    assert real["scores"]["GCN"] > real["scores"]["MLP"] + 0.2
    assert rows["links", "no graph"]["tau"][0] is None
    assert "GraphSAGE" in page.read_text()
    assert main([*command, "--kind", "directed", "--task", "ranking"]) == 2
    assert "rankings are for undirected graphs" in capsys.readouterr().err
