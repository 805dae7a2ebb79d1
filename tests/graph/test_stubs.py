"""Stub pairing meets degrees and wanted links exactly while there are stubs."""

import itertools
import random
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import stubs
from lightning_dpg.graph.pair_numbers import pair_keys, pairs_of_keys
from lightning_dpg.graph.stubs import (
    NO_PAIRS,
    count_links,
    draw_links,
    link_numbers,
    pair_stubs,
    shuffled,
    stub_mixing,
)


def degrees_of(edges, num_nodes):
    return np.bincount(edges.ravel(), minlength=num_nodes)


def test_links_are_counted_by_the_classes_of_their_ends():
    classes, edges = np.array([0, 1, 1, 3]), np.array([[0, 1], [1, 2], [0, 2], [2, 3], [0, 3]])
    expected = np.zeros((4, 4))
    for i, j in edges:
        expected[max(classes[i], classes[j]), min(classes[i], classes[j])] += 1
    assert count_links(classes, edges).tolist() == expected.tolist()


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 99))
def test_mixing_is_symmetric_with_the_given_totals(totals, seed):
    totals = np.array(totals)
    links = np.tril(np.random.default_rng(seed).integers(1, 30, (len(totals), len(totals))))
    mixing = stub_mixing(links, totals)
    assert np.allclose(mixing, mixing.T)
    assert np.allclose(mixing.sum(axis=1), totals, rtol=0.02, atol=0.02)


def test_links_that_fit_the_totals_stay():
    links = np.array([[20, 0, 0], [15, 0, 0], [5, 30, 10]])
    wanted = links + links.T
    assert np.allclose(stub_mixing(links, wanted.sum(axis=1)), wanted, atol=0.5)


@pytest.mark.parametrize("block", [0, 2**20])
@pytest.mark.parametrize("nodes", [[0, 0, 2**30, 7], [0], []])
def test_each_arrangement_is_as_likely(nodes, block, monkeypatch):
    monkeypatch.setattr(stubs, "_BLOCK", block)
    rng, given_nodes = np.random.default_rng(0), np.array(nodes, dtype=np.int32)
    found = Counter(tuple(shuffled(given_nodes, rng).tolist()) for _ in range(2400))
    assert set(found) == set(itertools.permutations(nodes))
    assert max(found.values()) - min(found.values()) < 85  # 4.2 deviations of 14 at 200 each


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_every_stub_is_paired_once(count, seed):
    rng = np.random.default_rng(seed)
    classes, lacking = rng.integers(0, 3, 10), np.bincount(rng.integers(0, 10, count), minlength=10)
    ends = rng.random((3, 3)) * 20
    pairs = pair_stubs(lacking, [(classes, ends + ends.T)], rng)
    unpaired = lacking - degrees_of(pairs, 10)
    assert unpaired.min() >= 0 and unpaired.sum() == count % 2


def test_pairs_have_the_links_of_the_classes():
    classes = np.repeat([0, 1, 2], 1000)
    links = np.array([[0, 0, 0], [900, 0, 0], [100, 100, 400]])
    pairs = pair_stubs(
        np.ones(3000, dtype=np.int64), [(classes, links + links.T)], np.random.default_rng(0)
    )
    assert np.sort(pairs.ravel()).tolist() == list(range(3000))
    assert np.abs(count_links(classes, pairs) - links).max() <= 1


def test_links_are_rounded_without_bias():
    lacking, classes = np.array([2, 1, 2, 2]), np.array([0, 0, 1, 1])
    mixing, runs = np.array([[0.8, 2.2], [2.2, 1.8]]), 4000
    rng = np.random.default_rng(0)
    found = sum(
        count_links(classes, pair_stubs(lacking, [(classes, mixing)], rng)) for _ in range(runs)
    )
    halved = np.tril(mixing) - np.diag(np.diag(mixing)) / 2
    # A link that the rounding leaves over is paired by chance.
    assert found / runs == pytest.approx(halved, abs=0.35)


