"""Membership by sorting is that of Python's sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import sorted_numbers
from lightning_dpg.graph.sorted_numbers import are_among, are_first

NUMBERS = st.lists(st.integers(0, 12), max_size=30)


@given(NUMBERS, NUMBERS, st.integers(1, 7))
def test_membership_and_first_places_are_those_of_sets(numbers, others, block):
    before, seen = [], set()
    for number in numbers:
        before.append(number not in seen)
        seen.add(number)
    array = np.array(numbers, dtype=np.int64)
    whole, sorted_numbers._BLOCK = sorted_numbers._BLOCK, block
    try:
        found = are_among(array, np.sort(np.array(others, dtype=np.int64)))
        first = are_first(array)
    finally:
        sorted_numbers._BLOCK = whole
    assert found.tolist() == [number in others for number in numbers]
    assert first.tolist() == before
