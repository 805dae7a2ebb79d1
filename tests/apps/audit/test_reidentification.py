"""Re-identification equals brute force over all guesses, and succeeds on exact copies."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.apps.audit import reidentification
from tests.apps.audit.test_link_stealing import KARATE, shuffled


@settings(max_examples=25)
@given(st.data())
def test_reidentification_is_that_of_all_guesses(data):
    rows = st.lists(st.integers(0, 3), min_size=6, max_size=6)
    known, published = (np.array(data.draw(rows), dtype=float)[:, None] for _ in range(2))
    targets = np.array(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6)))
    expected = 0.0
    for target in targets:
        distances = [abs(known[target, 0] - other) for other in published[:, 0]]
        nearest = [i for i, distance in enumerate(distances) if distance == min(distances)]
        expected += (target in nearest) / len(nearest)
    share = reidentification.share_reidentified(known, published, targets)
    assert share == pytest.approx(expected / len(targets))


def test_what_is_known_of_nodes_follows_them_under_other_numbers():
    graph, numbers = shuffled(KARATE)
    triangles = nx.triangles(nx.karate_club_graph())
    known = reidentification.by_degree_and_triangles(KARATE)
    np.testing.assert_allclose(known[:, 1] ** 2, [triangles[node] for node in range(34)])
    for describe in (
        reidentification.by_degree,
        reidentification.by_degree_and_triangles,
        reidentification.by_neighbor_degrees,
    ):
        assert np.array_equal(describe(graph)[numbers], describe(KARATE))


def test_more_knowledge_finds_more_nodes_of_a_copy():
    found = reidentification.reidentify(KARATE, [KARATE])
    # A node is found with one over the number of nodes that are described alike.
    degrees = [degree for _, degree in nx.karate_club_graph().degree]
    assert found["degree"].value == pytest.approx(len(set(degrees)) / 34)
    shares = [found[name].value for name in found]
    assert shares == sorted(shares)
