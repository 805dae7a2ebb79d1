"""Noise of associations equals first-order variances, which hold where the noise is small."""

import math

import numpy as np
import pytest

from lightning_dpg.metrics.rows import association_noise, assortativity_noise

NORMAL = 1.96  # 0.95 quantile of the absolute value; sums of a few Laplace variates are near it


def test_noise_of_assortativity_is_that_of_its_derivative():
    shares, total, scale = np.array([0.5, 0.3, 0.2]), 1e4, 20.0
    chance = (shares**2).sum()
    slopes = [
        ((a == b) + chance - shares[a] - shares[b]) / (total * (1 - chance))
        for a in range(3)
        for b in range(a + 1)
    ]
    expected = NORMAL * scale * math.sqrt(2 * sum(slope**2 for slope in slopes))
    assert assortativity_noise(shares, total, scale) == pytest.approx(expected, rel=0.08)
    # It follows the scale over the weight, and is 0 without noise.
    assert assortativity_noise(shares, 10 * total, scale) == pytest.approx(expected / 10, rel=0.08)
    assert assortativity_noise(shares, total, 0.0) == pytest.approx(0, abs=1e-9)
    assert math.isnan(assortativity_noise(np.ones(1), total, scale))


def test_noise_of_an_association_is_that_of_its_derivative():
    first, second, scale = np.array([7000.0, 3000.0]), np.array([6000.0, 4000.0]), 15.0
    p, q = 0.3, 0.4
    spread = (p**2 + (1 - p) ** 2) * (q**2 + (1 - q) ** 2) / (p * (1 - p) * q * (1 - q))
    expected = NORMAL * scale / 1e4 * math.sqrt(2 * spread)
    assert association_noise(first, second, scale) == pytest.approx(expected, rel=0.08)
    assert association_noise(first, second, 0.0) == pytest.approx(0, abs=1e-6)
    assert math.isnan(association_noise(first, second[:1], scale))
