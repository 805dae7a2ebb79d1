"""Rows and columns of a table get their sums, within the bounds of its entries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph.counts import meet_sums


def sums_of(table):
    return table.sum(axis=1), table.sum(axis=0)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_sums_that_some_counts_have_are_met(rows, columns, seed):
    rng = np.random.default_rng(seed)
    wanted, least = rng.integers(1, 6, (rows, columns)), rng.integers(0, 2, (rows, columns))
    most = wanted + rng.integers(0, 3, (rows, columns))
    start = rng.integers(least, most + 1)
    places = np.argwhere(np.ones_like(wanted))
    args = (start.ravel(), places, sums_of(wanted), least.ravel(), most.ravel())
    found = meet_sums(*args).reshape(rows, columns)
    for found_sums, sums in zip(sums_of(found), sums_of(wanted), strict=True):
        assert found_sums.tolist() == sums.tolist()
    assert (found >= least).all() and (found <= most).all()


def test_counts_of_the_sums_stay():
    counts, places = np.array([3, 1, 4]), np.array([[0, 0], [0, 2], [1, 1]])
    sums = (np.array([4, 4]), np.array([3, 4, 1]))
    assert meet_sums(counts, places, sums, 0 * counts, 2 * counts).tolist() == [3, 1, 4]


def test_sums_that_no_counts_have_are_met_as_far_as_can_be():
    counts, places = np.array([0, 0, 0]), np.array([[0, 0], [0, 1], [1, 1]])
    sums = (np.array([1, 5]), np.array([4, 2]))
    # The second row reaches the second column alone, and the first row the rest.
    found = meet_sums(counts, places, sums, counts, counts + 9)
    assert found.tolist() == [1, 0, 2]
