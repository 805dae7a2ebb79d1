"""Edges by the categories of their ends, moved to released mixing."""

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.graph import mixing
from lightning_dpg.graph.mixing import (
    CommonNeighbors,
    NoisyMixing,
    fitted_mixing,
    mixing_gap,
    place_rows,
    rewire,
)
from lightning_dpg.graph.stubs import count_links


def test_counts_equal_networkx(monkeypatch):
    monkeypatch.setattr(mixing, "_LOOKUPS", 50)  # several blocks
    graph = nx.barabasi_albert_graph(60, 5, seed=0)
    graph.remove_edges_from(list(graph.edges(59)))
    pairs = np.array([(i, j) for i in range(60) for j in range(60) if i != j])
    found = CommonNeighbors(np.array(graph.edges), 60).count(pairs)
    assert found.tolist() == [len(set(graph[i]) & set(graph[j])) for i, j in pairs]


def test_a_graph_without_edges_has_none():
    none = np.empty((0, 2), dtype=np.int64)
    assert CommonNeighbors(none, 3).count(none).tolist() == []
    assert CommonNeighbors(none, 3).count(np.array([[0, 1]])).tolist() == [0]


LINKS = np.array([[200.0, 0, 0], [80, 300, 0], [20, 60, 150]])


def ends_of(links):
    return (links + links.T).sum(axis=1)


def test_exact_mixing_of_the_same_totals_stays():
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, 0.0), ends_of(LINKS)), LINKS, rtol=0.01)


def test_mixing_in_another_unit_is_the_same():
    one, other = (fitted_mixing(NoisyMixing(u * LINKS, 5 * u), ends_of(LINKS)) for u in (1, 1024))
    assert np.allclose(one, other)


