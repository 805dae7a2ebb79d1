"""Random graphs of given expected degrees, on pairs of any kind."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from lightning_dpg.graph import expected_degrees
from lightning_dpg.graph.expected_degrees import (
    chung_lu_edges,
    chung_lu_pieces,
    edge_weights,
    two_sided_edges,
    two_sided_weights,
    weighted_pairs,
)
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs, UndirectedPairs

WEIGHTS = np.array([1.5, 0.2, 0.9, 0.4])


def law_of_three():
    """Probability of each set of three pairs, by all orders in which they may be drawn."""
    rates = {
        pair: WEIGHTS[pair[0]] * WEIGHTS[pair[1]] for pair in itertools.combinations(range(4), 2)
    }
    law = {frozenset(three): 0.0 for three in itertools.combinations(rates, 3)}
    for order in itertools.permutations(rates, 3):
        left, chance = sum(rates.values()), 1.0
        for pair in order:
            chance *= rates[pair] / left
            left -= rates[pair]
        law[frozenset(order)] += chance
    return law


# With ten times the expected pairs the horizon is too short, and windows are added to it.
@pytest.mark.parametrize(("piece", "expected"), [(1, 3.0), (2**21, 3.0), (1, 30.0)])
def test_sets_of_pairs_have_the_law_of_single_draws(piece, expected):
    law, runs = law_of_three(), 800
    counts = dict.fromkeys(law, 0)
    for seed in range(runs):
        pieces = list(weighted_pairs(WEIGHTS, 3, expected, seed, piece))
        pairs = [tuple(pair) for pair in np.concatenate(pieces).tolist()]
        assert len(pairs) == 3
        counts[frozenset(pairs)] += 1
    wanted = [runs * chance for chance in law.values()]
    assert chisquare(list(counts.values()), wanted).pvalue > 1e-4


def test_pieces_are_in_order_and_no_pair_is_repeated():
    degrees = np.random.default_rng(0).integers(1, 60, 500)
    count = int(degrees.sum()) // 2
    *pieces, tail = weighted_pairs(edge_weights(degrees), count, count, seed=1, piece=1000)
    assert len(pieces) > 5 and max(map(len, pieces)) < 1500 and len(tail) < 20
    listed = np.concatenate(pieces)
    assert listed.tolist() == sorted(listed.tolist())
    every = np.concatenate([listed, tail])
    assert len(np.unique(every, axis=0)) == count and (every[:, 0] < every[:, 1]).all()


def test_all_pairs_are_drawn_where_all_are_wanted():
    pieces = list(weighted_pairs(WEIGHTS, 6, 3.0, seed=0))
    assert sorted(np.concatenate(pieces).tolist()) == [
        [i, j] for i in range(4) for j in range(i + 1, 4)
    ]


def test_a_large_graph_is_the_same_in_pieces_and_in_memory(monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", 0)
    monkeypatch.setattr(expected_degrees, "MANY_EDGES", 400)
    degrees = torch.tensor([0, 90, 40] + [4] * 200)
    count = int(degrees.sum()) // 2
    pieces = chung_lu_pieces(degrees, count, torch.Generator().manual_seed(3))
    edges = chung_lu_edges(degrees, count, torch.Generator().manual_seed(3))
    assert torch.equal(torch.cat(list(pieces)), edges)
    assert len(edges) == count and int(edges.min()) == 1


SPACES = [DirectedPairs(60), BipartitePairs(80, 50)]


def heavy_degrees(space, seed=0):
    """Degrees of a graph whose nodes have very different numbers of edges on both sides."""
    rng = np.random.default_rng(seed)
    shares = [rng.pareto(1.5, part.stop - part.start) + 0.2 for part in space.parts]
    rates = np.concatenate([share / share.sum() for share in shares])
    pairs = space.pairs(torch.arange(space.num_pairs))
    chance = torch.from_numpy(rates)[space.ends(pairs)].prod(dim=1).numpy()
    edges = pairs[torch.from_numpy(rng.random(len(pairs)) < 1 - np.exp(-300 * chance))]
    return space.degrees(edges), len(edges)


@pytest.mark.parametrize("few_pairs", [2**20, 0], ids=["all pairs", "end by end"])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.kind)
def test_edges_differ_and_have_the_degrees_on_average(space, few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees, num_edges = heavy_degrees(space)
    runs, total = 100, torch.zeros(space.num_ends)
    for seed in range(runs):
        generator = torch.Generator().manual_seed(seed)
        edges = two_sided_edges(space, degrees, num_edges, generator)
        assert len(edges) == num_edges
        assert torch.equal(space.pairs(space.numbers(edges)), edges)
        assert len(torch.unique(edges, dim=0)) == num_edges
        total += space.degrees(edges)
    # Ends that are drawn one by one leave loops out afterwards, which costs a hub up to an edge.
    most = 0.15 * degrees + 4 * (degrees / runs).sqrt() + 0.15 + (few_pairs == 0)
    assert ((total / runs - degrees).abs() < most).all()


@pytest.mark.parametrize("omit_loops", [False, True])
def test_weights_solve_their_equations(omit_loops):
    degrees, _ = heavy_degrees(SPACES[0])
    first, second = degrees[:60].numpy(), degrees[60:].numpy()
    x, y = two_sided_weights(first, second, omit_loops=omit_loops)
    linked = 1 - np.exp(-np.outer(x, y))
    if omit_loops:
        linked -= np.diag(np.diag(linked))
    np.testing.assert_allclose(linked.sum(axis=1), first, atol=0.02, rtol=0.02)
    np.testing.assert_allclose(linked.sum(axis=0), second, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("few_pairs", [2**20, 0])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.kind)
def test_a_complete_graph_ends_and_is_complete(space, few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    everything = space.pairs(torch.arange(space.num_pairs))
    degrees, generator = space.degrees(everything), torch.Generator().manual_seed(0)
    edges = two_sided_edges(space, degrees, space.num_pairs, generator)
    assert len(torch.unique(edges, dim=0)) == space.num_pairs


NO_EDGE = {
    "a node that would have to link itself": (DirectedPairs(3), [5, 0, 0, 5, 0, 0], 5),
    "few nodes of degree 0": (DirectedPairs(3), [0] * 6, 0),
    "many nodes of degree 0": (DirectedPairs(1100), [0] * 2200, 0),
    "a node without a partner": (UndirectedPairs(3), [0, 8, 0], 4),
}


@pytest.mark.parametrize(("space", "degrees", "num_edges"), NO_EDGE.values(), ids=NO_EDGE)
def test_no_partner_leads_to_no_edge_and_to_no_overflow(space, degrees, num_edges):
    draw = partial(two_sided_edges, space) if len(space.parts) > 1 else chung_lu_edges
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(torch.tensor(degrees), num_edges, torch.Generator()).shape == (0, 2)


@given(st.lists(st.sampled_from([0.05, 0.1, 0.3, 0.7]), min_size=5, max_size=30))
def test_weights_are_recovered_from_the_degrees_that_they_give(weights):
    x = np.array(weights)
    links = [[1 - np.exp(-a * b) for b in x] for a in x]
    degrees = np.sum(links, axis=1) - np.diagonal(links)
    found = edge_weights(degrees)
    again = -np.expm1(-np.outer(found, found))
    assert again.sum(axis=1) - again.diagonal() == pytest.approx(degrees, rel=0.02)


@pytest.mark.parametrize("few_pairs", [0, 2**20])
def test_pairs_are_drawn_in_proportion_to_weights_without_replacement(few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees = np.array([2, 1, 1, 0])
    x = np.append(edge_weights(degrees[:3]), 0.0)
    rates = {(i, j): x[i] * x[j] for i in range(3) for j in range(i + 1, 3)}
    total = sum(rates.values())
    expected = {}
    for (a, first), (b, second) in itertools.permutations(rates.items(), 2):
        both = frozenset((a, b))
        expected[both] = expected.get(both, 0) + first / total * second / (total - first)
    generator, draws = torch.Generator().manual_seed(0), 1000
    counts = dict.fromkeys(expected, 0)
    for _ in range(draws):
        edges = chung_lu_edges(torch.from_numpy(degrees), 2, generator).tolist()
        counts[frozenset(map(tuple, edges))] += 1
    for graph, chance in expected.items():
        deviation = (draws * chance * (1 - chance)) ** 0.5
        assert abs(counts[graph] - draws * chance) < 4.5 * deviation


@pytest.mark.parametrize("few_pairs", [0, 2**20])
def test_hubs_reach_their_degrees(few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees = torch.tensor([300, 200, 150] + [6] * 195 + [0, 0] + [3] * 300)
    num_edges = int(degrees.sum()) // 2
    found, runs = torch.zeros(len(degrees)), 10
    for seed in range(runs):
        edges = chung_lu_edges(degrees, num_edges, torch.Generator().manual_seed(seed))
        assert len({tuple(edge) for edge in edges.tolist()}) == num_edges
        assert bool((edges[:, 0] < edges[:, 1]).all())
        found += torch.bincount(edges.flatten(), minlength=len(degrees)) / runs
    # Three standard deviations of a Poisson mean
    assert ((found[:3] - degrees[:3]).abs() < 3 * (degrees[:3] / runs) ** 0.5).all()
    assert found[198:200].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("degrees", "num_edges", "expected"),
    [([0, 0, 0], 0, 0), ([3, 0, 3], 3, 1), ([4] * 5, 10, 10), ([0], 0, 0), ([4, 1, 1, 1, 1], 4, 4)],
)
def test_there_are_as_many_edges_as_fit(degrees, num_edges, expected):
    edges = chung_lu_edges(torch.tensor(degrees), num_edges, torch.Generator().manual_seed(0))
    assert len({tuple(edge) for edge in edges.tolist()}) == len(edges) == expected


@pytest.mark.parametrize("draw", ["whole", "pieces"])
def test_a_degree_beyond_all_other_nodes_is_that_of_all_other_nodes(draw):
    # Otherwise nearly all draws would be edges of this node, drawn again and again.
    def drawn(hub):
        degrees, generator = torch.tensor([hub, *[1] * 2_000]), torch.Generator().manual_seed(0)
        if draw == "whole":
            return chung_lu_edges(degrees, 2_000, generator)
        return torch.cat(list(chung_lu_pieces(degrees, 2_000, generator)))

    assert torch.equal(drawn(2_100), drawn(2_000))
