"""Triangles within their noise shrink to none, and others stay."""

import numpy as np
import pytest

from lightning_dpg.methods.graph_set.pooled_shapes import closed_shares

MOST = np.array([300.0, 500, 800, 1000, 400])


def test_one_class_shrinks_as_bter_does():
    """By hand: 40 (1 - (2 * 10 / 40)^2) of 100."""
    assert closed_shares(np.array([40.0]), np.array([100.0]), 10) == pytest.approx([0.3])
    assert closed_shares(np.array([20.0]), np.array([100.0]), 10) == [0]
    assert closed_shares(np.array([-40.0]), np.array([100.0]), 10) == [0]


def test_without_noise_nothing_shrinks():
    closed = np.array([0.0, 50, 80, 900, 400])
    np.testing.assert_allclose(closed_shares(closed, MOST, 0), closed / MOST)
    assert not closed_shares(np.zeros(5), MOST, 0).any()
    assert not closed_shares(np.zeros(5), np.zeros(5), 3).any()


def test_sets_without_triangles_get_nearly_none():
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=30, size=(2000, 5))
    before = np.clip(noise / MOST, 0, 1) @ MOST
    after = np.array([closed_shares(row, MOST, 30) @ MOST for row in noise])
    assert after.mean() < before.mean() / 4
    assert (after == 0).mean() > 0.9


def test_classes_that_differ_by_noise_alone_share_one_mean():
    rng = np.random.default_rng(0)
    true = 0.3 * MOST
    errors = {"shrunk": 0.0, "clipped": 0.0}
    for row in true + rng.laplace(scale=60, size=(2000, 5)):
        errors["shrunk"] += abs(closed_shares(row, MOST, 60) * MOST - true).mean()
        errors["clipped"] += abs(np.clip(row / MOST, 0, 1) * MOST - true).mean()
    assert errors["shrunk"] < 0.8 * errors["clipped"]


def test_classes_that_differ_beyond_noise_keep_their_shares():
    closed = np.array([30.0, 250, 80, 900, 40])
    np.testing.assert_allclose(closed_shares(closed, MOST, 2), closed / MOST, atol=0.02)
