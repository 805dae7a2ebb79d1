"""Figures of transfers, by hand."""

import math

import numpy as np
import pytest

from lightning_dpg.graph.transfer_counts import node_sums
from lightning_dpg.metrics.transfers import (
    curve_distance,
    growth_distance,
    relative_error,
    strength_distance,
    top_found,
    top_share,
)


def test_strengths_count_both_ends():
    pairs = np.array([(0, 1), (1, 0), (1, 2)])
    assert node_sums(pairs, np.array([5, 7, 1]), 4).tolist() == [12, 13, 1, 0]


def test_the_top_tenth_is_rounded_up():
    values = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 30, 61])
    assert top_share(values) == pytest.approx(91 / 100)
    assert top_found(values, values[::-1]) == 0
    assert top_found(values, values) == 1
    assert math.isnan(top_share(np.zeros(5, dtype=int)))


def test_distances_are_those_of_shares():
    one, other = np.array([1, 1, 2, 0.0]), np.array([0, 4, 4, 0.0])
    assert curve_distance(one, other) == pytest.approx(0.25)
    assert growth_distance(one, other) == pytest.approx(0.25)
    assert math.isnan(curve_distance(one, one * 0)) and math.isnan(growth_distance(one * 0, one))
    assert relative_error(one, other) == pytest.approx(6 / 4)
    assert strength_distance(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])) == pytest.approx(0.25)
