"""Scores of attribute releases: likelihood ratios of one canary, and canaries that are found."""

import math

import pytest
import torch

from lightning_dpg.auditing.scores.black_box import black_box_score
from lightning_dpg.auditing.scores.counts import degrees_score
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods.single_graph.attribute_encoder.attribute_moments import (
    AttributeMoments,
)
from lightning_dpg.methods.single_graph.attribute_encoder.clipping import clipped_edge_gradients
from lightning_dpg.methods.single_graph.attribute_encoder.method import AttributeEncoder
from lightning_dpg.methods.single_graph.attribute_encoder.moments import as_vector, edge_moment
from lightning_dpg.nn.attribute_logits import degree_levels
from tests.attributed import AttributedDataModule, attributed_graph
from tests.scoring import scored
from tests.training import quiet_trainer


def audited(method, epsilon=8.0):
    """A fit with 40 canaries, half of them edges: the method, sums of its scores, and the coins."""
    graph, attributes = attributed_graph()
    edges = undirected_edges(graph)
    canaries = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(1))[:40]]
    coins = torch.arange(40) < 20
    is_canary = (edges[:, None] == canaries).all(2).any(1)
    known = make_graph(edges[~is_canary], 120)
    trained = make_graph(torch.cat([edges[~is_canary], canaries[coins]]), 120)
    total = torch.zeros(40, dtype=torch.double)

    def observe(key, noisy):
        if key.startswith("attribute"):
            total.add_(scored(method, key, noisy, canaries, known))

    method.ledger.observer = observe
    torch.manual_seed(0)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, 1e-5))
    trainer.fit(method, AttributedDataModule(trained, attributes))
    return method, total, coins


@pytest.mark.parametrize(
    ("method", "epsilon"),
    [
        (AttributeMoments(rank=12), 40.0),
        (AttributeEncoder(rank=12, iterations=20, sample_rate=0.9), 400.0),
    ],
    ids=["moments", "encoder"],
)
def test_canaries_are_found_where_there_is_little_noise(method, epsilon):
    _, total, coins = audited(method, epsilon)
    better = (total[coins][:, None] > total[~coins]).double().mean()
    assert better > 0.75


def test_the_released_weights_give_the_moment_away():
    method, total, _ = audited(AttributeMoments(rank=12))
    graph, _ = attributed_graph()
    edges = undirected_edges(graph)
    canaries = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(1))[:40]]
    is_canary = (edges[:, None] == canaries).all(2).any(1)
    known = make_graph(edges[~is_canary], 120)
    cost = method.ledger.last_entry("degrees").epsilon
    degrees = cost * degrees_score(method.degrees, canaries, known)
    found = black_box_score(method, None, canaries, known) - degrees
    torch.testing.assert_close(found, total, rtol=1e-3, atol=1e-3)


def test_a_moment_weighs_as_the_likelihood_ratio_of_its_noise():
    method, _, _ = audited(AttributeMoments(rank=4), 0.3)
    pairs, known = torch.tensor([[3, 9]]), make_graph(torch.tensor([[0, 1], [1, 2]]), 120)
    entry = method.ledger.last_entry("attribute_moment")
    rows, std = method.rows.double(), entry.noise_multiplier * entry.sensitivity
    without = as_vector(edge_moment(undirected_edges(known), rows))
    change = as_vector(edge_moment(pairs, rows))
    noisy = without + 3 * change
    expected = ((noisy - without).norm() ** 2 - (noisy - without - change).norm() ** 2) / 2
    found = scored(method, "attribute_moment", noisy, pairs, known)
    # The estimate is linear: exact up to the square of the change over the variance.
    assert float(found) == pytest.approx(float(expected) / std**2, rel=0.01)


def test_a_gradient_weighs_as_the_likelihood_ratio_of_its_noise():
    method, _, _ = audited(AttributeEncoder(rank=4, iterations=2), 0.3)
    pairs, known = torch.tensor([[3, 9]]), make_graph(torch.empty(0, 2).long(), 120)
    entry, levels = method.ledger.last_entry("attribute_gradient"), degree_levels(method.degrees)
    change = clipped_edge_gradients(method.model, method.rows[pairs], levels[pairs], 1.0)[0]
    noisy, std, rate = 2 * change, entry.noise_multiplier, entry.sample_rate
    density = [math.exp(-(float((noisy - c * change).norm()) ** 2) / 2 / std**2) for c in (0, 1)]
    # Both hypotheses in logarithms, without the half that the linear estimate spreads over coins.
    expected = math.log((1 - rate) + rate * density[1] / density[0])
    found = scored(method, "attribute_gradient", noisy, pairs, known)
    assert float(found) == pytest.approx(expected, rel=0.35)
