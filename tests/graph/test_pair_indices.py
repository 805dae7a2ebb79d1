"""Pair numbers are lexicographic and do not overflow."""

from itertools import combinations

import pytest
import torch

from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs, pair_numbers


@pytest.mark.parametrize("num_nodes", [2, 3, 7])
def test_pairs_are_numbered_in_lexicographic_order(num_nodes):
    pairs = torch.tensor(list(combinations(range(num_nodes), 2)))
    numbers = torch.arange(num_pairs(num_nodes))
    assert torch.equal(pair_numbers(pairs, num_nodes), numbers)
    assert torch.equal(numbered_pairs(numbers, num_nodes), pairs)


def test_numbers_of_many_nodes_do_not_overflow():
    num_nodes = 2_000_000_000
    last = torch.tensor([[num_nodes - 2, num_nodes - 1]])
    assert int(pair_numbers(last, num_nodes)) == num_pairs(num_nodes) - 1
