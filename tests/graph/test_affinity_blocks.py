"""Blocks have the size that their nodes want, and nodes the links that they want in them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import affinity_blocks
from lightning_dpg.graph.affinity_blocks import block_edges, block_starts, within_degrees


@given(st.lists(st.floats(0.5, 9), max_size=40))
def test_blocks_grow_while_their_nodes_want_more_others_than_there_are(sizes):
    starts = block_starts(np.array(sizes)).tolist()
    for start, end in itertools.pairwise([*starts, len(sizes)]):
        means = [np.mean(sizes[start:stop]) for stop in range(start + 1, end + 1)]
        others = np.arange(1, len(means) + 1)  # with one node more
        assert (others[:-1] <= np.array(means[:-1]) + 1e-9).all()
        assert end == len(sizes) or others[-1] > means[-1] - 1e-9
    assert starts[:1] == [0] * bool(sizes)


def test_equal_degrees_make_blocks_of_one_node_more():
    assert block_starts(np.full(25, 4.0)).tolist() == [0, 5, 10, 15, 20]


def test_nodes_that_want_all_links_are_cliques_and_those_that_want_none_have_none():
    nodes, starts = np.array([7, 3, 5, 0, 1, 2, 4]), np.array([0, 3, 5])
    inner = np.array([2.0, 2.0, 2.0, 0.0, 1.0, 1.0, 1.0])
    counts = np.zeros((8, 8))
    for seed in range(50):
        first, second = block_edges(nodes, starts, inner, np.random.default_rng(seed)).T
        assert (first < second).all()
        counts[first, second] += 1
    linked = {pair: counts[pair] for pair in zip(*np.nonzero(counts), strict=True)}
    assert set(linked) == {(2, 4), (3, 5), (3, 7), (5, 7)}
    assert min(linked.values()) > 30


def test_nodes_have_their_wanted_links_on_average_and_the_law_of_largest_entropy():
    inner = np.repeat([2.0, 6.0, 15.0], 10)
    wanted, rng = np.tile(inner, 40), np.random.default_rng(0)
    edges = block_edges(np.arange(1200), np.arange(0, 1200, 30), wanted, rng)
    assert (edges // 30 == edges[:, :1] // 30).all()
    links = np.bincount(edges.ravel(), minlength=1200).reshape(40, 3, 10)
    assert links.mean(axis=(0, 2)) == pytest.approx([2.0, 6.0, 15.0], rel=0.1)
    # Odds of a pair are a product of two factors: by kinds, odds of ab squared are those of aa and bb.
    kinds = edges % 30 // 10
    counts = np.zeros((3, 3))
    np.add.at(counts, (kinds[:, 0], kinds[:, 1]), 1 / 40)
    pairs = np.where(np.eye(3) > 0, 45, 100)
    odds = counts / (pairs - counts)
    assert odds[1, 2] ** 2 == pytest.approx(odds[1, 1] * odds[2, 2], rel=0.2)


def test_no_blocks():
    none = np.empty(0, dtype=np.int64)
    assert len(block_edges(none, none, np.empty(0), np.random.default_rng(0))) == 0
    assert (
        len(within_degrees(np.empty((0, 2), dtype=np.int64), none, np.random.default_rng(0))) == 0
    )


def test_chunks_of_pairs_draw_the_same_edges(monkeypatch):
    degrees = np.sort(np.random.default_rng(0).integers(2, 9, 200)).astype(np.float64)
    nodes, starts, inner = np.arange(200)[::-1], block_starts(degrees), degrees / 2
    whole = block_edges(nodes, starts, inner, np.random.default_rng(1))
    monkeypatch.setattr(affinity_blocks, "_PAIRS", 7)
    parts = block_edges(nodes, starts, inner, np.random.default_rng(1))
    assert len(whole) > 100
    assert parts.tolist() == whole.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_edges_beyond_the_degrees_are_dropped_and_no_others(seed):
    rng = np.random.default_rng(seed)
    edges = np.array([pair for pair in itertools.combinations(range(30), 2) if rng.random() < 0.3])
    degrees = np.where(np.arange(30) < 10, 3, 30)
    kept = within_degrees(edges, degrees, rng)
    assert (np.bincount(kept.ravel(), minlength=30) <= degrees).all()
    assert {*map(tuple, kept.tolist())} < {*map(tuple, edges.tolist())}
    free = {tuple(pair) for pair in edges.tolist() if min(pair) >= 10}
    assert free <= {*map(tuple, kept.tolist())}
    # An edge is dropped only at a node whose degree its earlier edges fill.
    assert len(kept) > len(free) + 8
