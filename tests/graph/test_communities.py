"""Communities that nodes join in turns, and whole numbers of links between them."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from lightning_dpg.graph.communities import (
    count_neighbors,
    earlier_first,
    expected_neighbors,
    nearest_counts,
    right_share,
    sharpened_links,
    turn_stops,
)
from lightning_dpg.graph.stubs import count_links, untangle
from lightning_dpg.graph.wedges import count_label_wedges, wedge_slots


@given(st.integers(1, 40), st.integers(0, 300), st.sampled_from([1.01, 1.3, 2.0]))
def test_turns_cover_all_nodes_and_grow_no_faster_than_asked(first, more, growth):
    stops = turn_stops(first, first + more, growth)
    assert stops == sorted(set(stops))
    assert (stops[-1] == first + more) if more else not stops
    assert all(b <= max(a + 1, a * growth) for a, b in itertools.pairwise([first, *stops]))


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.empty_graph(9), nx.star_graph(12)])
def test_neighbors_of_earlier_turns_are_counted_by_community(graph):
    size = len(graph)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    communities = torch.arange(size) % 3  # by place
    ends = earlier_first(torch.tensor(list(graph.edges()), dtype=torch.long).view(-1, 2), order)
    total = 0
    for start, stop in itertools.pairwise([2, *turn_stops(2, size, 1.5)]):
        expected = np.zeros((stop - start, 3))
        for later, earlier in itertools.product(range(start, stop), range(start)):
            if graph.has_edge(int(order[later]), int(order[earlier])):
                expected[later - start, communities[earlier]] += 1
        counts = count_neighbors(ends, communities[:start], stop, 3)
        assert counts.tolist() == expected.tolist()
        total += int(counts.sum())
    assert total <= graph.number_of_edges()


def test_expected_neighbors_are_means_over_random_stub_pairings():
    degrees, chosen = torch.tensor([5, 4, 3, 2]), torch.tensor([1, 0])
    rng = np.random.default_rng(0)
    stubs, rounds = np.repeat(np.arange(4), degrees), 4000
    counts = np.zeros((2, 2))
    for _ in range(rounds):
        pairs = rng.permutation(stubs).reshape(-1, 2)
        for a, b in [*pairs, *pairs[:, ::-1]]:
            if a >= 2 > b:
                counts[a - 2, chosen[b]] += 1
    # A stub has one partner fewer than there are stubs; chance does not take itself out.
    measured = counts / rounds * (len(stubs) - 1) / len(stubs)
    assert expected_neighbors(degrees, chosen, 4, 2).numpy() == pytest.approx(measured, abs=0.05)
    assert expected_neighbors(torch.zeros(4), chosen, 4, 2).tolist() == [[0, 0], [0, 0]]


@settings(max_examples=40)
@given(st.lists(st.integers(-50, 80), min_size=1, max_size=6), st.integers(0, 120))
def test_nearest_counts_solve_the_constrained_least_squares(noisy, total):
    counts = nearest_counts(np.array(noisy), total)
    assert counts.sum() == total
    assert counts.min() >= 0
    solved = minimize(
        lambda x: ((x - noisy) ** 2).sum(),
        np.full(len(noisy), total / len(noisy)),
        jac=lambda x: 2 * (x - noisy),
        bounds=[(0, None)] * len(noisy),
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
        method="SLSQP",
    )
    assert np.abs(counts - solved.x).max() < 1.001


def test_noise_alone_makes_few_links():
    rng = np.random.default_rng(0)
    noisy = rng.integers(-10, 11, 500)
    noisy[0] += 1000
    counts = nearest_counts(noisy, 1000)
    assert counts[0] > 980  # cutting negative counts and rescaling would leave 270


def test_pairs_are_untangled_within_their_communities():
    rng = np.random.default_rng(0)
    communities = rng.integers(0, 3, 60)
    weights = 1 / np.sqrt(np.arange(1, 61))
    pairs = rng.choice(60, (300, 2), p=weights / weights.sum())
    free = untangle(pairs, communities, rng)
    keys = np.sort(pairs, axis=1) @ [60, 1], np.sort(free, axis=1) @ [60, 1]
    assert np.bincount(pairs.ravel()).tolist() == np.bincount(free.ravel()).tolist()
    assert np.array_equal(count_links(communities, pairs), count_links(communities, free))
    tangled = [300 - len(np.unique(k[k % 61 != 0])) for k in keys]
    assert tangled[0] > 30 > 5 * tangled[1]


def test_pairs_that_cannot_be_untangled_stay():
    loops = np.array([[0, 0], [0, 0]])
    assert untangle(loops, np.zeros(3, dtype=np.int64), np.random.default_rng(0)).tolist() == (
        loops.tolist()
    )
    none = np.empty((0, 2), dtype=np.int64)
    assert untangle(none, np.zeros(3, dtype=np.int64), np.random.default_rng(0)).shape == (0, 2)


def blocks(chance, size, seed):
    """Edges of a block model, and the blocks of its nodes."""
    graph = nx.stochastic_block_model([size] * len(chance), chance, seed=seed)
    return np.array(sorted(map(sorted, graph.edges))), np.repeat(np.arange(len(chance)), size)


def counted(edges, labels):
    slots = wedge_slots(np.bincount(edges.ravel(), minlength=len(labels)))
    return count_links(labels, edges), count_label_wedges(edges, slots, labels, 0)


CLOSE, FAR = 0.05, 0.005
CAMPS = np.full((4, 4), FAR)  # two pairs of blocks that are linked often
CAMPS[:2, :2] = CAMPS[2:, 2:] = CLOSE


CAMPS += 0.1 * np.eye(4)


@pytest.mark.parametrize("chance", [0.01 + 0.12 * np.eye(4), CAMPS], ids=["equal", "camps"])
@pytest.mark.parametrize("right", [0.9, 0.7])
def test_links_of_right_labels_are_estimated_from_wrong_ones(chance, right):
    edges, truth = blocks(chance, 400, 0)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(len(truth)) < right, truth, rng.integers(0, 4, len(truth)))
    links, wedges = counted(edges, labels)
    share = right_share(links, wedges, 1.0)
    assert share == pytest.approx(right**2, abs=0.06)
    wanted = np.tril(count_links(truth, edges), -1)
    change = np.abs(np.tril(sharpened_links(links, share), -1) - wanted).sum()
    assert change < 0.25 * np.abs(np.tril(links, -1) - wanted).sum()


def test_right_labels_change_nothing():
    edges, truth = blocks(0.01 + 0.12 * np.eye(4), 400, 0)
    links, wedges = counted(edges, truth)
    assert right_share(links, wedges, 1.0) > 0.97


def test_wedges_within_their_noise_change_nothing():
    edges, truth = blocks(0.01 + 0.12 * np.eye(4), 400, 0)
    labels = np.where(np.random.default_rng(0).random(len(truth)) < 0.7, truth, 0)
    links, wedges = counted(edges, labels)
    shares = [right_share(links, wedges, scale) for scale in (0.0, 300.0, 600.0, 1e9)]
    assert shares == sorted(shares) and shares[0] < 0.7
    assert shares[-1] == 1 and sharpened_links(links, 1.0) is links


@pytest.mark.parametrize("wedges", [[0, 0], [-9, -2], [0, 50], [2**46, 0], [0, 2**46]])
@pytest.mark.parametrize("links", [np.zeros((3, 3)), np.tril(np.arange(9).reshape(3, 3))])
def test_any_noise_gives_a_share_and_possible_links(links, wedges):
    links = links.astype(np.int64)
    share = right_share(links, np.array(wedges), 4.0)
    assert 0 < share <= 1
    found = sharpened_links(links, share)
    assert (found >= 0).all() and not found[links == 0].any()
    assert 4 * np.tril(found, -1).sum() >= np.tril(links, -1).sum() - 4
