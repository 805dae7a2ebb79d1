"""Numbers of edges move within their bounds, for all neighbors of small graphs."""

import itertools

import pytest

from lightning_dpg.privacy.sensitivity.degrees import edges_per_graph_sensitivity

PAIRS = list(itertools.combinations(range(4), 2))


def edges_inside(edges, parts):
    """Number of edges inside each part of the nodes."""
    return [sum(set(edge) <= set(part) for edge in edges) for part in parts]


@pytest.mark.parametrize(
    ("parts", "occurrences"),
    [
        ([(0, 1), (2, 3)], 1),
        ([(0, 1, 2), (1, 2, 3), (0, 1, 3)], 2),
        ([(0, 1, 2, 3), (0, 1, 2), (1, 2, 3)], 3),
    ],
    ids=["disjoint", "overlapping", "nested"],
)
def test_one_edge_moves_the_counts_of_a_set_by_its_occurrences_at_most(parts, occurrences):
    moves = []
    for present in itertools.product([False, True], repeat=len(PAIRS)):
        edges = set(itertools.compress(PAIRS, present))
        for pair in edges:
            pairs = zip(
                edges_inside(edges, parts), edges_inside(edges - {pair}, parts), strict=True
            )
            moves.append(sum(abs(more - less) for more, less in pairs))
    assert max(moves) == edges_per_graph_sensitivity(occurrences)
