"""Edges as canaries of the released mixing of private columns."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.apps.audit.scores.columns import mixing_score
from lightning_dpg.apps.audit.scores.observation import Observation
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.edge_statistics import exact_mixing
from lightning_dpg.graph.graph import make_graph
from tests.apps.audit.test_audited_rows import people
from tests.planting import plant

NAME = "weights of edges by the values of their ends, in 1/1024"


def audit(data, **settings):
    given = {"epsilon": 1.0, "row_epsilon": 1.0, "canaries": 20, "runs": 4, "view": "white_box"}
    return dpg.audit(data, "attributed", structure="erdos_renyi", **given | settings)


def test_the_score_of_one_canary_is_its_likelihood_ratio():
    edges = torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2]])
    rows = torch.tensor([[0], [1], [1], [0], [1]])
    columns = SimpleNamespace(values=rows, domains={"age": ["young", "old"]})
    scale = 700.0
    entry = SimpleNamespace(
        public={"max_weight": 2}, event=SimpleNamespace(pure_epsilon=1.0), sensitivity=scale
    )
    noisy = np.array([900, 2500, 1700])
    counts = []
    for graph in (edges, torch.cat([edges, torch.tensor([[0, 4]])])):
        degrees = np.bincount(graph.numpy().ravel(), minlength=5)
        counts.append(exact_mixing(graph.numpy(), degrees, rows.numpy(), [2], 2))
    without, with_edge = (np.abs(noisy - each).sum() / scale for each in counts)
    observation = Observation(
        method=None,
        earlier={},
        entry=entry,
        data=SimpleNamespace(private_columns=columns),
        noisy=torch.from_numpy(noisy),
        pairs=torch.tensor([[0, 4]]),
        known_graph=make_graph(edges, 5),
    )
    assert mixing_score(observation).tolist() == pytest.approx([without - with_edge])


def test_an_audit_of_edges_scores_the_reads_of_edges_alone():
    report = audit(people())
    assert report.scored == ["number of edges", NAME]
    assert not report.unscored and not report.refuting


def test_noise_of_edges_that_is_off_is_caught(monkeypatch):
    graph = nx.path_graph(60)
    nx.set_node_attributes(graph, {node: {"age": f"v{node % 23}"} for node in graph})
    nodes = Nodes(
        attributes="from_graph",
        private_columns=["age"],
        domains={"age": [f"v{number}" for number in range(23)]},
    )
    data = EdgeListDataModule(graph, nodes=nodes)
    assert not audit(data).refuting
    plant(monkeypatch, 0, ["column_mixing"])
    assert audit(data).refuting


def test_data_of_an_earlier_fit_are_audited():
    """The trainer of the fit, with its noise, is no part of the data."""
    graph = nx.karate_club_graph()
    values = {"club": ["Mr. Hi", "Officer"]}
    nodes = Nodes(attributes="from_graph", private_columns=["club"], domains=values)
    data = EdgeListDataModule(graph, nodes=nodes)
    dpg.fit(data, "attributed", epsilon=1.0, row_epsilon=1.0, structure="erdos_renyi")
    assert audit(data, canaries=5).canaries == 20
