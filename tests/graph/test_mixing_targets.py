"""Targets of mixing: exact without noise, chance without a signal, and of the given totals."""

import numpy as np
import pytest

from lightning_dpg.graph.mixing import NoisyMixing, fitted_mixing, mixing_gap
from lightning_dpg.graph.stubs import count_links

LINKS = np.array([[200.0, 0, 0], [80, 300, 0], [20, 60, 150]])


def ends_of(links):
    return (links + links.T).sum(axis=1)


def test_exact_mixing_of_the_same_totals_stays():
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, 0.0), ends_of(LINKS)), LINKS, rtol=0.01)


def test_mixing_in_another_unit_is_the_same():
    one, other = (fitted_mixing(NoisyMixing(u * LINKS, 5 * u), ends_of(LINKS)) for u in (1, 1024))
    assert np.allclose(one, other)


def test_mixing_that_noise_hides_becomes_chance():
    totals = ends_of(LINKS)
    chance = np.tril(np.outer(totals, totals) / totals.sum())
    chance[np.diag_indices(3)] /= 2
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, 1e6), totals), chance, rtol=0.01)
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, np.inf), totals), chance, rtol=0.01)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_targets_of_noise_are_links_of_the_totals(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noisy = NoisyMixing(rng.laplace(10, 30, (size, size)) + 60 * np.eye(size), 30.0)
        totals = rng.integers(1, 500, size)
        found = fitted_mixing(noisy, totals)
        assert (found >= 0).all() and (np.triu(found, 1) == 0).all()
        assert np.allclose(ends_of(found), totals, rtol=0.05, atol=1)


def test_the_gap_is_what_each_column_lacks():
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    rows = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    gap = mixing_gap(edges, rows, [NoisyMixing(10 * LINKS[:2, :2], 1.0)] * 2)
    distance = 0.0
    for column, lacking in zip(rows.T, gap.lacking, strict=True):
        counts = count_links(column, edges)
        wanted = fitted_mixing(NoisyMixing(10 * LINKS[:2, :2], 1.0), ends_of(counts))
        assert np.allclose(np.tril(lacking), wanted - counts)
        assert np.allclose(lacking, lacking.T)
        distance += ((wanted - counts) ** 2).sum()
    assert gap.distance == pytest.approx(distance)
