"""Rows move within groups only, and reach the mixing that a graph was planted with."""

import numpy as np
import pytest

from lightning_dpg.graph.mixing import NoisyMixing, mixing_gap, place_rows
from lightning_dpg.graph.stubs import count_links


@pytest.fixture(scope="module")
def planted():
    """Edges, rows and groups of 10 blocks of 10 nodes, whose rows are those of their block."""
    rng = np.random.default_rng(0)
    blocks = np.arange(100) // 10
    pairs = np.array([(i, j) for i in range(100) for j in range(i + 1, 100)])
    chance = np.where(blocks[pairs[:, 0]] == blocks[pairs[:, 1]], 0.6, 0.01)
    edges = pairs[rng.random(len(pairs)) < chance]
    rows = np.stack([blocks % 2, blocks // 5 % 2], axis=1)
    return edges, rows, rng.integers(0, 3, 100)


def released(edges, rows, scale):
    return [NoisyMixing(count_links(column, edges), scale) for column in rows.T]


def shuffled(rows, groups, seed):
    rng, mixed = np.random.default_rng(seed), rows.copy()
    for group in np.unique(groups):
        nodes = np.flatnonzero(groups == group)
        mixed[nodes] = rows[rng.permutation(nodes)]
    return mixed


def test_groups_keep_their_rows(planted):
    edges, rows, groups = planted
    mixing = released(edges, np.roll(rows, 5, axis=0), 0.0)
    placed = place_rows(edges, rows, groups, mixing, np.random.default_rng(1))
    for group in range(3):
        before, after = (sorted(map(tuple, part[groups == group])) for part in (rows, placed))
        assert before == after
    assert not np.array_equal(placed, rows)


def test_planted_mixing_of_two_columns_is_reached(planted):
    edges, rows, groups = planted
    mixing, start = released(edges, rows, 0.0), shuffled(rows, groups, 2)
    placed = place_rows(edges, start, groups, mixing, np.random.default_rng(3))
    before, after = (mixing_gap(edges, part, mixing).distance for part in (start, placed))
    assert after < before / 20


def test_mixing_that_noise_hides_moves_little(planted):
    edges, rows, groups = planted
    start = shuffled(rows, groups, 4)
    placed = place_rows(edges, start, groups, released(edges, rows, 1e6), np.random.default_rng(5))
    assert np.array_equal(placed, start)


def test_the_generator_decides(planted):
    edges, rows, groups = planted
    mixing, start = released(edges, rows, 1.0), shuffled(rows, groups, 6)
    one, same, other = (
        place_rows(edges, start, groups, mixing, np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)
