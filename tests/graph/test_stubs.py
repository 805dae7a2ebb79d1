"""Stub pairing meets degrees and wanted links exactly while there are stubs."""

import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from lightning_dpg.graph import stubs
from lightning_dpg.graph.pair_numbers import pair_keys, pairs_of_keys
from lightning_dpg.graph.stubs import (
    count_links,
    even_stubs,
    fill_links,
    link_pairs,
    pair_in_cells,
    pair_lacking,
    pair_stubs,
    stub_mixing,
)

NONE = np.empty((0, 2), dtype=np.int64)


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


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_every_stub_is_paired_once(count, seed):
    rng = np.random.default_rng(seed)
    classes_of_nodes, stubs = rng.integers(0, 3, 10), rng.integers(0, 10, count)
    links = np.tril(rng.integers(0, 5, (3, 3)))
    pairs = pair_stubs(stubs, classes_of_nodes[stubs], links, rng)
    unpaired = np.bincount(stubs, minlength=10) - degrees_of(pairs, 10)
    assert unpaired.min() >= 0 and unpaired.sum() == count % 2


def test_pairs_follow_the_links():
    classes = np.repeat([0, 1, 2], 1000)
    links = np.array([[0, 0, 0], [900, 0, 0], [100, 100, 400]])
    pairs = pair_stubs(np.arange(3000), classes, links, np.random.default_rng(0))
    assert np.abs(count_links(classes, pairs) - links).max() < 60


@given(st.integers(0, 60), st.integers(0, 2**32 - 1), st.floats(0, 2))
def test_links_are_filled_exactly_while_there_are_stubs(count, seed, factor):
    rng = np.random.default_rng(seed)
    classes_of_nodes, stubs = rng.integers(0, 4, 10), rng.integers(0, 10, count)
    pairs = rng.permutation(stubs)[: count // 2 * 2].reshape(-1, 2)
    links = count_links(np.append(classes_of_nodes, 3), pairs)
    filled, is_used = fill_links(stubs, classes_of_nodes[stubs], links, rng)
    assert count_links(np.append(classes_of_nodes, 3), filled).tolist() == links.tolist()
    assert is_used.sum() == 2 * len(pairs)
    wanted = np.rint(factor * links).astype(np.int64)
    filled, is_used = fill_links(stubs, classes_of_nodes[stubs], wanted, rng)
    assert (count_links(np.append(classes_of_nodes, 3), filled) <= wanted).all()
    assert np.sort(filled.ravel()).tolist() == np.sort(stubs[is_used]).tolist()


@given(st.integers(10, 60), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_pairs_that_do_not_fit_are_inserted(num_nodes, degree, seed):
    rng = np.random.default_rng(seed)
    wanted = np.array(nx.barabasi_albert_graph(num_nodes, degree, seed=seed).edges).ravel()
    existing = np.array(nx.gnm_random_graph(num_nodes, 5, seed=seed).edges)
    pairs = rng.permutation(wanted).reshape(-1, 2)
    added = link_pairs(pairs, existing, num_nodes, rng)
    edges = {tuple(edge) for edge in [*added.tolist(), *existing.tolist()]}
    assert len(edges) == len(added) + len(existing)
    assert (added[:, 0] < added[:, 1]).all()
    lacking = np.bincount(wanted, minlength=num_nodes) - degrees_of(added, num_nodes)
    assert lacking.min() >= 0
    assert lacking.sum() == 2 * (len(pairs) - len(added))


def test_degrees_are_met_though_hubs_meet_often():
    wanted = np.array([d for _, d in nx.barabasi_albert_graph(500, 4, seed=0).degree()])
    rng = np.random.default_rng(0)
    pairs = rng.permutation(np.repeat(np.arange(500), wanted)).reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).any()
    assert (degrees_of(link_pairs(pairs, NONE, 500, rng), 500) == wanted).all()


@pytest.mark.parametrize("pairs", [[[0, 0]], [[0, 1], [0, 1]], []])
def test_what_cannot_be_linked_is_left(pairs):
    added = link_pairs(np.array(pairs, dtype=int).reshape(-1, 2), NONE, 2, np.random.default_rng(0))
    assert len(added) == (1 if len(pairs) == 2 else 0)


def test_cells_have_the_law_of_all_stubs_at_once():
    stubs, classes = np.array([0, 0, 1, 2, 2, 3, 4]), np.array([0, 0, 0, 1, 1, 1, 1])
    links, runs = np.array([[1, 0], [1, 1]]), 2000
    counts = []
    for pair in (pair_stubs, pair_in_cells):
        rng, found = np.random.default_rng(0), np.zeros((5, 5), dtype=np.int64)
        drawn = np.concatenate([pair(stubs, classes, links, rng) for _ in range(runs)])
        np.add.at(found, tuple(np.sort(drawn, axis=1).T), 1)
        counts.append(found[np.triu_indices(5)])
    counts = np.array(counts)[:, sum(counts) > 0]
    assert counts.shape[1] == 12 and chi2_contingency(counts).pvalue > 1e-4


def test_cells_pair_every_stub_once_and_follow_the_links():
    classes = np.repeat([0, 1, 2], 1000)
    links = np.array([[0, 0, 0], [900, 0, 0], [100, 100, 400]])
    pairs = pair_in_cells(np.arange(3000), classes, links, np.random.default_rng(0))
    assert np.sort(pairs.ravel()).tolist() == list(range(3000))
    assert np.abs(count_links(classes, pairs) - links).max() < 60


def test_many_stubs_that_nodes_lack_are_paired_in_cells(monkeypatch):
    rng = np.random.default_rng(0)
    lacking, classes = rng.integers(0, 5, 200), rng.integers(0, 4, 200)
    links, nodes = np.tril(rng.integers(0, 60, (4, 4))), np.repeat(np.arange(200), lacking)
    cells = pair_in_cells(nodes, classes[nodes], links, np.random.default_rng(1))
    one_by_one = pair_stubs(nodes, classes[nodes], links, np.random.default_rng(1))
    few = pair_lacking(lacking, classes, links, np.random.default_rng(1))
    assert few.tolist() == one_by_one.tolist()
    monkeypatch.setattr(stubs, "MANY_STUBS", 0)
    many = pair_lacking(lacking, classes, links, np.random.default_rng(1))
    assert many.dtype == np.int32
    assert many.tolist() == cells.tolist()


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
        found = link_pairs(pairs, NONE, num_nodes, np.random.default_rng(1))
    wanted = inserted(np.sort(pairs, axis=1).tolist(), np.random.default_rng(1))
    assert found.tolist() == wanted


def inserted(pairs, rng):
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
    return added


@pytest.mark.parametrize("first", [2, 3])
def test_links_are_scaled_to_an_even_number_of_stubs(first):
    lacking, classes = np.array([first, 2, 40, 0]), np.array([0, 0, 1, 2])
    links = np.array([[0, 0, 0], [9, 1, 0], [0, 0, 0]])
    even, between = even_stubs(lacking, classes, links, np.random.default_rng(0))
    dropped = lacking - even
    assert dropped.min() == 0
    assert dropped.sum() == first % 2
    # Class 0 is linked to class 1 only, which has many more stubs.
    assert between.tolist() == [[0, 0, 0], [even[:2].sum(), 0, 0], [0, 0, 0]]
