"""Pair numbers are lexicographic and do not overflow."""

from itertools import combinations

import pytest
import torch

from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks


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
