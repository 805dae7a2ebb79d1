"""Normalized mixing moves within its bounds, for all neighbors of small graphs and all their rows."""

import itertools
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.edge_statistics import (
    MIXING_UNIT,
    check_mixing,
    exact_mixing,
    mixing_matrices,
)
from lightning_dpg.privacy.sensitivity.private_columns import (
    mixing_edge_sensitivity,
    mixing_row_sensitivity,
)


def counted(edges, rows, sizes, max_weight, pairs=None):
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    degrees = np.bincount(edges.ravel(), minlength=len(rows))
    return exact_mixing(edges, degrees, np.array(rows), sizes, max_weight, pairs)


def exactly(edges, rows, sizes, max_weight, pairs=None):
    """The sums of weights as fractions, cell by cell."""
    degrees = np.bincount(np.array(edges, dtype=int).ravel(), minlength=len(rows)).tolist()
    cells = []
    for one, other in pairs or [(column, column) for column in range(len(sizes))]:
        width = [sizes[other]] * sizes[one] if pairs else range(1, sizes[one] + 1)
        found = {(a, b): Fraction(0) for a in range(sizes[one]) for b in range(width[a])}
        for u, v in edges:
            a, b = rows[u][one], rows[v][other]
            if not pairs:
                a, b = max(a, b), min(a, b)
            found[a, b] += min(Fraction(1), Fraction(max_weight, max(degrees[u], degrees[v])))
        cells += found.values()
    return cells


def graphs(possible):
    for present in itertools.product([False, True], repeat=len(possible)):
        yield frozenset(itertools.compress(possible, present))


def distance(one, other):
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def undirected(num_nodes, sizes):
    """All edges, the values that each node can have, and no pairs of columns."""
    values = list(itertools.product(*map(range, sizes)))
    return list(itertools.combinations(range(num_nodes), 2)), [values] * num_nodes, None


def directed(num_nodes, sizes):
    """All arcs, both ways; a matrix for each column."""
    _, values, _ = undirected(num_nodes, sizes)
    arcs = list(itertools.permutations(range(num_nodes), 2))
    return arcs, values, [(column, column) for column in range(len(sizes))]


def bipartite(num_nodes, sizes, of_left=1):
    """Edges of 2 left nodes and all others; the other side has nothing but 0 in a column."""
    sides = range(of_left), range(of_left, len(sizes))
    of_side = [
        list(itertools.product(*(range(size if k in side else 1) for k, size in enumerate(sizes))))
        for side in sides
    ]
    values = [of_side[0]] * 2 + [of_side[1]] * (num_nodes - 2)
    links = itertools.product(range(2), range(2, num_nodes))
    return list(links), values, list(itertools.product(*sides))


@pytest.mark.parametrize(
    ("kind", "num_nodes", "sizes", "max_weight"),
    [
        (undirected, 4, (2,), 1),
        (undirected, 4, (3,), 2),
        (undirected, 3, (2, 2), 1),
        (undirected, 5, (2,), 2),
        (directed, 3, (3,), 1),
        (directed, 3, (2,), 2),
        (directed, 3, (2,), 3),
        (directed, 3, (1, 2), 1),
        (bipartite, 5, (3, 2), 1),
        (bipartite, 5, (2, 2), 2),
    ],
)
def test_all_graphs_and_rows_move_within_the_bounds(kind, num_nodes, sizes, max_weight):
    possible, values, pairs = kind(num_nodes, sizes)
    found = {
        (edges, rows): counted(sorted(edges), rows, sizes, max_weight, pairs).tolist()
        for edges in graphs(possible)
        for rows in itertools.product(*values)
    }
    by_edge, by_row = 0, 0
    for (edges, rows), cells in found.items():
        assert cells == [
            floor(MIXING_UNIT * cell)
            for cell in exactly(sorted(edges), rows, sizes, max_weight, pairs)
        ]
        for edge in edges:
            by_edge = max(by_edge, distance(cells, found[edges - {edge}, rows]))
        for node in {0, num_nodes - 1}:  # or any other one of its side: all graphs are here
            for value in values[node]:
                others = found[edges, (*rows[:node], value, *rows[node + 1 :])]
                by_row = max(by_row, distance(cells, others))
    assert 0 < by_edge <= mixing_edge_sensitivity(max_weight, sizes, MIXING_UNIT, pairs)
    assert 0 < by_row <= mixing_row_sensitivity(max_weight, sizes, MIXING_UNIT, pairs)


