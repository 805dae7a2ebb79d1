"""Projected degrees move within their bounds, for all graphs of six nodes and all rewirings."""

import itertools

import numpy as np
import pytest

from lightning_dpg.graph.degrees import project_degrees, scatter_pairs
from lightning_dpg.privacy.sensitivity.degrees import (
    projected_degree_sensitivity,
)

N = 6
PAIRS = np.array(list(itertools.combinations(range(N), 2)))
GRAPHS = np.arange(2 ** len(PAIRS))


def all_projected(max_degree, order):
    """Kept pairs and kept degrees of all graphs by the plain loop: (2**15, 15) and (2**15, 6)."""
    degrees = np.zeros((len(GRAPHS), N), dtype=np.int8)
    kept = np.zeros((len(GRAPHS), len(PAIRS)), dtype=np.int8)
    for place in np.argsort(scatter_pairs(PAIRS, order)):
        ends = PAIRS[place]
        keeps = (GRAPHS >> place & 1 == 1) & (degrees[:, ends] < max_degree).all(axis=1)
        kept[:, place] = keeps
        degrees[:, ends] += keeps[:, None]
    return kept, degrees


def largest_move(values):
    """Largest L1 distance of values, shape (2**15, K), between two graphs that one node tells apart."""
    largest = 0
    for node in range(N):
        own = sum(1 << place for place, pair in enumerate(PAIRS) if node in pair)
        # Graphs that differ in the edges of the node only are a row.
        rows = np.argsort(GRAPHS & ~own, kind="stable").reshape(-1, 2 ** (N - 1))
        distance = np.zeros((len(rows), 2 ** (N - 1), 2 ** (N - 1)), dtype=np.int8)
        for column in values.T:
            distance += np.abs(column[rows][:, :, None] - column[rows][:, None])
        largest = max(largest, int(distance.max()))
    return largest


@pytest.mark.parametrize(
    ("max_degree", "edges"),
    # More kept edges change than one node has in both graphs.
    [(1, 6), (2, 9), (3, 10), (4, 9)],
)
def test_all_rewirings_of_a_node_move_projected_degrees_within_the_bounds(max_degree, edges):
    kept, degrees = all_projected(max_degree, order=0)
    at_least = (degrees[:, :, None] >= np.arange(1, max_degree + 1)).sum(axis=1, dtype=np.int8)
    moved = {
        "degrees": largest_move(degrees),
        "cumulative": largest_move(at_least),
        "which edges": largest_move(kept),
    }
    assert moved == {
        "degrees": projected_degree_sensitivity(max_degree),
        "cumulative": projected_degree_sensitivity(max_degree),
        "which edges": edges,
    }
    # The bounds for a node that comes with its edges are too small for one that stays.
    assert max_degree == 1 or moved["cumulative"] > max_degree + 1


@pytest.mark.parametrize("seed", range(60))
def test_rounds_keep_the_edges_of_the_plain_loop(seed):
    rng = np.random.default_rng(seed)
    num_nodes, max_degree = int(rng.integers(2, 30)), int(rng.integers(1, 8))
    pairs = np.stack(np.triu_indices(num_nodes, 1), axis=1)
    edges = pairs[rng.random(len(pairs)) < rng.random()]
    degrees, expected = np.zeros(num_nodes, dtype=int), np.zeros(len(edges), dtype=bool)
    for place in np.argsort(scatter_pairs(edges, seed)):
        if (degrees[edges[place]] < max_degree).all():
            degrees[edges[place]] += 1
            expected[place] = True
    assert np.array_equal(project_degrees(edges, num_nodes, max_degree, seed), expected)


def test_one_node_may_change_every_kept_edge():
    """A long path of rising order; a first edge at its start changes all others."""
    rng = np.random.default_rng(0)
    path = [0, 1]
    free = set(range(2, 4000))
    last = scatter_pairs(np.array([path]), 0)[0]
    while len(path) < 30:
        nodes = np.array(sorted(free))
        pairs = np.sort(np.stack([np.full(len(nodes), path[-1]), nodes], axis=1), axis=1)
        keys = scatter_pairs(pairs, 0)
        later = np.where(keys > last, keys, np.iinfo(np.uint64).max)
        chosen = int(np.argmin(later))
        path.append(int(nodes[chosen]))
        free.remove(path[-1])
        last = keys[chosen]
    edges = np.sort(np.stack([path[:-1], path[1:]], axis=1), axis=1)
    edges = edges[rng.permutation(len(edges))]
    first = (edges == [0, 1]).all(axis=1)
    with_first = project_degrees(edges, 4000, 1)
    without = project_degrees(edges[~first], 4000, 1)
    assert (with_first[~first] != without).all()


def test_a_bound_below_one_is_refused():
    with pytest.raises(ValueError, match="1 or more, got 0"):
        project_degrees(np.zeros((0, 2), dtype=np.int64), 3, 0)
