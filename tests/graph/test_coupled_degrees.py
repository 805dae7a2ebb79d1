"""Degrees of nodes in several kinds: the correlation that noise has taken, and nothing else."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from lightning_dpg.graph.coupled_degrees import coupled_places

SCALES = [2.0, 3.0, 4.0]


def noisy(true, scales, rng):
    """Give the true degrees to nodes by the order of noisy ones, as :func:`release_degrees` does."""
    found = []
    for degrees, scale in zip(true, scales, strict=True):
        released = np.empty_like(degrees)
        order = np.argsort(
            degrees + rng.laplace(scale=scale, size=len(degrees)) if scale else degrees
        )
        released[order] = np.sort(degrees)
        found.append(released)
    return found


def correlations(degrees):
    return spearmanr(np.stack(degrees, axis=1)).statistic


@pytest.mark.parametrize("sign", [1, -1])
def test_ranks_are_as_correlated_as_true_ones_and_no_degree_changes(sign):
    rng = np.random.default_rng(0)
    activity = rng.gamma(2, 0.5, 15_000)
    rates = 3 * activity, 5 * activity**sign, np.full(15_000, 4.0)
    true = [rng.poisson(rate.clip(max=20)) for rate in rates]
    released = noisy(true, SCALES, rng)
    coupled = [
        degrees[places]
        for degrees, places in zip(released, coupled_places(released, SCALES), strict=True)
    ]
    assert all(
        np.array_equal(np.sort(new), np.sort(old))
        for new, old in zip(coupled, released, strict=True)
    )
    lost, left = (np.abs(correlations(each) - correlations(true)) for each in (released, coupled))
    assert lost[0, 1] > 0.2
    assert left.max() < 0.06
    # What one kind knows of a node helps the other one.
    nearer = [
        [spearmanr(*pair)[0] for pair in zip(each, true, strict=True)]
        for each in (coupled, released)
    ]
    assert nearer[0][0] > nearer[1][0]


def test_three_kinds_by_a_normal_law_in_closed_form():
    """Without ties, ranks of normal numbers have the correlation (6 / pi) asin(r / 2)."""
    law = np.array([[1, 0.7, -0.3], [0.7, 1, 0.2], [-0.3, 0.2, 1]])
    rng = np.random.default_rng(1)
    true = rng.multivariate_normal(np.zeros(3), law, 20_000).T
    released = noisy([(1000 * each).astype(np.int64) for each in true], [600.0] * 3, rng)
    coupled = [
        degrees[places]
        for degrees, places in zip(released, coupled_places(released, [600.0] * 3), strict=True)
    ]
    assert correlations(coupled) == pytest.approx(6 / np.pi * np.arcsin(law / 2), abs=0.04)


@pytest.mark.parametrize(
    ("second", "scales"),
    [
        pytest.param(lambda first, rng: first, [0.0, 0.0], id="no noise"),
        pytest.param(lambda first, rng: rng.permutation(first), [5.0, 5.0], id="independent"),
        pytest.param(lambda first, rng: np.ones_like(first), [5.0, 5.0], id="equal degrees"),
        pytest.param(lambda first, rng: first, [0.1, 0.1], id="hardly any noise"),
    ],
)
def test_degrees_stay_where_noise_has_taken_nothing(second, scales):
    rng = np.random.default_rng(2)
    first = rng.poisson(5, 2000)
    released = noisy([first, second(first, rng)], scales, rng)
    assert all(np.array_equal(each, np.arange(2000)) for each in coupled_places(released, scales))
    assert all(np.array_equal(each, [0]) for each in coupled_places([np.ones(1, int)] * 2, scales))
