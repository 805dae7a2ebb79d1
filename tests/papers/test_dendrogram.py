"""Dendrogram moves keep all counts right, and fitted counts and draws have the right law."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.papers.xiao2014.dendrogram import (
    MAX_NODES,
    Dendrogram,
    branch_edges,
    branch_pairs,
    dividing_branch,
    draw_branches,
    log_likelihoods,
)


def random_edges(num_nodes, num_edges, seed=0):
    edges = list(nx.gnm_random_graph(num_nodes, num_edges, seed=seed).edges)
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def sides(dendrogram):
    """The nodes of both sides of each branch, by slicing the places."""
    nodes = dendrogram[:, 0].tolist()
    return {
        k: (nodes[start:k], nodes[k:stop])
        for k, (_, start, stop) in enumerate(dendrogram.tolist())
        if k
    }


def wandered(edges, num_nodes, moves, seed=0):
    dendrogram = Dendrogram(edges, num_nodes, np.random.default_rng(seed))
    for move in moves:
        dendrogram.gain(move)
        dendrogram.make()
    return dendrogram


@settings(max_examples=40)
@given(st.integers(3, 12), st.integers(0, 30), st.data())
def test_moves_keep_the_books(num_nodes, num_edges, data):
    edges = random_edges(num_nodes, min(num_edges, num_nodes * (num_nodes - 1) // 2), num_edges)
    moves = st.lists(st.integers(0, 2 * (num_nodes - 2) - 1), max_size=30)
    dendrogram = wandered(edges, num_nodes, data.draw(moves))
    state = dendrogram.state().numpy()
    linked = set(map(tuple, edges.tolist()))
    assert sorted(state[:, 0].tolist()) == list(range(num_nodes))
    counts, pairs = branch_edges(state, edges), branch_pairs(state)
    found = 0.0
    for branch, (first, second) in sides(state).items():
        between = [tuple(sorted(pair)) for pair in itertools.product(first, second)]
        assert pairs[branch] == len(between) > 0
        assert counts[branch] == len(linked & set(between))
        assert (dividing_branch(state, np.array(between)) == branch).all()
        for count in (counts[branch], len(between) - counts[branch]):
            if count:
                found += count * np.log(count / len(between))
    assert pairs[0] == 0
    assert pairs.sum() == num_nodes * (num_nodes - 1) // 2
    assert dendrogram.utility == pytest.approx(found)
    assert log_likelihoods(counts, pairs).sum() == pytest.approx(found)
    for move in range(dendrogram.num_moves):
        before, gain = dendrogram.utility, dendrogram.gain(move)
        assert dendrogram.utility == before
        dendrogram.make()
        assert dendrogram.utility - before == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize(("num_nodes", "number"), [(3, 3), (4, 15), (5, 105)])
def test_moves_reach_all_dendrograms_and_lead_back(num_nodes, number):
    nothing = np.empty((0, 2), dtype=np.int64)

    def key(path):
        return wandered(nothing, num_nodes, path).state().numpy().tobytes()

    paths, waiting, reached = {key(()): ()}, [()], {}
    while waiting:
        path = waiting.pop()
        after = [(*path, move) for move in range(2 * (num_nodes - 2))]
        reached[key(path)] = [key(longer) for longer in after]
        for longer in after:
            if key(longer) not in paths:
                paths[key(longer)] = longer
                waiting.append(longer)
    assert len(reached) == number  # (2 N - 3)!!, so states are independent of the path
    for here, others in reached.items():
        assert len(set(others)) == len(others)
        assert all(reached[other].count(here) == 1 for other in others)


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_few_nodes_have_one_dendrogram(num_nodes):
    edges = random_edges(num_nodes, num_nodes - 1)
    dendrogram = Dendrogram(edges, num_nodes, np.random.default_rng(0))
    assert dendrogram.num_moves == 0
    state = dendrogram.state().numpy()
    assert state.tolist() == [[0, 0, 0], [1, 0, 2]][:num_nodes]
    drawn = draw_branches(state, branch_edges(state, edges), np.random.default_rng(0))
    assert drawn.tolist() == edges.tolist()


def test_too_many_nodes_are_refused():
    with pytest.raises(ValueError, match="from 1 to 20000 nodes"):
        Dendrogram(np.empty((0, 2), dtype=np.int64), MAX_NODES + 1, np.random.default_rng(0))


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(0, 50)), min_size=1), st.floats(0, 1))
@example([(0.0, 30), (0.0, 21), (0.0, 30)], 0.84375)  # partial sums at a half
def test_fitting_counts_are_noisy_ones_shifted_and_cut(rows, share):
    noisy, most = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    total = int(share * most.sum())
    counts = fitting_counts(noisy, most, total)
    assert counts.sum() == total
    assert (counts >= 0).all() and (counts <= most).all()
    low, high = -1100.0, 1100.0
    for _ in range(60):
        middle = (low + high) / 2
        is_less = np.clip(noisy + middle, 0, most).sum() < total
        low, high = (middle, high) if is_less else (low, middle)
    assert np.abs(counts - np.clip(noisy + high, 0, most)).max() <= 1 + 1e-6


def test_drawn_edges_are_those_of_their_branches_and_all_alike_likely():
    edges = random_edges(7, 9, seed=1)
    state = wandered(edges, 7, [1, 4, 7, 2], seed=3).state().numpy()
    counts, rng = branch_edges(state, edges), np.random.default_rng(0)
    times = np.zeros((7, 7))
    for _ in range(2000):
        drawn = draw_branches(state, counts, rng)
        assert (drawn[:, 0] < drawn[:, 1]).all()
        assert len(set(map(tuple, drawn.tolist()))) == len(drawn)
        assert (branch_edges(state, drawn) == counts).all()
        times[drawn[:, 0], drawn[:, 1]] += 1
    pairs = np.array(list(itertools.combinations(range(7), 2)))
    branch = dividing_branch(state, pairs)
    expected = 2000 * (counts / np.maximum(branch_pairs(state), 1))[branch]
    seen = times[pairs[:, 0], pairs[:, 1]]
    uncertain = (expected > 0) & (expected < 2000)
    spread = np.sqrt(expected * (1 - expected / 2000))[uncertain]
    assert (seen == expected)[~uncertain].all()
    assert np.abs((seen - expected)[uncertain] / spread).max() < stats.norm.isf(1e-4)
