"""Joint distributions fit marginals, and rows follow them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chisquare

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.rows import (
    Marginal,
    draw_rows,
    fit_joint,
    spread_over_classes,
    toward_independence,
    trends,
)


def counts_of(shape, seed=0, total=1000):
    return np.random.default_rng(seed).multinomial(
        total, np.full(np.prod(shape), 1 / np.prod(shape))
    )


@pytest.mark.parametrize("scale", [0.0, 0.01])
def test_a_chain_of_consistent_marginals_has_the_closed_form(scale):
    joint = counts_of((3, 4, 2)).reshape(3, 4, 2).astype(float)
    first, second = joint.sum(axis=2), joint.sum(axis=0)
    marginals = [Marginal((0, 1), first, scale), Marginal((1, 2), second, scale)]
    expected = first[:, :, None] * second[None] / joint.sum(axis=(0, 2))[None, :, None] / 1000
    assert np.allclose(fit_joint(marginals, (3, 4, 2)), expected, atol=2e-4)


def test_noisy_marginals_are_fitted_by_weighted_least_squares():
    rng = np.random.default_rng(1)
    noisy = [rng.normal(100, 60, shape) for shape in ((3, 2), (3,), (2,))]
    axes, scales = [(0, 1), (0,), (1,)], [10.0, 3.0, 5.0]
    total = np.average(
        [counts.sum() for counts in noisy],
        weights=[1 / (n.size * b**2) for n, b in zip(noisy, scales, strict=True)],
    )

    def misfit(joint):
        joint = joint.reshape(3, 2) * total
        parts = joint, joint.sum(axis=1), joint.sum(axis=0)
        terms = zip(parts, noisy, scales, strict=True)
        return sum((((part - counts) / b) ** 2).sum() for part, counts, b in terms)

    noisy[0] = toward_independence(Marginal((0, 1), noisy[0], 10.0)).counts
    best = minimize(
        misfit,
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda joint: joint.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    found = fit_joint(list(map(Marginal, axes, noisy, scales)), (3, 2))
    assert misfit(found.ravel()) <= best.fun * 1.001


def test_association_below_the_noise_is_left_out_and_strong_one_stays():
    table = np.array([[60.0, 40, 20], [30, 40, 10]])
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    weak, strong = (toward_independence(Marginal((0, 1), table, b)).counts for b in (30.0, 0.5))
    assert np.allclose(weak, np.outer(rows, columns) / 200)
    assert np.allclose(strong.sum(axis=1), rows) and np.allclose(strong.sum(axis=0), columns)
    square = ((table - weak) ** 2).sum()
    assert np.allclose(strong - weak, (1 - 2 * 0.5**2 * 2 / square) * (table - weak))


def test_an_exact_marginal_holds_beside_noise():
    exact, noisy = np.array([700.0, 0, 300]), np.random.default_rng(2).normal(100, 300, (3, 4))
    joint = fit_joint([Marginal((0,), exact, 0.0), Marginal((0, 1), noisy, 50.0)], (3, 4))
    assert np.allclose(joint.sum(axis=1), exact / 1000)
    assert joint.min() >= 0


def test_noise_without_bound_says_nothing():
    noisy = Marginal((0, 1), np.array([[9.0, -9], [5, 1]]), np.inf)
    joint = fit_joint([Marginal((0,), np.array([3.0, 1]), 0.0), noisy], (2, 2))
    assert np.allclose(joint, [[0.375, 0.375], [0.125, 0.125]])


def test_rows_follow_the_joint_distribution_given_the_first_column():
    joint = np.random.default_rng(3).dirichlet(np.ones(24)).reshape(2, 3, 4)
    given = np.arange(20_000) % 2
    rows = draw_rows(joint, given, np.random.default_rng(4))
    for value in (0, 1):
        cells = np.bincount(rows[given == value] @ [4, 1], minlength=12)
        law = joint[value].ravel() / joint[value].sum()
        assert chisquare(cells, 10_000 * law).pvalue > 0.001


def test_too_many_cells_are_refused():
    with pytest.raises(Refusal, match="1,010,000 combinations"):
        fit_joint([], (101, 100, 100))


def test_a_category_within_its_noise_gets_no_rows_and_others_keep_theirs():
    """Of 60 nodes with the largest degrees noise makes 12 to nodes of a category without a node."""
    exact = np.array([[400.0, 300, 0], [200, 100, 0], [30, 30, 0]])
    noise = np.array([[4.0, -3, -2], [-5, 6, 3], [-6, 2, 12]])
    classes = Marginal((0,), exact.sum(1), 0.0)
    joint = fit_joint([classes, Marginal((0, 1), exact + noise, 5.0)], [3, 3])
    assert joint[:, 2].max() < 1e-9
    np.testing.assert_allclose(joint[:, :2].sum(1), exact.sum(1) / exact.sum())
    np.testing.assert_allclose(joint[:, :2], exact[:, :2] / exact.sum(), atol=15 / exact.sum())
    surely = exact + np.array([0, 0, 10])
    joint = fit_joint([Marginal((0, 1), surely + noise, 5.0)], [3, 3])
    assert joint[:, 2].sum() == pytest.approx(43 / (surely + noise).sum(), rel=0.05)


def test_a_trend_above_the_noise_is_found_and_what_noise_makes_up_is_not():
    places, sizes = np.array([0.0, 1, 3]), np.array([1000.0, 500, 500])
    share = 0.1 * np.exp(0.4 * places)
    table = sizes[:, None] * np.stack([share, 1 - share], axis=1)
    exact, near, far = (trends(Marginal((0, 1), table, b), sizes, places) for b in (0.001, 20, 200))
    assert exact[0] == pytest.approx(0.4, abs=1e-6)
    assert 0 < near[0] < 0.4  # shrunk
    assert not far.any()
    flat = np.random.default_rng(0).laplace(250, 20, (200, 3, 2))
    tables = [Marginal((0, 1), each, 20.0) for each in flat]
    found = [trends(each, np.full(3, 500.0), places).any() for each in tables]
    assert np.mean(found) < 0.35


def test_rows_are_spread_by_the_trend_and_stay_as_many():
    joint = counts_of((2, 3, 2), total=1000).reshape(2, 3, 2) / 1000
    of_class, sizes = np.array([0, 1, 1, 1]), np.array([400.0, 300, 200, 100])
    slopes = [np.array([0.5, 0.0, -0.2]), np.zeros(2)]
    found = spread_over_classes(joint, of_class, sizes, slopes)
    assert np.allclose(found[0], joint[0]) and np.allclose(found[1:].sum(axis=0), joint[1])
    of_classes = found[1:].sum(axis=(1, 2)) / joint[1].sum()
    assert np.allclose(of_classes, sizes[1:] / 600)
    logs = np.log(found[1:, 0] / found[1:, 1])
    assert np.allclose(np.diff(logs, axis=0), 0.5)
    level = spread_over_classes(joint, of_class, sizes, [np.zeros(3), np.zeros(2)])
    assert np.allclose(
        level[1:] / level[1:].sum(axis=(1, 2), keepdims=True), joint[1] / joint[1].sum()
    )
