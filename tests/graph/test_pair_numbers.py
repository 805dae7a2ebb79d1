"""Ranks and keys of pairs, and which numbers are among others."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import pair_numbers
from lightning_dpg.graph.pair_numbers import (
    are_among,
    are_first,
    near_order,
    num_pairs,
    pair_ranks,
    pairs_of_ranks,
)


@pytest.mark.parametrize("num_nodes", [2, 3, 7])
def test_pairs_are_numbered_in_lexicographic_order(num_nodes):
    pairs = torch.tensor(list(combinations(range(num_nodes), 2)))
    numbers = torch.arange(num_pairs(num_nodes))
    assert torch.equal(pair_ranks(pairs, num_nodes), numbers)
    assert torch.equal(pairs_of_ranks(numbers, num_nodes), pairs)


def test_numbers_of_many_nodes_do_not_overflow():
    num_nodes = 2_000_000_000
    last = torch.tensor([[num_nodes - 2, num_nodes - 1]])
    assert int(pair_ranks(last, num_nodes)) == num_pairs(num_nodes) - 1


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), max_size=40))
def test_numbers_ascend_by_place_or_but_for_their_lowest_bits(numbers):
    order = near_order(np.array(numbers, dtype=np.int64)).tolist()
    lost = max(max(numbers, default=0).bit_length() + len(numbers).bit_length() - 63, 0)
    assert order == sorted(range(len(numbers)), key=lambda place: numbers[place] >> lost)


NUMBERS = st.lists(st.integers(0, 12), max_size=30)


@pytest.mark.parametrize("few", [0, 2**16])
@given(NUMBERS, NUMBERS, st.integers(1, 7))
def test_membership_and_first_places_are_those_of_sets(few, numbers, others, block):
    new, seen = [], set(others)
    for number in numbers:
        new.append(number not in seen)
        seen.add(number)
    array, ascending = (
        np.array(numbers, dtype=np.int64),
        np.array(sorted(set(others)), dtype=np.int64),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_numbers, "_BLOCK", block)
        patch.setattr(pair_numbers, "_FEW", few)
        found, first = are_among(array, ascending), are_first(array)
        new_to_others = are_first(array, ascending[::-1])
    assert found.tolist() == [number in others for number in numbers]
    assert first.tolist() == [number not in numbers[:place] for place, number in enumerate(numbers)]
    assert new_to_others.tolist() == new
