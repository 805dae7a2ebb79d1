"""Joint distributions fit marginals, and rows follow them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chisquare

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.rows import Marginal, draw_rows, fit_joint, toward_independence


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