def test_mixing_that_noise_hides_becomes_chance():
    totals = ends_of(LINKS)
    chance = np.tril(np.outer(totals, totals) / totals.sum())
    chance[np.diag_indices(3)] /= 2
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, 1e6), totals), chance, rtol=0.01)
    assert np.allclose(fitted_mixing(NoisyMixing(LINKS, np.inf), totals), chance, rtol=0.01)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_targets_of_noise_are_links_of_the_totals(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noisy = NoisyMixing(rng.laplace(10, 30, (size, size)) + 60 * np.eye(size), 30.0)
        totals = rng.integers(1, 500, size)
        found = fitted_mixing(noisy, totals)
        assert (found >= 0).all() and (np.triu(found, 1) == 0).all()
        assert np.allclose(ends_of(found), totals, rtol=0.05, atol=1)


def test_the_gap_is_what_each_column_lacks():
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    rows = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    gap = mixing_gap(edges, rows, [NoisyMixing(10 * LINKS[:2, :2], 1.0)] * 2)
    distance = 0.0
    for column, lacking in zip(rows.T, gap.lacking, strict=True):
        counts = count_links(column, edges)
        wanted = fitted_mixing(NoisyMixing(10 * LINKS[:2, :2], 1.0), ends_of(counts))
        assert np.allclose(np.tril(lacking), wanted - counts)
        assert np.allclose(lacking, lacking.T)
        distance += ((wanted - counts) ** 2).sum()
    assert gap.distance == pytest.approx(distance)


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


NUM_NODES = 300


@pytest.fixture(scope="module")
def clustered():
    """Edges of a clustered graph with hubs, and rows of two columns that have nothing to do with it."""
    graph = nx.powerlaw_cluster_graph(NUM_NODES, 5, 0.7, seed=0)
    edges = np.sort(np.array(graph.edges), axis=1)
    return edges, np.random.default_rng(0).integers(0, [3, 2], (NUM_NODES, 2))


def wanted(scale):
    strong = np.array([[300.0, 0, 0], [60, 300, 0], [60, 60, 300]])
    return [NoisyMixing(strong, scale), NoisyMixing(np.array([[300.0, 0], [450, 300]]), scale)]


def triangles(edges):
    return sum(nx.triangles(nx.Graph(edges.tolist())).values()) / 3


@pytest.mark.parametrize("seed", range(3))
def test_degrees_and_simple_edges_stay_and_the_mixing_is_reached(clustered, seed):
    edges, rows = clustered
    found = rewire(edges, rows, wanted(0.0), np.random.default_rng(seed))
    degrees = [np.bincount(part.ravel(), minlength=NUM_NODES).tolist() for part in (edges, found)]
    assert degrees[0] == degrees[1]
    assert (found[:, 0] < found[:, 1]).all() and len(np.unique(found, axis=0)) == len(edges)
    before, after = (mixing_gap(part, rows, wanted(0.0)).distance for part in (edges, found))
    assert after < before / 1000
    assert triangles(found) == pytest.approx(triangles(edges), rel=0.05)


def test_mixing_that_noise_hides_leaves_the_edges(clustered):
    edges, rows = clustered
    assert np.array_equal(rewire(edges, rows, wanted(1e6), np.random.default_rng(1)), edges)


def test_a_graph_without_edges_stays_empty():
    none, rows = np.empty((0, 2), dtype=np.int64), np.zeros((3, 2), dtype=np.int64)
    assert len(rewire(none, rows, wanted(1.0), np.random.default_rng(0))) == 0


STRONG = np.array([[400.0, 50.0], [30.0, 300.0], [200.0, 20.0]])  # 3 values of payers, 2 of payees


@pytest.fixture(scope="module", params=["directed", "bipartite"])
def ordered(request):
    """Arcs with some of their reverses, or edges of two sides, and rows that know nothing of them."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 100, 1000), rng.integers(100, 200, 1000)
    edges = np.stack([first, second], axis=1)
    if request.param == "directed":
        edges = np.concatenate([edges % 120, edges[:200, ::-1] % 120])
        edges = edges[edges[:, 0] != edges[:, 1]]
    return np.unique(edges, axis=0), rng.integers(0, [3, 2], (200, 2))


def test_ends_with_an_order_are_fitted_to_the_totals_of_both_sides():
    exact = NoisyMixing(STRONG, 0.0, (0, 1))
    assert np.allclose(fitted_mixing(exact, STRONG.sum(1), STRONG.sum(0)), STRONG, rtol=0.01)
    hidden = NoisyMixing(STRONG, 1e6, (0, 1))
    chance = np.outer(STRONG.sum(1), STRONG.sum(0)) / STRONG.sum()
    assert np.allclose(fitted_mixing(hidden, STRONG.sum(1), STRONG.sum(0)), chance, rtol=0.01)
    for seed in range(20):  # one column at both ends
        rng = np.random.default_rng(seed)
        noisy = NoisyMixing(rng.laplace(10, 30, (4, 4)) + 60 * np.eye(4), 30.0, (0, 0))
        totals = rng.multinomial(900, np.ones(4) / 4, 2)
        found = fitted_mixing(noisy, *totals)
        assert (found >= 0).all()
        assert np.allclose(found.sum(axis=1), totals[0], rtol=0.1, atol=1)


@pytest.mark.parametrize("scale", [0.0, 1e6])
def test_swaps_keep_first_and_second_ends(ordered, scale):
    edges, rows = ordered
    mixing = [NoisyMixing(STRONG, scale, (0, 1)), NoisyMixing(np.eye(2) * 100 + 200, scale, (1, 1))]
    found = rewire(edges, rows, mixing, np.random.default_rng(0))
    for end in (0, 1):
        assert (np.bincount(found[:, end]) == np.bincount(edges[:, end])).all()
    assert (found[:, 0] != found[:, 1]).all() and len(np.unique(found, axis=0)) == len(edges)
    before, after = (mixing_gap(part, rows, mixing).distance for part in (edges, found))
    assert np.array_equal(found, edges) if scale else after < before / 1000


def test_rows_are_placed_by_the_order_of_ends(ordered):
    edges, rows = ordered
    mixing, groups = [NoisyMixing(STRONG, 0.0, (0, 1))], np.arange(200) // 100
    placed = place_rows(edges, rows, groups, mixing, np.random.default_rng(1))
    for group in (0, 1):
        before, after = (sorted(map(tuple, part[groups == group])) for part in (rows, placed))
        assert before == after
    before, after = (mixing_gap(edges, part, mixing).distance for part in (rows, placed))
    assert after < before / 2
