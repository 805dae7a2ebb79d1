"""Predicted classes: their similarity, their difference to attributes, and who influences them."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy

import lightning_dpg as dpg
from lightning_dpg.apps.audit.link_stealing import (
    Predictions,
    Published,
    area,
    beyond_attributes,
    candidates,
    influence,
    similarity,
    steal_links,
)
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.node_classification import GCN, SparseRows, one_hop


def planted_classes():
    """Records of a graph of 200 nodes with words and four classes, of which 80 nodes show theirs."""
    data = EdgeListDataModule("planted_classes", nodes=Nodes(attributes="from_graph"))
    data.setup("fit")
    return data, data.records


def test_similarity_is_the_correlation_of_posteriors():
    posteriors = torch.rand(7, 4, generator=torch.Generator().manual_seed(0))
    pairs = torch.combinations(torch.arange(7))
    expected = np.corrcoef(posteriors.double().numpy())[*pairs.numpy().T]
    np.testing.assert_allclose(similarity(posteriors, pairs), expected)
    same = torch.full((2, 4), 0.25)  # nothing is known of either node
    assert similarity(same, torch.tensor([[0, 1]])).tolist() == [0]


def network_on(records):
    """Predictions of a network that was trained on the real edges, and reads them to predict."""
    graph, x, classes = records.graph, records.attributes, records.graph.y
    known = torch.nonzero(classes >= 0)[:, 0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GCN(SparseRows(csr_array(x.numpy())), one_hop(graph), 4)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(50):
            optimizer.zero_grad()
            cross_entropy(model(known), classes[known]).backward()
            optimizer.step()
    model.eval()

    def predict(nodes, rows):
        changed = x.clone()
        changed[nodes] = rows
        model.attributes = SparseRows(csr_array(changed.numpy()))
        with torch.no_grad():
            return model(nodes).softmax(1)

    return Predictions(predict(torch.arange(len(x)), x), predict)


def test_influence_finds_links_of_a_network_on_edges_and_none_of_a_release():
    data, records = planted_classes()
    pairs = candidates(records.graph, undirected_edges(records.graph)[::60])
    view = Published([], attributes=records.attributes, predictions=network_on(records))
    stolen = steal_links(view, pairs)
    for others in ("any", "equal degrees"):
        assert stolen["influence on predictions", others].auc.value > 0.9
    release = dpg.fit(data, "neighbor_votes", epsilon=1e6)  # hardly any noise
    ask = lambda nodes, rows: torch.from_numpy(release.predict_proba(rows))
    predictions = Predictions(torch.from_numpy(release.predict_proba()), ask)
    every = torch.cat([pairs.edges, *pairs.others.values()])
    assert influence(predictions, records.attributes, every).tolist() == [0] * len(every)
    blind = steal_links(view._replace(predictions=predictions), pairs)
    assert blind["influence on predictions", "any"].auc == (0.5, 0.5, 0.5)


def test_influence_is_that_of_the_first_node_on_the_second():
    weights = torch.tensor([[0, 0.5, 0], [0, 0, 0.25], [0, 0, 0]]).double()
    x = torch.eye(3).double()

    def predict(nodes, rows):
        asked = x.clone()
        asked[nodes] = rows
        return (weights @ asked)[nodes]

    pairs = torch.tensor([[1, 0], [0, 1], [2, 1], [2, 0], [0, 2]])
    found = influence(Predictions(x, predict), x, pairs)
    torch.testing.assert_close(found, torch.tensor([0.5, 0, 0.25, 0, 0]).double())


def test_interval_of_a_difference_knows_that_both_scores_are_of_the_same_pairs():
    """Normal scores one standard deviation apart, and the same scores with as much noise again."""
    true = float(norm.cdf(0.5**0.5) - norm.cdf(0.5))
    generator, covered, runs, is_edge = (
        torch.Generator().manual_seed(0),
        0,
        200,
        torch.arange(200) < 80,
    )
    for _ in range(runs):
        better = torch.randn(200, generator=generator) + 1.0 * is_edge
        worse = better + torch.randn(200, generator=generator)
        both = [(scores[is_edge], scores[~is_edge]) for scores in (better, worse)]
        found = area(*both)
        areas = [roc_auc_score(is_edge, scores) for scores in (better, worse)]
        assert found.value == pytest.approx(areas[0] - areas[1])
        covered += found.low <= true <= found.high
    assert binomtest(covered, runs, 0.95).pvalue > 1e-3


def test_posteriors_that_know_links_tell_more_than_attributes():
    _, records = planted_classes()
    edges = undirected_edges(records.graph)[:40]
    pairs = candidates(records.graph, edges)
    # A class for each link that was looked up, and attributes that say nothing.
    posteriors = torch.full((200, 41), 1e-3)
    posteriors[edges[:, 0], torch.arange(40)] = posteriors[edges[:, 1], torch.arange(40)] = 1.0
    noise = torch.rand(200, 5, generator=torch.Generator().manual_seed(0))
    found = beyond_attributes(posteriors, noise, pairs)
    assert all(one.low > 0.2 for one in found.values())
    alike = beyond_attributes(posteriors[:, :1].expand(-1, 3), torch.ones(200, 1), pairs)
    assert all(one == (0, 0, 0) for one in alike.values())
