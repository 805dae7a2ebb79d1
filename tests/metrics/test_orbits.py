"""Orbit counts equal enumeration and closed forms."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import motifs
from lightning_dpg.metrics.motifs import small_motif_counts
from lightning_dpg.metrics.set_queries import orbit_means

PAIRS = list(combinations(range(8), 2))
# Orbit by the degrees of a connected induced subgraph and the node's degree in it
ORBITS = {
    (1, 1): {1: 0},
    (1, 1, 2): {1: 1, 2: 2},
    (2, 2, 2): {2: 3},
    (1, 1, 2, 2): {1: 4, 2: 5},
    (1, 1, 1, 3): {1: 6, 3: 7},
    (2, 2, 2, 2): {2: 8},
    (1, 2, 2, 3): {1: 9, 2: 10, 3: 11},
    (2, 2, 3, 3): {2: 12, 3: 13},
    (3, 3, 3, 3): {3: 14},
}


def by_enumeration(graph):
    """Mean of each orbit over the nodes, by the role of each node in each connected subgraph."""
    counts = np.zeros(15, dtype=int)
    for size in (2, 3, 4):
        for nodes in combinations(graph, size):
            part = graph.subgraph(nodes)
            if nx.is_connected(part):
                roles = ORBITS[tuple(sorted(degree for _, degree in part.degree()))]
                for _, degree in part.degree():
                    counts[roles[degree]] += 1
    return counts / len(graph)


@settings(max_examples=40)
@given(st.sets(st.sampled_from(PAIRS), min_size=1))
def test_equals_enumeration(edges):
    graph = nx.empty_graph(8)
    graph.add_edges_from(edges)
    np.testing.assert_array_equal(orbit_means(from_networkx(graph)), by_enumeration(graph))


def test_blocks_do_not_matter(monkeypatch):
    graph = from_networkx(nx.les_miserables_graph())
    whole = small_motif_counts(graph)
    monkeypatch.setattr(motifs, "_BLOCK_PATHS", 50)
    monkeypatch.setattr(motifs, "_BLOCK_EDGES", 20)
    np.testing.assert_array_equal(small_motif_counts(graph), whole)


def test_clique_and_star_in_closed_form():
    clique = orbit_means(from_networkx(nx.complete_graph(30)))
    assert dict(enumerate(clique)) == dict.fromkeys(range(15), 0) | {0: 29, 3: 406, 14: 3654}
    paths, _, claws, *others = small_motif_counts(from_networkx(nx.star_graph(1000)))
    assert (paths, claws) == (1000 * 999 // 2, 1000 * 999 * 998 // 6) and not any(others)


@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_nothing_without_edges(num_nodes):
    graph = make_graph(torch.empty(0, 2, dtype=torch.long), num_nodes)
    assert small_motif_counts(graph).tolist() == [0] * 8
