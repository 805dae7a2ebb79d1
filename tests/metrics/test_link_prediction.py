"""AUC and average precision equal counts of pairs, also for large scores."""

import math

import pytest
import torch

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.link_prediction import degree_product, link_prediction


def test_equals_counting_pairs():
    positive, negative = torch.tensor([3.0, 2.0, 0.5]), torch.tensor([2.0, 1.0, 0.0, -4.0])
    wins = sum((p > n) + 0.5 * (p == n) for p in positive.tolist() for n in negative.tolist())
    auc, ap = link_prediction(positive, negative)
    assert auc == pytest.approx(wins / 12)
    # Precision at the thresholds 3, 2 and 0.5, each of which finds one more edge
    assert ap == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 3)


def test_large_scores_are_not_tied():
    assert link_prediction(torch.tensor([1e6]), torch.tensor([1e6 - 1])) == (1, 1)


def test_undefined_without_a_class():
    assert all(map(math.isnan, link_prediction(torch.ones(3), torch.empty(0))))


def test_degree_product():
    graph = make_graph(torch.tensor([[0, 1], [0, 2], [0, 3]]), 5)
    pairs = torch.tensor([[0, 1], [2, 3], [0, 4]])
    assert degree_product(graph, pairs).tolist() == [3, 1, 0]
