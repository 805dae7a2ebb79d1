"""Blocks fit the degrees of their nodes, and their pairs have the right density."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import affinity_blocks
from lightning_dpg.graph.affinity_blocks import block_edges, block_starts


@given(st.lists(st.integers(2, 9), max_size=40))
def test_no_node_has_more_neighbors_in_a_block_than_its_degree(degrees):
    starts = block_starts(np.array(degrees, dtype=np.int64)).tolist()
    ends = [*starts[1:], len(degrees)]
    for start, end in zip(starts, ends, strict=False):
        assert 1 <= end - start <= min(degrees[start:end]) + 1
        # With one node more, somebody would be offered too many.
        assert end == len(degrees) or end - start > min(degrees[start : end + 1])
    assert sum(end - start for start, end in zip(starts, ends, strict=False)) == len(degrees)


def test_blocks_of_density_one_are_cliques_and_of_density_zero_empty():
    nodes, starts = np.array([7, 3, 5, 0, 1, 2, 4]), np.array([0, 3, 5])
    densities = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    edges = block_edges(nodes, starts, densities, np.random.default_rng(0))
    assert sorted(map(tuple, edges.tolist())) == [(2, 4), (3, 5), (3, 7), (5, 7)]


def test_pairs_of_a_block_are_linked_with_the_mean_of_their_densities():
    nodes, starts = np.arange(300), np.arange(0, 300, 30)
    densities = np.tile([0.2, 0.8, 0.5], 100)
    rng = np.random.default_rng(0)
    draws = np.concatenate([block_edges(nodes, starts, densities, rng) for _ in range(40)])
    counts = np.bincount(draws[:, 0] % 3 * 3 + draws[:, 1] % 3)
    every = np.concatenate([np.stack(np.triu_indices(30, 1), axis=1) + 30 * k for k in range(10)])
    pairs = 40 * np.bincount(every[:, 0] % 3 * 3 + every[:, 1] % 3)
    shares = np.sqrt(np.outer([0.2, 0.8, 0.5], [0.2, 0.8, 0.5])).ravel()
    deviation = np.sqrt(pairs * shares * (1 - shares))
    assert (np.abs(counts - pairs * shares) < 4 * deviation).all()


def test_no_blocks():
    none = np.empty(0, dtype=np.int64)
    assert len(block_edges(none, none, np.empty(0), np.random.default_rng(0))) == 0


def test_chunks_of_pairs_draw_the_same_edges(monkeypatch):
    degrees = np.sort(np.random.default_rng(0).integers(2, 9, 200))
    nodes, starts, densities = np.arange(200)[::-1], block_starts(degrees), np.full(200, 0.5)
    whole = block_edges(nodes, starts, densities, np.random.default_rng(1))
    monkeypatch.setattr(affinity_blocks, "_PAIRS", 7)
    parts = block_edges(nodes, starts, densities, np.random.default_rng(1))
    assert len(whole) > 100
    assert parts.tolist() == whole.tolist()
