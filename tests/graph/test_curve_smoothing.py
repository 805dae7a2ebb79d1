"""Smoothed curves are nearer to the truth than noisy ones, and exact without noise."""

import numpy as np
import pytest

from lightning_dpg.graph.transfer_draws import smoothed_change, smoothed_days, smoothed_hours

RNG = np.random.default_rng(0)
DAYS = np.arange(182)
TREND = 300 * np.exp(-(((DAYS - 60) / 40) ** 2)) + 40
WEEK = np.where((DAYS + 3) % 7 >= 5, -60, 24)
HOURS = np.tile(np.where(np.abs(np.arange(24) - 13) < 6, 80.0, 5.0), 7)
CURVES = {
    "trend": (lambda x, b: smoothed_days(x, b, 3), TREND),
    "weeks": (lambda x, b: smoothed_days(x, b, 3), TREND + WEEK),
    "hours": (smoothed_hours, HOURS + np.repeat([30.0] * 5 + [0.0] * 2, 24)),
    "change": (smoothed_change, 40 * np.sin(np.arange(40) / 7)),
    "no change": (smoothed_change, np.zeros(40)),
}


@pytest.mark.parametrize("name", CURVES)
def test_noise_is_taken_out(name):
    smooth, exact = CURVES[name]
    noisy = exact + RNG.laplace(0, 20, (20, len(exact)))
    error = np.mean([((smooth(each, 20.0) - exact) ** 2).sum() for each in noisy])
    assert error < ((noisy - exact) ** 2).sum(axis=1).mean() / 3


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_without_noise_stays(name):
    smooth, exact = CURVES[name]
    rough = exact + RNG.normal(0, 30, len(exact))
    assert smooth(rough, 0.0).tolist() == rough.tolist()
