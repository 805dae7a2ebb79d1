"""AttributeMoments and its node-level form: ledgers by hand, noise, links, refusals."""

import math

import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.edge_statistics import as_matrix, as_vector, bilinear_form
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods.single_graph.attribute_moments import (
    AttributeMoments,
    NodeAttributeMoments,
)
from lightning_dpg.metrics.link_prediction import link_prediction
from tests.attributed import AttributedDataModule, attributed_graph
from tests.training import quiet_trainer


def symmetric(rank, seed=0):
    matrix = torch.randn(rank, rank, generator=torch.Generator().manual_seed(seed)).double()
    return matrix + matrix.T


def test_the_vector_has_the_length_of_the_matrix_and_leads_back():
    for rank in (1, 2, 5):
        matrix = symmetric(rank)
        vector = as_vector(matrix)
        assert len(vector) == rank * (rank + 1) // 2
        torch.testing.assert_close(vector.norm(), matrix.norm())
        torch.testing.assert_close(as_matrix(vector), matrix)


def test_noise_on_the_vector_is_smaller_beside_the_diagonal():
    noise = torch.randn(20_000, 6, generator=torch.Generator().manual_seed(0)).double()
    stds = torch.stack([as_matrix(draw) for draw in noise]).std(0)
    expected = torch.full((3, 3), 1 / math.sqrt(2)).double().fill_diagonal_(1.0)
    torch.testing.assert_close(stds, expected, rtol=0.03, atol=0.0)


def test_the_weights_solve_the_ridge_regression_of_the_adjacency_matrix():
    # Without a ridge, A = Y W Y^T is recovered from S = Y^T A Y / 2 up to the factor 1/2.
    source = torch.Generator().manual_seed(1)
    rows = torch.randn(9, 3, generator=source, dtype=torch.double)
    wanted = symmetric(3, seed=2)
    moment = rows.T @ (rows @ wanted @ rows.T) @ rows / 2
    torch.testing.assert_close(bilinear_form(moment, rows, 0.0), wanted / 2)


def test_the_weights_of_two_sides_solve_the_regression_on_the_rows_of_each():
    # Without a ridge, A = Y W Z^T is recovered from S = Y^T A Z.
    source = torch.Generator().manual_seed(1)
    rows, others = (torch.randn(n, 3, generator=source, dtype=torch.double) for n in (9, 7))
    wanted = torch.randn(3, 3, generator=source, dtype=torch.double)
    moment = rows.T @ (rows @ wanted @ others.T) @ others
    torch.testing.assert_close(bilinear_form(moment, rows, 0.0, others), wanted)


DELTA = 1e-5


def fit(method, data=None, epsilon=2.0):
    trainer = quiet_trainer(PrivacyAccountant(epsilon, DELTA))
    trainer.fit(method, AttributedDataModule(*attributed_graph()) if data is None else data)
    return method


def moment_noise(method, epsilon):
    """Noise of the released moment of a graph without edges, over 12 fits."""
    attributes = attributed_graph(30)[1]
    data = AttributedDataModule(make_graph(torch.empty(0, 2).long(), 30), attributes)
    drawn = []
    for _ in range(12):
        new = method()
        new.ledger.observer = lambda key, noisy: key == "attribute_moment" and drawn.append(noisy)
        fit(new, data, epsilon)
    return torch.cat(drawn), new.ledger.last_entry("attribute_moment")


def test_the_bound_of_the_node_level_is_its_condition_and_degrees_are_even():
    graph, attributes = attributed_graph(inside=0.2)
    method = NodeAttributeMoments(max_degree=25, rank=4)
    fit(method, AttributedDataModule(graph, attributes))
    assert "25" in method.condition()
    degrees = method.drawn_degrees()
    assert degrees.sum() == 2 * method.num_edges
    assert degrees.max() - degrees.min() <= 1


@pytest.mark.parametrize("method", [AttributeMoments, NodeAttributeMoments])
def test_the_noise_of_the_moment_has_the_booked_scale(method):
    settings = {"max_degree": 7} if method is NodeAttributeMoments else {}
    drawn, entry = moment_noise(lambda: method(rank=8, **settings), 2.0)
    assert len(drawn) == 12 * 8 * 9 // 2
    std = entry.event.noise_multiplier * entry.sensitivity
    assert float(drawn.std()) == pytest.approx(std, rel=0.14)  # 4 standard errors


def test_the_default_rank_follows_the_budget():
    ranks = [len(fit(AttributeMoments(), epsilon=epsilon).scores.form) for epsilon in (0.5, 1.0)]
    assert ranks == [32, 64]
    method = fit(NodeAttributeMoments(max_degree=40))
    assert method.scores.form.shape == (16, 16)


def test_links_are_found_also_between_new_nodes():
    graph, attributes = attributed_graph(words=20)
    method = fit(AttributeMoments(rank=6), AttributedDataModule(graph, attributes), math.inf)
    edges, pairs = undirected_edges(graph), torch.combinations(torch.arange(120))
    assert link_prediction(method.score(edges), method.score(pairs))[0] > 0.75
    by_attributes = method.score_attributes(attributes[pairs[:5, 0]], attributes[pairs[:5, 1]])
    rows = method.scores.features(attributes)[pairs[:5]].double()
    expected = torch.einsum("pi,ij,pj->p", rows[:, 0], method.scores.form, rows[:, 1])
    torch.testing.assert_close(by_attributes, expected)


def test_a_degree_beyond_the_bound_is_refused_before_anything_is_booked():
    method = NodeAttributeMoments(max_degree=2)
    with pytest.raises(MisconfigurationException, match="max_degree 2 is assumed"):
        fit(method)
    assert not method.ledger.entries
