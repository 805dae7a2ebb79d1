"""Leading eigenpairs, and the structure of noisy edges."""

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.graph.spectral import BlockLanczos, diffused, shrunken, spectrum


def symmetric(values, seed=0):
    """Random symmetric matrix of the given eigenvalues."""
    size = len(values)
    vectors = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size))).Q
    return (vectors * values) @ vectors.T


def found_in(matrix, *wanted, tolerance=1e-2):
    single = matrix.astype(np.float32)
    return BlockLanczos(single.__matmul__, len(matrix), tolerance).leading(*wanted)


MATRICES = {
    "spread": symmetric(np.linspace(-1, 1, 600)),
    "noise and structure": symmetric(np.r_[np.linspace(-0.3, 0.3, 570), np.linspace(0.5, 2, 30)]),
    "repeated": symmetric(np.r_[np.zeros(500), np.ones(60), np.full(40, 3.0)]),
    "few edges": np.pad(np.ones((5, 5)) - np.eye(5), (0, 595)),
    "zero": np.zeros((600, 600)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_eigenpairs_are_those_of_the_whole_decomposition(name):
    matrix = MATRICES[name]
    values, vectors = found_in(matrix, 8, 32, -np.inf)
    exact = np.linalg.eigvalsh(matrix)[::-1]
    largest = np.abs(exact).max()
    assert vectors.shape == (600, 32)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(32), atol=1e-5)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert (residuals <= 1.01e-2 * np.maximum(np.abs(values), 1e-2 * largest) + 1e-6).all()
    np.testing.assert_allclose(values, exact[:32], atol=1e-2 * largest)


@pytest.mark.parametrize(("bound", "count"), [(1.9, 8), (1.4, 16), (1.0, 32), (0.0, 40)])
def test_as_many_as_lie_above_the_bound(bound, count):
    """The numbers double until one lies below: 30 eigenvalues from .5 to 2 lie above the noise."""
    values, _ = found_in(MATRICES["noise and structure"], 8, 40, bound)
    assert len(values) == count


def upper(matrix):
    return torch.from_numpy(np.argwhere(np.triu(matrix, 1)))


def noisy(truth, true_rate, false_rate, seed=0):
    """Reports of randomized response on a dense matrix."""
    draws = np.random.default_rng(seed).random(truth.shape)
    reports = np.triu(draws < np.where(truth > 0, true_rate, false_rate), 1)
    return (reports + reports.T).astype(float)


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.barabasi_albert_graph(150, 3, 0)])
@pytest.mark.parametrize(("true_rate", "false_rate"), [(1.0, 0.0), (0.9, 0.1)])
def test_eigenpairs_are_those_of_the_dense_estimate(graph, true_rate, false_rate):
    truth = nx.to_numpy_array(graph, weight=None)
    n = len(truth)
    reports = noisy(truth, true_rate, false_rate)
    found = spectrum(upper(reports), n, 10, true_rate, false_rate)
    gap = true_rate - false_rate
    estimate = (reports - false_rate * (1 - np.eye(n))) / gap
    false_reports = false_rate * (n - 1) / gap
    regular = np.maximum(estimate.sum(0), 0) + false_reports
    scale = np.sqrt(regular + regular.mean())
    values, vectors = np.linalg.eigh(estimate / np.outer(scale, scale))
    count = len(found.values)
    assert count == 10
    np.testing.assert_allclose(found.scale, scale)
    np.testing.assert_allclose(found.values, np.maximum(values[::-1][:count], 0), atol=5e-3)
    top = vectors[:, -1]
    assert abs(float(found.vectors[:, 0] @ torch.from_numpy(top))) == pytest.approx(1, abs=5e-3)


def test_diffused_rows_are_walks_and_shrunken_ones_edges_without_noise():
    """Of two equal cliques everything is known: two eigenvalues that are not negative."""
    truth = np.kron(np.eye(2), 1 - np.eye(6))
    found = spectrum(upper(truth), 12, 2)
    scale = np.sqrt(10)  # degree 5, and as much regularization
    walks = np.linalg.matrix_power(np.kron(np.eye(2), np.ones((6, 6))) * 5 / 6 / scale**2, 3)
    rows = diffused(found, 3)
    np.testing.assert_allclose(rows @ rows.T, walks, atol=1e-6)
    rows = shrunken(found)
    expected = np.kron(np.eye(2), np.full((6, 6), 5 / 6))  # the best of rank two
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-6)


def test_noise_alone_lies_within_the_bulk_and_a_community_beyond():
    n, rates = 400, (0.73, 0.27)
    noise = spectrum(upper(noisy(np.zeros((n, n)), *rates)), n, 64, *rates)
    assert len(noise.values) == 16  # nothing more to look for
    assert float(noise.values[0]) < 1.1 * noise.bulk
    truth = np.zeros((n, n))
    truth[:100, :100] = 1
    found = spectrum(upper(noisy(truth, *rates)), n, 64, *rates)
    assert float(found.values[0]) > 2 * found.bulk
    rows = shrunken(found)
    inside, outside = rows[:100] @ rows[:100].T, rows[100:] @ rows[100:].T
    assert float(inside.mean()) == pytest.approx(1, abs=0.1)
    assert float(outside.mean()) == pytest.approx(0, abs=0.1)


def test_weights_stand_for_repeated_edges():
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]])
    weighted = spectrum(edges, 4, 3, weights=torch.tensor([2.0, 1, 1, 1, 3]))
    matrix = np.array([[0, 2, 3, 1], [2, 0, 1, 0], [3, 1, 0, 1], [1, 0, 1, 0]])
    scale = np.sqrt(matrix.sum(0) + matrix.sum(0).mean())
    expected = np.linalg.eigvalsh(matrix / np.outer(scale, scale))[::-1][:3]
    np.testing.assert_allclose(weighted.values, np.maximum(expected, 0), atol=1e-6)


def test_nothing_reported_is_no_structure():
    found = spectrum(torch.empty(0, 2, dtype=torch.long), 5, 3)
    assert not found.values.any()
    assert torch.isfinite(shrunken(found)).all()


def test_blocks_of_vectors_find_what_single_ones_find(monkeypatch):
    """As many eigenpairs of noise and a community, the same values and the same expected edges."""
    n, rates = 400, (0.73, 0.27)
    truth = np.zeros((n, n))
    truth[:100, :100] = 1
    reported = upper(noisy(truth, *rates))
    one_by_one = spectrum(reported, n, 64, *rates)
    monkeypatch.setattr(f"{spectrum.__module__}._MANY_NODES", 0)
    found = spectrum(reported, n, 64, *rates)
    assert found.values.shape == one_by_one.values.shape
    np.testing.assert_allclose(found.values, one_by_one.values, rtol=1e-2)
    np.testing.assert_allclose(found.scale, one_by_one.scale)
    expected, rows = (np.asarray(shrunken(each)) for each in (one_by_one, found))
    difference = np.linalg.norm(rows @ rows.T - expected @ expected.T)
    assert difference < 2e-2 * np.linalg.norm(expected @ expected.T)
