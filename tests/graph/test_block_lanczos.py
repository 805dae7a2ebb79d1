"""Leading eigenpairs are those of the whole decomposition, also where few eigenvalues differ."""

import numpy as np
import pytest

from lightning_dpg.graph.spectral import BlockLanczos


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
