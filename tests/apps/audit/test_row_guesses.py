"""Guesses of private rows: by hand, in a release that keeps its promise, and in one that leaks."""

import math
import re

import networkx as nx
import numpy as np
import pytest

import lightning_dpg as dpg
from lightning_dpg.apps.audit.attack_report import AttackReport
from lightning_dpg.apps.audit.row_guesses import by_neighbors, guess_rows, likelihoods
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.drawn_tables import DrawnRows
from lightning_dpg.release.release import Release
from tests.documented_objects import keys_of


def fitted(graph, column, values, **settings):
    """Data with a private column, and a release of them."""
    nodes = Nodes(
        attributes="from_graph",
        private_columns=column,
        domains={column: values},
        names=settings.pop("names", "numbers"),
    )
    data = EdgeListDataModule(graph, nodes=nodes)
    return data, dpg.fit(data, "attributed", **settings)


@pytest.fixture(scope="module")
def planted():
    return fitted("planted_partition", "block", list("0123"), epsilon=20.0, row_epsilon=20.0)


def by_knowledge(found):
    return {each.knowledge: each for each in found}


def test_neighbors_are_weighed_as_bayes_does():
    edges = np.array([[0, 1], [0, 2], [1, 3]])
    values, links = np.array([0, 1, 1, 0]), np.array([[6.0, 0], [3.0, 9.0]])
    before = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.5, 0.5]])
    counts = np.array([[12.5, 3.5], [3.5, 18.5]])  # of ends, and half an end more
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = []
    for node in range(4):
        around = [values[b] for a, b in [*edges, *edges[:, ::-1]] if a == node]
        odds = [before[node, v] * math.prod(shares[v, u] for u in around) for v in range(2)]
        expected.append(int(np.argmax(odds)))
    around = likelihoods(links + links.T, np.concatenate([edges, edges[:, ::-1]]), values)
    assert by_neighbors(before, around).tolist() == expected
    assert expected == [1, 0, 0, 1]  # neighbors of 0 and 2 speak against the weights before


def test_a_row_beside_a_name_and_a_degree_say_no_more_than_the_prior(planted):
    data, release = planted
    found = by_knowledge(guess_rows(release, data))
    assert [*found] == ["name", "degree", "neighbors"]
    assert not found["name"].is_better and abs(found["name"].release.value - 0.25) < 0.1
    assert found["degree"].prior == 0.25
    # Blocks are linked within themselves, which all others show.
    assert found["neighbors"].release.value > 0.95


def test_real_rows_beside_names_are_found(planted, monkeypatch):
    """A method that attaches the real rows to the synthetic graph is caught."""
    data, release = planted
    draw = Release.sample

    def leaking(self, seed=0):
        graph = draw(self, seed)
        place = {name: number for number, name in enumerate(data.graph.node_names)}
        order = [place[name] for name in graph.node_names]
        domains = data.private_columns.domains
        graph.drawn_rows = DrawnRows(domains, data.private_columns.values.numpy()[order])
        return graph

    monkeypatch.setattr(Release, "sample", leaking)
    found = by_knowledge(guess_rows(release, data))["name"]
    assert found.is_better and found.release.value == 1


def test_a_column_that_follows_degrees_is_guessed_from_them():
    graph = nx.compose_all([nx.star_graph(range(12 * hub, 12 * hub + 12)) for hub in range(20)])
    nx.set_node_attributes(graph, {v: "hub" if v % 12 == 0 else "leaf" for v in graph}, "role")
    data, release = fitted(
        graph,
        "role",
        ["hub", "leaf"],
        epsilon=math.inf,
        row_epsilon=math.inf,
        structure="chung_lu",
        names="ids",
    )
    found = by_knowledge(guess_rows(release, data))
    assert found["degree"].release.value == 1 and found["degree"].is_better
    assert found["degree"].prior == pytest.approx(11 / 12)
    # Other names: what needs names is left out.
    data.graph.node_names = [f"x{number}" for number in range(240)]
    assert [each.knowledge for each in guess_rows(release, data)] == ["degree", "neighbors"]


def test_the_report_has_the_guesses_for_people_and_programs(planted):
    data, release = planted
    report = dpg.attack(data, release)
    rows = report.values["row_guesses"]
    assert [*rows[0]] == keys_of("`row_guesses`")
    assert re.search(r"block +name +.*no better than the prior", str(report))
    assert re.search(r"block +neighbors +.* better than the prior", str(report))
    unknown = AttackReport(report.values | {"row_guesses": []})
    assert "not guessed" in str(unknown)