@pytest.mark.parametrize("seed", range(3))
def test_what_fine_classes_leave_has_the_links_of_coarse_ones(seed):
    rng = np.random.default_rng(seed)
    coarse, fine = np.repeat([0, 1], 200), rng.integers(0, 40, 400)
    fine += 40 * coarse
    near, far = (np.full(400, degree) for degree in (6, 4))
    wanted = np.array([[1200.0, 800.0], [800.0, 1200.0]])
    sizes = np.bincount(fine, minlength=80)
    shares = sizes / np.bincount(coarse)[np.arange(80) // 40]
    cells = np.outer(shares, shares) * np.kron(wanted, np.ones((40, 40)))
    alone, both = (
        count_links(coarse, pair_stubs(near + far, levels, np.random.default_rng(seed)))
        for levels in ([(fine, cells)], [(fine, cells), (coarse, wanted)])
    )
    assert abs(both[1, 0] - 800) <= 2 < abs(alone[1, 0] - 800) + 3


def block_graph(seed):
    """Communities of sizes 5 to 80; some nodes have more neighbors than their communities have nodes."""
    graph = nx.stochastic_block_model([80, 60, 30, 5], 0.01 + 0.3 * np.eye(4), seed=seed)
    rng = np.random.default_rng(seed)
    for hub in (0, 100, 150):
        graph.add_edges_from((hub, int(v)) for v in rng.choice(175, 70, False) if v != hub)
    return np.array(graph.edges), np.repeat(np.arange(4), [80, 60, 30, 5])


@pytest.mark.parametrize("seed", range(5))
def test_degrees_are_drawn_exactly_and_links_nearly(seed):
    edges, classes = block_graph(seed)
    degrees, links = degrees_of(edges, len(classes)), count_links(classes, edges)
    drawn = draw_links(degrees, [(classes, links + links.T)], np.random.default_rng(seed))
    assert (drawn[:, 0] < drawn[:, 1]).all() and len(np.unique(drawn, axis=0)) == len(edges)
    assert degrees_of(drawn, len(classes)).tolist() == degrees.tolist()
    assert np.abs(count_links(classes, drawn) - links).sum() <= 0.04 * len(edges)
    assert {*map(tuple, drawn.tolist())} != {*map(tuple, np.sort(edges, axis=1).tolist())}


@pytest.mark.parametrize("seed", range(5))
def test_two_sides_are_linked_without_pairs_that_are_barred(seed):
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(6), 20)
    chance = np.kron(0.05 + 0.3 * np.eye(3), np.ones((20, 20))) * (1 - np.eye(60))
    edges = np.argwhere(rng.random((60, 60)) < chance) + np.array([0, 60])
    degrees, links = degrees_of(edges, 120), count_links(classes, edges)
    barred = np.stack([np.arange(60), np.arange(60, 120)], axis=1)
    levels = [(classes, (links + links.T).astype(np.float64))]
    drawn = draw_links(degrees, levels, rng, no_pairs=barred, num_first=60)
    assert len(np.unique(drawn, axis=0)) == len(edges)
    assert degrees_of(drawn, 120).tolist() == degrees.tolist()
    assert (drawn[:, 0] < 60).all() and (drawn[:, 1] >= 60).all()
    assert np.abs(count_links(classes, drawn) - links).sum() <= 0.03 * len(edges)
    assert not {*map(tuple, drawn.tolist())} & {*map(tuple, barred.tolist())}


SMALL = [*itertools.combinations(range(5), 2)]
DEGREES_OF_GRAPHS = {
    count: np.array(
        [
            np.bincount(np.ravel(edges), minlength=5)
            for edges in itertools.combinations(SMALL, count)
        ]
    )
    for count in range(1, 11)
}
"""Degrees of all graphs of five nodes, by their number of edges."""


@given(st.lists(st.integers(0, 4), min_size=5, max_size=5), st.integers(0, 99))
def test_any_degrees_give_the_number_of_edges_and_degrees_close_to_the_nearest(degrees, seed):
    wanted, count = np.array(degrees), sum(degrees) // 2
    drawn = draw_links(wanted, [], np.random.default_rng(seed))
    assert len({*map(tuple, drawn.tolist())}) == count == len(drawn)
    if count:
        nearest = np.abs(DEGREES_OF_GRAPHS[count] - wanted).sum(axis=1).min()
        assert np.abs(degrees_of(drawn, 5) - wanted).sum() <= nearest + 4


