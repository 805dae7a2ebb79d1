"""Scores of attribute releases: likelihood ratios of one canary, and canaries that are found."""

import math
from dataclasses import replace

import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm

from lightning_dpg.apps.audit.bounds import guess_half
from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.apps.audit.scores.gradients import (
    attribute_moment_score,
    attribute_weights_score,
)
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.edge_statistics import as_vector, edge_moment
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods.single_graph.attribute_encoder import (
    AttributeEncoder,
    clipped_edge_gradients,
)
from lightning_dpg.methods.single_graph.attribute_moments import (
    AttributeMoments,
)
from lightning_dpg.nn.attribute_logits import degree_levels
from lightning_dpg.privacy.events import Gaussian
from tests.attributed import AttributedDataModule, attributed_graph, twins
from tests.scoring import degrees_of, observed, scored
from tests.training import quiet_trainer


def hidden_among():
    """40 edges as canaries, and the graph of the other edges."""
    edges = undirected_edges(attributed_graph()[0])
    canaries = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(1))[:40]]
    is_canary = (edges[:, None] == canaries).all(2).any(1)
    return canaries, make_graph(edges[~is_canary], 120)


def audited(method, epsilon=8.0):
    """A fit with 40 canaries, half of them edges: the method, sums of its scores, and the coins."""
    canaries, known = hidden_among()
    attributes, coins = attributed_graph()[1], torch.arange(40) < 20
    trained = make_graph(torch.cat([undirected_edges(known), canaries[coins]]), 120)
    total = torch.zeros(40, dtype=torch.double)

    def observe(key, noisy):
        if key.startswith("attribute"):
            total.add_(scored(method, key, noisy, canaries, known))

    method.ledger.observer = observe
    torch.manual_seed(0)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, 1e-5))
    trainer.fit(method, AttributedDataModule(trained, attributes))
    return method, total, coins


def test_the_released_weights_give_the_moment_away():
    method, total, _ = audited(AttributeMoments(rank=12))
    canaries, known = hidden_among()
    degrees = degrees_of(method, canaries, known)
    found = black_box_score(method, None, canaries, known) - degrees
    torch.testing.assert_close(found, total, rtol=1e-3, atol=1e-3)


def test_a_moment_weighs_as_the_likelihood_ratio_of_its_noise():
    method, _, _ = audited(AttributeMoments(rank=4), 0.3)
    pairs, known = torch.tensor([[3, 9]]), make_graph(torch.tensor([[0, 1], [1, 2]]), 120)
    entry = method.ledger.last_entry("attribute_moment")
    rows, std = method.scores.rows.double(), entry.event.noise_multiplier * entry.sensitivity
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
    noisy, std, rate = 2 * change, entry.event.noise_multiplier, entry.event.sample_rate
    density = [math.exp(-(float((noisy - c * change).norm()) ** 2) / 2 / std**2) for c in (0, 1)]
    # Both hypotheses in logarithms, without the half that the linear estimate spreads over coins.
    expected = math.log((1 - rate) + rate * density[1] / density[0])
    found = scored(method, "attribute_gradient", noisy, pairs, known)
    assert float(found) == pytest.approx(expected, rel=0.35)


def test_a_moment_is_attacked_as_well_as_one_number_with_normal_noise():
    """Nodes of equal attributes attain the sensitivity, where the best attack has a closed form."""
    data, count, std = twins(16), 16, 0.8
    method = AttributeMoments(rank=16)
    quiet_trainer(PrivacyAccountant(8.0, 1e-5)).fit(method, data)
    entry = replace(method.ledger.last_entry("attribute_moment"), event=Gaussian(std))
    pairs = torch.arange(2 * count).view(-1, 2)
    source, scores, coins = torch.Generator().manual_seed(0), [], []
    rows = method.scores.rows.double()
    for _ in range(150):
        coins.append(torch.rand(count, generator=source) < 0.5)
        exact = as_vector(edge_moment(pairs[coins[-1]], rows))
        noisy = exact + std * torch.randn(exact.shape, generator=source, dtype=torch.double)
        scores.append(
            attribute_moment_score(observed(noisy, pairs, data.train_graph, entry, method))
        )
    made, correct = guess_half(torch.cat(scores), torch.cat(coins))
    mu = 1 / std
    # Scores ascend with a normal number of mean 0 or mu; a quarter of the canaries exceed the edge.
    edge = brentq(lambda x: norm.sf(x) + norm.sf(x - mu) - 0.5, -20, 20)
    best = norm.sf(edge - mu) / (norm.sf(edge - mu) + norm.sf(edge))
    assert correct / made == pytest.approx(best, abs=4 * math.sqrt(best * (1 - best) / made))


def test_the_released_weights_tell_canaries_from_runs_without_them():
    method, _, coins = audited(AttributeEncoder(rank=12, iterations=60, sample_rate=0.9), 100.0)
    canaries, known = hidden_among()
    entry = method.ledger.last_entry("attribute_gradient")
    by_weights = attribute_weights_score(observed(method.rows, canaries, known, entry, method))
    better = (by_weights[coins][:, None] > by_weights[~coins]).double().mean()
    assert better > 0.6  # .79 on average, with a deviation of .07
    by_degrees = degrees_of(method, canaries, known)
    released = black_box_score(method, None, canaries, known)
    torch.testing.assert_close(released, by_weights + by_degrees)
