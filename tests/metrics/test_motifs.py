"""Motif counts equal enumeration, and estimates are unbiased with the right error."""

import math
from functools import cache
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
from lightning_dpg.metrics.motifs import motif_cosine, motif_counts

PAIRS = list(combinations(range(8), 2))
FIRST = {3: 0, 4: 2, 5: 8}


def traits(graph):
    """Sort key of the motifs of one size."""
    degrees = sorted((-degree for _, degree in graph.degree()))
    return graph.number_of_edges(), degrees, -sum(nx.triangles(graph).values())


# The 29 of the atlas (its numbers below 53 have at most 5 nodes), in the order of the counts
ATLAS = sorted(
    (g for g in map(nx.graph_atlas, range(1, 53)) if len(g) >= 3 and nx.is_connected(g)),
    key=lambda g: (len(g), *traits(g)),
)


@cache
def motif_of(size, edges):
    part = nx.empty_graph(size)
    part.add_edges_from(edges)
    (found,) = (i for i, motif in enumerate(ATLAS) if nx.is_isomorphic(part, motif))
    return found


def by_enumeration(graph):
    """Counts by growing sets of nodes one by one, and the isomorphism test of networkx."""
    counts = np.zeros(29)
    sets = {frozenset(edge) for edge in graph.edges()}
    for size in (3, 4, 5):
        sets = {s | {w} for s in sets for v in s for w in graph[v] if w not in s}
        for nodes in map(sorted, sets):
            pairs = combinations(range(size), 2)
            edges = tuple((i, j) for i, j in pairs if nodes[j] in graph[nodes[i]])
            counts[motif_of(size, edges)] += 1
    return counts


def test_the_classes_are_those_of_the_atlas():
    assert len(ATLAS) == 29
    for place, graph in enumerate(ATLAS):
        counts = motif_counts(from_networkx(graph)).counts
        of_size = counts[FIRST[len(graph)] :]
        assert of_size.sum() == of_size[place - FIRST[len(graph)]] == 1


@settings(max_examples=40)
@given(st.sets(st.sampled_from(PAIRS), min_size=1))
def test_equals_enumeration(edges):
    graph = nx.empty_graph(8)
    graph.add_edges_from(edges)
    measured = motif_counts(from_networkx(graph))
    np.testing.assert_array_equal(measured.counts, by_enumeration(graph))
    assert measured.sampled_sizes == () and not measured.covariance.any()


@pytest.mark.parametrize("size", [3, 4, 5])
def test_trees_are_uniform(size):
    # Every walk that is a tree must be as likely as any other: in this graph of few trees, each
    # occurs about equally often.
    graph = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (2, 5), (1, 6)])
    trees = motifs._Trees(from_networkx(graph))
    drawn = trees.sample(size, 100_000, np.random.default_rng(0))
    expected = {}
    for edges in combinations(graph.edges(), size - 1):
        tree = nx.Graph(edges)
        if len(tree) == size and nx.is_connected(tree):
            nodes = tuple(sorted(tree))
            expected[nodes] = expected.get(nodes, 0) + 1
    sets, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(nodes) for nodes in sets.tolist()} == set(expected)
    per_tree = 100_000 / trees.weights(size).sum()
    for nodes, count in zip(sets.tolist(), counts, strict=True):
        mean = expected[tuple(nodes)] * per_tree
        assert abs(count - mean) < 5 * math.sqrt(mean)


def check_errors(estimates, exact, sampled, counted, frequent):
    """Sampled counts are unbiased and vary as much as they say; counted ones are exact."""
    errors = np.array([estimate.counts - exact.counts for estimate in estimates])
    assert not errors[:, counted].any()
    predicted = np.mean([np.diag(estimate.covariance) for estimate in estimates], axis=0)[sampled]
    errors, counts = errors[:, sampled], exact.counts[sampled]
    assert (np.abs(errors.mean(axis=0)) <= 4.5 * np.sqrt(predicted / len(estimates))).all()
    assert not errors[:, counts == 0].any()
    often = counts > frequent
    ratio = errors.var(axis=0)[often] / predicted[often]
    assert (np.abs(np.log(ratio)) < 0.6).all()


def test_estimates_are_unbiased_and_know_their_errors():
    graph, other = from_networkx(nx.karate_club_graph()), from_networkx(nx.cycle_graph(40))
    exact, second = motif_counts(graph), motif_counts(other)
    estimates = [motif_counts(graph, 2_000, seed, exact_up_to=0) for seed in range(80)]
    check_errors(estimates, exact, slice(8, None), slice(8), frequent=100)
    cosines = np.array([motif_cosine(estimate, second) for estimate in estimates])
    expected = motif_cosine(exact, second)
    assert expected[1] == 0
    assert cosines[:, 0].mean() == pytest.approx(expected[0], rel=0.01)
    assert cosines[:, 0].std() == pytest.approx(cosines[:, 1].mean(), rel=0.25)


def test_large_graphs_are_sampled_with_a_public_seed():
    graph = from_networkx(nx.karate_club_graph())
    first, again = (motif_counts(graph, exact_up_to=1_000) for _ in range(2))
    assert first.sampled_sizes == (5,)
    np.testing.assert_array_equal(first.counts, again.counts)
    assert motif_cosine(first, again) == (pytest.approx(1), pytest.approx(0, abs=1e-6))


def test_cosine_of_raw_counts():
    # A path of 5 nodes holds 3 paths of 3 nodes, 2 of 4 and itself, a star of 5 others.
    path, star = (motif_counts(from_networkx(g)) for g in (nx.path_graph(5), nx.star_graph(4)))
    expected = 3 * 6 / math.sqrt((9 + 4 + 1) * (36 + 16 + 1))
    assert motif_cosine(path, star) == (pytest.approx(expected), 0)


def test_undefined_without_a_motif():
    nothing = motif_counts(make_graph(torch.tensor([[0, 1]]), 4))
    assert not nothing.counts.any()
    star = motif_counts(from_networkx(nx.star_graph(4)))
    assert all(map(math.isnan, motif_cosine(nothing, star)))


def test_small_motifs_are_sampled_beyond_a_stated_cost():
    graph = from_networkx(nx.karate_club_graph())
    degree = dict(nx.karate_club_graph().degree())
    cost = sum(min(degree[u], degree[v]) for u, v in nx.karate_club_graph().edges())
    exact = motif_counts(graph, exact_small_up_to=cost)
    assert exact.sampled_sizes == () and motif_counts(graph, 100, exact_up_to=0).sampled_sizes == (
        5,
    )
    estimates = [motif_counts(graph, 2_000, seed, exact_small_up_to=cost - 1) for seed in range(80)]
    assert {estimate.sampled_sizes for estimate in estimates} == {(3, 4)}
    assert (exact.counts[:8] > 10).all()
    check_errors(estimates, exact, slice(8), slice(8, None), frequent=10)