@pytest.mark.parametrize("turned", [False, True])
def test_bounds_of_two_sides_are_attained_but_for_rounding(turned):
    for max_weight, pairs in ((1, [(0, 0)]), (3, [(0, 1), (0, 2)])):
        edges = [edge[:: -1 if turned else 1] for edge in two_stars(max_weight)]
        new = (1, 0) if turned else (0, 1)
        rows = [(0,) * 3, (1,) * 3] + [(2,) * 3] * 2 * max_weight
        before, after = (
            counted(each, rows, (3,) * 3, max_weight, pairs) for each in (edges, [*edges, new])
        )
        bound = mixing_edge_sensitivity(max_weight, (3,) * 3, MIXING_UNIT, pairs)
        assert bound - 9 * len(pairs) <= distance(before, after) <= bound
        moved = counted(edges, [(1,) * 3, *rows[1:]], (3,) * 3, max_weight, pairs)
        of_row = mixing_row_sensitivity(max_weight, (3,) * 3, MIXING_UNIT, pairs)
        assert distance(before, moved) == of_row - 8 * len(pairs)


def two_stars(leaves):
    """Two nodes with as many neighbors each, and without an edge between them."""
    return [(u, 2 + u * leaves + leaf) for u in (0, 1) for leaf in range(leaves)]


@pytest.mark.parametrize("max_weight", [1, 2, 4])
def test_the_bounds_are_attained_but_for_rounding(max_weight):
    edges = two_stars(max_weight)
    rows = [(0,), (1,)] + [(2,)] * 2 * max_weight
    before, after = (counted(each, rows, (3,), max_weight) for each in (edges, [*edges, (0, 1)]))
    bound = mixing_edge_sensitivity(max_weight, (3,), MIXING_UNIT)
    assert bound - 6 <= distance(before, after) <= bound
    assert bound == -(-3 * max_weight * MIXING_UNIT // (max_weight + 1)) + 5
    moved = counted(edges, [(1,), *rows[1:]], (3,), max_weight)
    assert distance(before, moved) == 2 * max_weight * MIXING_UNIT
    assert mixing_row_sensitivity(max_weight, (3,), MIXING_UNIT) == distance(before, moved) + 5


def rounded_edge_by_edge(edges, rows, sizes, max_weight):
    """What must not be released: the weight of each edge is rounded before they are added."""
    degrees = np.bincount(edges.ravel(), minlength=len(rows))
    weights = np.minimum(1, max_weight / degrees[edges].max(axis=1))
    return np.array([np.rint(weights * MIXING_UNIT).sum()])


def test_weights_that_are_rounded_before_they_are_added_are_found_out():
    """All edges of a hub cross a step together when it gets one more."""
    bound = mixing_edge_sensitivity(4, (1,), MIXING_UNIT)
    before = np.array([(0, leaf) for leaf in range(1, 8192)])
    after = np.concatenate([before, [[0, 8192]]])
    rows = np.zeros((8193, 1), dtype=np.int64)
    wrong = [rounded_edge_by_edge(edges, rows, (1,), 4) for edges in (before, after)]
    assert distance(*wrong) > 3 * bound
    right = [counted(edges, rows, (1,), 4) for edges in (before, after)]
    assert distance(*right) <= bound


def test_sums_over_a_large_graph_are_rounded_once():
    rng = np.random.default_rng(0)
    ends = rng.zipf(1.5, (4000, 2)) % 300
    edges = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    rows = rng.integers(0, (5, 2), (300, 2))
    cells = counted(edges, rows, (5, 2), 3)
    wanted = exactly(edges.tolist(), rows.tolist(), (5, 2), 3)
    assert cells.tolist() == [floor(MIXING_UNIT * cell) for cell in wanted]
    first, second = mixing_matrices(cells / MIXING_UNIT, (5, 2))
    assert first[4, 2] == cells[12] / MIXING_UNIT
    assert second.tolist()[1] == (cells[16:] / MIXING_UNIT).tolist()
    ordered = counted(edges, rows, (5, 2), 3, [(0, 1)])
    wanted = exactly(edges.tolist(), rows.tolist(), (5, 2), 3, [(0, 1)])
    assert ordered.tolist() == [floor(MIXING_UNIT * cell) for cell in wanted]
    (matrix,) = mixing_matrices(ordered / MIXING_UNIT, (5, 2), [(0, 1)])
    assert matrix[3, 1] == ordered[7] / MIXING_UNIT


def test_sizes_beyond_the_proof_are_refused():
    with pytest.raises(Refusal, match="16,777,216 nodes"):
        check_mixing(2**24, (2,))
    with pytest.raises(Refusal, match="8,388,608 nodes"):  # with two records for each other one
        check_mixing(2**23, (2,), [(0, 0)])
    with pytest.raises(Refusal, match="fewer columns, or fewer"):
        check_mixing(9, (64,) * 16)
