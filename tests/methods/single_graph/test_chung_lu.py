"""Chung-Lu releases degrees only."""

import math

import networkx as nx
import pytest
import torch

from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded
from tests.graphs import edges_of
from tests.training import release_edges


def released(graph, epsilon, **options):
    method = ChungLu(graph.number_of_nodes(), **options)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, edges_of(graph))
    return method


def draw(method, seed=0):
    return method.sample_edges(torch.Generator().manual_seed(seed))


def test_it_spends_its_budget_exactly():
    method = released(nx.karate_club_graph(), 1.0)
    assert [entry.event.pure_epsilon for entry in method.ledger.entries] == pytest.approx(
        [0.05, 0.25, 0.7]
    )
    assert method.ledger.epsilon(0.0) == pytest.approx(1.0)
    with pytest.raises(PrivacyBudgetExceeded):
        release_edges(method, torch.tensor([[0, 1]]))


def test_expected_degrees_are_met_without_noise():
    graph = nx.barabasi_albert_graph(200, 3, seed=0)
    method = released(graph, math.inf)
    runs = 20
    mean = sum(torch.bincount(draw(method, s).flatten(), minlength=200) for s in range(runs)) / runs
    true = torch.tensor([d for _, d in graph.degree()])
    assert len(draw(method)) == graph.number_of_edges()
    # Fewer than one in a thousand Poisson means lie further off.
    assert ((mean - true).abs() < 4 * (true / runs).sqrt() + 0.1).all()


def test_score_is_the_product_of_degrees():
    method = released(nx.star_graph(5), math.inf)
    assert method.score(torch.tensor([[0, 1], [1, 2]])).tolist() == [5, 1]