@given(st.sets(st.sampled_from(SMALL)), st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_barred_pairs_leave_as_many_edges_as_there_are_others(barred, degrees):
    no_pairs = np.array([*barred], dtype=int).reshape(-1, 2)
    drawn = draw_links(np.array(degrees), [], np.random.default_rng(0), no_pairs=no_pairs)
    found = {*map(tuple, drawn.tolist())}
    assert len(found) == len(drawn) == min(sum(degrees) // 2, 10 - len(barred))
    assert found <= {*SMALL} - barred


@given(st.integers(10, 60), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_pairs_that_do_not_fit_are_inserted(num_nodes, degree, seed):
    rng = np.random.default_rng(seed)
    wanted = np.array(nx.barabasi_albert_graph(num_nodes, degree, seed=seed).edges).ravel()
    existing = np.array(nx.gnm_random_graph(num_nodes, 5, seed=seed).edges)
    pairs = rng.permutation(wanted).reshape(-1, 2)
    added = linked(pairs, existing, num_nodes, rng)
    edges = {tuple(edge) for edge in [*added.tolist(), *existing.tolist()]}
    assert len(edges) == len(added) + len(existing)
    assert (added[:, 0] < added[:, 1]).all()
    lacking = np.bincount(wanted, minlength=num_nodes) - degrees_of(added, num_nodes)
    assert len(added) == len(pairs) and np.abs(lacking).sum() <= 6


def linked(pairs, existing, num_nodes, rng):
    numbers = link_numbers(
        pair_keys(pairs, num_nodes), pair_keys(existing, num_nodes), num_nodes, rng
    )
    return pairs_of_keys(numbers, num_nodes)


def test_degrees_are_met_though_hubs_meet_often():
    wanted = np.array([d for _, d in nx.barabasi_albert_graph(500, 4, seed=0).degree()])
    rng = np.random.default_rng(0)
    pairs = rng.permutation(np.repeat(np.arange(500), wanted)).reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).any()
    assert (degrees_of(linked(pairs, NO_PAIRS, 500, rng), 500) == wanted).all()


@pytest.mark.parametrize("pairs", [[[0, 0]], [[0, 1], [0, 1]], []])
def test_two_nodes_have_one_edge_at_most(pairs):
    pairs = np.array(pairs, dtype=int).reshape(-1, 2)
    added = linked(pairs, NO_PAIRS, 2, np.random.default_rng(0))
    assert len(added) == min(len(pairs), 1)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_pair_of_many_nodes_has_one_number_in_both_orders(kind):
    pairs, num_nodes = np.array([[2**31 - 2, 5], [5, 2**31 - 2]], dtype=kind), 2**31 - 1
    numbers = pair_keys(pairs, num_nodes)
    assert numbers.tolist() == 2 * [5 * num_nodes + 2**31 - 2]
    assert pairs_of_keys(numbers, num_nodes).tolist() == 2 * [[5, 2**31 - 2]]


@given(st.integers(10, 40), st.integers(0, 2**32 - 1), st.sampled_from([3, 2**20]))
def test_insertions_are_those_into_lists_and_sets(num_nodes, seed, block):
    pairs = np.random.default_rng(seed).integers(0, num_nodes, (40, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stubs, "_BLOCK", block)
        found = linked(pairs, NO_PAIRS, num_nodes, np.random.default_rng(1))
    wanted = inserted(np.sort(pairs, axis=1).tolist(), num_nodes, np.random.default_rng(1))
    assert found.tolist() == wanted


def inserted(pairs, num_nodes, rng):
    """Link pairs, or insert them, with a plain list and a set."""
    added, rest, present = [], [], set()
    for a, b in pairs:
        fits = a != b and (a, b) not in present
        (added if fits else rest).append([a, b])
        present |= {(a, b)} if fits else set()
    draw = random.Random(int(rng.integers(2**62)))
    for a, b in rest:
        for _ in range(100 if added else 0):
            place = draw.randrange(len(added))
            i, j = added[place]
            c, d = draw.sample([i, j], 2)
            new = [sorted((a, c)), sorted((b, d))]
            if new[0] == new[1] or any(p == q or (p, q) in present for p, q in new):
                continue
            present = present - {(i, j)} | {tuple(pair) for pair in new}
            added[place] = new[0]
            added.append(new[1])
            break
        else:
            start = draw.randrange(num_nodes)
            around = [(start + step) % num_nodes for step in range(num_nodes)]
            near = [(min(p, q), max(p, q)) for p in (a, b, *around) for q in around if p != q]
            free = [pair for pair in near if pair not in present][:1]
            added += [[*pair] for pair in free]
            present |= {*free}
    return added
