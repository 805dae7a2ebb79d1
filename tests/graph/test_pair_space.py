"""Pairs that may be linked, against lists of them written out."""

from itertools import combinations, permutations, product

import pytest
import torch

from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs, UndirectedPairs, space_of

SPACES = [
    (UndirectedPairs(5), list(combinations(range(5), 2))),
    (DirectedPairs(4), list(permutations(range(4), 2))),
    (BipartitePairs(7, 3), list(product(range(3), range(3, 7)))),
    (BipartitePairs(2, 1), [(0, 1)]),
]


@pytest.mark.parametrize(("space", "pairs"), SPACES)
def test_numbers_are_places_in_the_list_of_all_pairs(space, pairs):
    listed = torch.tensor(pairs)
    assert space.num_pairs == len(pairs)
    assert space.numbers(listed).tolist() == list(range(len(pairs)))
    assert space.pairs(torch.arange(len(pairs))).tolist() == listed.tolist()


@pytest.mark.parametrize(("space", "pairs"), SPACES)
def test_a_graph_gives_back_its_edges_and_its_space(space, pairs):
    edges = torch.tensor(pairs[::2])
    graph = space.graph(edges.flip(0))
    assert space.edges(graph).tolist() == edges.tolist()
    assert space_of(graph) == space
    assert graph.num_nodes == space.num_nodes


@pytest.mark.parametrize(("space", "pairs"), SPACES)
def test_one_edge_adds_one_at_each_of_two_ends(space, pairs):
    """Brute force over all graphs with one pair fewer: L1 sensitivity 2, and 1 in each of two parts."""
    all_pairs = torch.tensor(pairs)
    whole = space.degrees(all_pairs)
    for left_out in range(len(pairs)):
        rest = all_pairs[torch.arange(len(pairs)) != left_out]
        change = (whole - space.degrees(rest)).abs()
        by_part = [int(change[p.start : p.stop].sum()) for p in space.parts]
        assert by_part == [part.ends_per_edge for part in space.parts]
        assert sum(by_part) == 2
    for part in space.parts:
        assert int(whole[part.start : part.stop].max()) == part.largest


def test_degrees_of_a_directed_graph_are_out_degrees_and_then_in_degrees():
    edges = torch.tensor([[0, 1], [0, 2], [1, 0]])
    assert DirectedPairs(3).degrees(edges).tolist() == [2, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(("space", "pairs"), SPACES[:3])
def test_draws_avoid_the_edges_and_cover_all_other_pairs_equally(space, pairs):
    edges, generator = torch.tensor(pairs[1:3]), torch.Generator().manual_seed(0)
    count = torch.zeros(len(pairs))
    runs = 2000
    for _ in range(runs):
        count[space.numbers(space.draw(edges, 3, generator))] += 1
    assert count[1:3].tolist() == [0, 0]
    share = 3 / (len(pairs) - 2)
    free = torch.cat([count[:1], count[3:]])
    assert ((free / runs - share).abs() < 5 * (share * (1 - share) / runs) ** 0.5).all()


def test_an_edge_within_a_side_is_refused():
    with pytest.raises(ValueError, match="left node and a right node"):
        BipartitePairs(4, 2).graph(torch.tensor([[0, 1]]))
