import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph.blocks import block_edges, block_starts


@given(st.lists(st.integers(2, 9), max_size=40).map(sorted))
def test_nobody_has_more_neighbours_in_a_block_than_its_degree(degrees):
    starts = block_starts(np.array(degrees, dtype=np.int64)).tolist()
    ends = [*starts[1:], len(degrees)]
    for start, end in zip(starts, ends, strict=False):
        assert 1 <= end - start <= degrees[start] + 1
        assert end - start == degrees[start] + 1 or end == len(degrees)
    assert sum(end - start for start, end in zip(starts, ends, strict=False)) == len(degrees)


def test_blocks_of_density_one_are_cliques_and_of_density_zero_empty():
    nodes, starts = np.array([7, 3, 5, 0, 1, 2, 4]), np.array([0, 3, 5])
    edges = block_edges(nodes, starts, np.array([1.0, 0.0, 1.0]), np.random.default_rng(0))
    assert sorted(map(tuple, edges.tolist())) == [(2, 4), (3, 5), (3, 7), (5, 7)]


def test_pairs_of_a_block_are_linked_with_its_density():
    nodes, starts = np.arange(300), np.arange(0, 300, 30)
    densities = np.linspace(0.05, 0.95, 10)
    rng = np.random.default_rng(0)
    draws = [block_edges(nodes, starts, densities, rng) for _ in range(20)]
    counts = np.bincount(np.concatenate(draws)[:, 0] // 30, minlength=10)
    pairs = 20 * 30 * 29 / 2
    deviation = np.sqrt(pairs * densities * (1 - densities))
    assert (np.abs(counts - pairs * densities) < 4 * deviation).all()


def test_no_blocks():
    none = np.empty(0, dtype=np.int64)
    assert len(block_edges(none, none, np.empty(0), np.random.default_rng(0))) == 0
