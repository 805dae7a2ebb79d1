"""Runs that are merged by what their steps cost count what they count one by one."""

import math
from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.apps.book import filter as book_filter
from lightning_dpg.apps.book.filter import Spending, together
from lightning_dpg.privacy.accounting import ORDERS
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import entry_of
from lightning_dpg.privacy.events import Approximate, Gaussian, Pure

EVENTS = st.one_of(
    st.builds(Pure, st.sampled_from([0.1, 1 / 3, 1e-6])),
    st.builds(Approximate, st.just(0.1), st.sampled_from([1e-9, 1 / 3 * 1e-8])),
    st.builds(Gaussian, st.sampled_from([0.7, 3.0, 50.0])),
    st.builds(Gaussian, st.just(1.1), st.sampled_from([0.01, 0.1])),
)
ENTRIES = st.builds(entry_of, EVENTS, st.integers(1, 10_000))
RUNS = st.builds(
    lambda entries: Spending(Budget(1.0, 1e-6), entries), st.lists(ENTRIES, min_size=1, max_size=4)
)


@settings(max_examples=60)
@given(runs=st.lists(RUNS, max_size=12), place=st.integers(0, len(ORDERS) - 1))
def test_merged_sums_are_the_plain_ones_and_never_below_the_exact_ones(runs, place):
    found, entries = together(runs), [entry for run in runs for entry in run.entries]
    plain = sum(float(entry.curve()[place]) for entry in entries)
    assert math.isclose(found.renyi(place), plain, rel_tol=1e-12)
    exact = sum(entry.steps * Fraction(float(entry.event.curve()[place])) for entry in entries)
    assert Fraction(found.renyi(place)) >= exact
    assert math.isclose(found.failed, sum(e.total_delta for e in entries), rel_tol=1e-12)
    assert Fraction(found.failed) >= sum(e.steps * Fraction(e.event.total_delta) for e in entries)
    assert found.epsilons == [run.cost.epsilon for run in runs]
    assert found.deltas == [run.cost.delta for run in runs]


@settings(max_examples=30)
@given(runs=st.lists(RUNS, max_size=4), one=RUNS, times=st.integers(1, 5))
def test_further_runs_count_as_if_they_were_listed(runs, one, times):
    assert together(runs).plus(one, times) == together([*runs, *[one] * times])


def test_equal_runs_are_priced_once(monkeypatch):
    """A book of many runs of one configuration costs what one of them does, and a sum."""
    asked = Counter()
    curve = Gaussian.curve
    monkeypatch.setattr(Gaussian, "curve", lambda event: asked.update([event]) or curve(event))
    runs = [Spending(Budget(0.02, 1e-9), [entry_of(Gaussian(300.0), 3)])] * 500
    assert book_filter.passes(Budget(4.0, 1e-5), "split", together(runs))
    assert sum(asked.values()) == 1
