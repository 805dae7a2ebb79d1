"""Paired differences against scipy."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from lightning_dpg.evaluation.node_evaluation import paired_difference


@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_interval_is_that_of_the_paired_t_test(shift):
    source = np.random.default_rng(0)
    others = source.uniform(size=10)
    values = others + shift + 0.01 * source.normal(size=10)
    found = paired_difference(values.tolist(), others.tolist())
    theirs = ttest_rel(values, others)
    low, high = theirs.confidence_interval(0.95)
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2)
    assert found.is_noise == (theirs.pvalue > 0.05) == (shift == 0)


def test_a_single_pair_has_no_interval_and_equal_rows_do_not_differ():
    assert paired_difference([0.7], [0.5]).is_noise
    assert paired_difference([0.7], [0.5]).text(100) == "+20.0"
    assert paired_difference([0.1, 0.3], [0.1, 0.3]) == (0, 0)
    assert paired_difference([0.1, 0.3], [0.1, 0.3]).text(100) == "+0.0 ± 0.0"
