"""What a plan serves at few nodes is said before it is spent, and an empty graph has a word."""

import json
import math

import networkx as nx
import numpy as np
import pytest

import lightning_dpg as dpg
from lightning_dpg import methods
from lightning_dpg.apps.studio import inquiry
from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.main import main
from lightning_dpg.methods.synthesizer import NO_EDGES
from lightning_dpg.preflight.budget import served
from lightning_dpg.privacy.budget import Budget

SMALL = "34 nodes at epsilon 1: the number of edges (± 15); noise may hide degrees and clustering"


def sentence(name, num_nodes, epsilon):
    plan = getattr(methods, name)(num_nodes=num_nodes).plan(Budget(epsilon, 0.0), 1)
    return served(plan, epsilon, num_nodes)


def test_few_nodes_serve_less_than_many():
    small, large = (sentence("BTER", nodes, 1.0) for nodes in (34, 1000))
    assert small == (SMALL, False)
    assert large.is_all
    assert large.sentence.endswith("(± 27), degrees and clustering")
    assert sentence("BTER", 34, math.inf) == ("", True)
    assert "(± 2,800)" in sentence("BTER", 20_000, 0.01).sentence
    assert served([], 1.0, 34) == ("", True)


@pytest.mark.parametrize("name", ["BTER", "ChungLu"])
def test_the_deviation_of_the_number_of_edges_is_that_of_releases(name):
    """Against noise that is drawn, with the least squares of networks of 34 nodes."""
    plan = getattr(methods, name)(num_nodes=34).plan(Budget(1.0, 0.0), 1)
    rng = np.random.default_rng(0)
    draws, weights = [], []
    for read in plan[:3]:
        terms = 1 if read.key == "num_edges" else 34
        noise = rng.laplace(scale=read.sensitivity / read.event.pure_epsilon, size=(20_000, terms))
        draws.append(noise.sum(axis=1) / (1 if terms == 1 else 2))
        weights.append(1 / draws[-1].var())
    std = np.average(draws, axis=0, weights=weights).std()
    said = float(sentence(name, 34, 1.0).sentence.partition("± ")[2].partition(")")[0])
    assert said == pytest.approx(std, rel=0.06)


def test_plan_fit_and_studio_say_it_before_they_spend(here, monkeypatch, printed):
    given = ["--goal", "shape", "--epsilon", "1", "--num-nodes", "34", "--json", "--full"]
    assert SMALL in json.loads(printed(main(["plan", *given])))["hints"]
    nx.write_edgelist(nx.karate_club_graph(), "club.csv", delimiter=",", data=False)
    answers = Answers(data="club.csv", method="bter", epsilon=1.0)
    assert inquiry.planned(answers, inquiry.read(answers))[-1] == SMALL
    monkeypatch.setattr(methods.BTER, "release", lambda *given: pytest.fail("it was spent"))
    with (
        pytest.warns(UserWarning, match="noise may hide"),
        pytest.raises(BaseException, match="spent"),
    ):
        dpg.fit("karate", "bter", epsilon=1.0)


@pytest.mark.parametrize("name", ["ChungLu", "ErdosRenyi"])
def test_an_empty_graph_is_told(name):
    release = dpg.fit("karate", getattr(methods, name), epsilon=1.0)
    for released in release.method.released_state().values():
        released.zero_()
    with pytest.warns(UserWarning) as caught:
        assert not release.sample(seed=0).num_edges
    assert [str(each.message) for each in caught] == [NO_EDGES]
