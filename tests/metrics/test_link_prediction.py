"""AUC and average precision equal counts of pairs, also for large scores."""

import math

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.link_prediction import LinkMetrics, degree_product, link_prediction


def test_equals_counting_pairs():
    positive, negative = torch.tensor([3.0, 2.0, 0.5]), torch.tensor([2.0, 1.0, 0.0, -4.0])
    wins = sum((p > n) + 0.5 * (p == n) for p in positive.tolist() for n in negative.tolist())
    auc, ap = link_prediction(positive, negative)
    assert auc == pytest.approx(wins / 12)
    # Precision at the thresholds 3, 2 and 0.5, each of which finds one more edge
    assert ap == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 3)


def test_large_scores_are_not_tied():
    assert link_prediction(torch.tensor([1e6]), torch.tensor([1e6 - 1])) == (1, 1)


def test_undefined_without_a_class_or_with_a_score_that_is_no_number():
    assert all(map(math.isnan, link_prediction(torch.ones(3), torch.empty(0))))
    assert all(map(math.isnan, link_prediction(torch.ones(3), torch.tensor([math.nan]))))


def test_batches_of_any_size_give_the_figures_of_all_pairs():
    """Averages over batches would differ: the second batch has no edge, the third no non-edge."""
    generator = torch.Generator().manual_seed(0)
    table = 50 * torch.randn(3000, generator=generator).round(decimals=1)
    edges = torch.arange(1000).repeat(2, 1).T
    others = torch.arange(1000, 3000).repeat(2, 1).T
    scores = {"": lambda p: table[p[:, 0]] + 9 * (p[:, 0] < 1000), "rank": lambda p: -p[:, 0]}
    metrics = LinkMetrics(scores, ["", "matched_"])
    for batch, other in zip(edges.split([10, 0, 990]), others.split([500, 1500, 0]), strict=True):
        metrics.add(scores, batch, {"": other, "matched_": other[: len(other) // 2]})
    found = metrics.compute()
    truth = [1] * 1000 + [0] * 2000
    everything = torch.cat([edges, others])
    for name, postfix in (("", ""), ("rank", "_rank")):
        expected = scores[name](everything)
        assert found[f"auc{postfix}"] == pytest.approx(roc_auc_score(truth, expected), abs=1e-6)
        precision = average_precision_score(truth, expected)
        assert found[f"ap{postfix}"] == pytest.approx(precision, abs=1e-6)
    assert not metrics.state_dict()
    assert found["matched_auc"] != found["auc"]


def test_degree_product():
    graph = make_graph(torch.tensor([[0, 1], [0, 2], [0, 3]]), 5)
    pairs = torch.tensor([[0, 1], [2, 3], [0, 4]])
    assert degree_product(graph, pairs).tolist() == [3, 1, 0]
