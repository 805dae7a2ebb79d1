"""Gromov-Wasserstein discrepancies equal POT's, in any number of processes."""

import itertools

import networkx as nx
import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.papers.jin2022 import gromov
from lightning_dpg.papers.jin2022.gromov import (
    Space,
    discrepancy_kernels,
    gromov_discrepancy,
    gromov_kmeans,
    pairwise_discrepancies,
    path_distances,
    row_distances,
)


def edges_of(graph):
    return np.array(sorted(tuple(sorted(edge)) for edge in graph.edges)).reshape(-1, 2)


def paths(graph):
    return Space(path_distances(edges_of(graph), len(graph)))


def cloud(seed, size, width=3):
    return np.random.default_rng(seed).normal(size=(size, width))


def pot(first, second, alpha=0.5):
    arguments = (first.distances, second.distances, None, None)
    if first.features is None:
        return ot.gromov.gromov_wasserstein2(*arguments)
    return ot.gromov.fused_gromov_wasserstein2(
        ot.dist(first.features, second.features), *arguments, alpha=alpha
    )


sizes = st.integers(1, 14)


@settings(max_examples=40)
@given(
    sizes, sizes, st.integers(0, 10_000), st.sampled_from(["euclidean", "cosine", "correlation"])
)
def test_discrepancy_of_embeddings_is_that_of_pot(n, m, seed, metric):
    first, second = (
        Space(row_distances(cloud(seed + k, size, 5), metric)) for k, size in enumerate((n, m))
    )
    assert gromov_discrepancy(first, second) == pytest.approx(pot(first, second), abs=1e-8)


@settings(max_examples=40)
@given(sizes, sizes, st.integers(0, 10_000))
def test_discrepancy_of_shortest_paths_is_that_of_pot_where_ties_decide(n, m, seed):
    first, second = (paths(nx.gnp_random_graph(size, 0.3, seed=seed + size)) for size in (n, m))
    assert gromov_discrepancy(first, second) == pytest.approx(pot(first, second), abs=1e-8)


@settings(max_examples=30)
@given(sizes, sizes, st.integers(0, 10_000), st.floats(0.1, 1.0))
def test_fused_discrepancy_is_that_of_pot(n, m, seed, alpha):
    first, second = (
        Space(paths(nx.gnp_random_graph(size, 0.3, seed=seed)).distances, cloud(seed, size))
        for size in (n, m)
    )
    found = gromov_discrepancy(first, second, alpha=alpha)
    assert found == pytest.approx(pot(first, second, alpha), abs=1e-8)


@pytest.mark.parametrize("fused", [False, True])
def test_large_discrepancy_without_ties_is_that_of_pot(fused):
    squares = (np.abs(cloud(seed, size, size)) for seed, size in enumerate((68, 54)))
    first, second = (Space(x + x.T, x[:, :3] if fused else None) for x in squares)
    assert len(first.distances) * len(second.distances) > gromov._LARGE
    assert gromov_discrepancy(first, second) == pytest.approx(pot(first, second), abs=1e-8)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_row_distances(metric):
    rows = cloud(0, 6, 4)

    def by_hand(x, y):
        if metric == "euclidean":
            return np.sqrt(((x - y) ** 2).sum())
        if metric == "correlation":
            return 1 - np.corrcoef(x, y)[0, 1]
        return 1 - x @ y / np.sqrt(x @ x * (y @ y))

    expected = [[by_hand(x, y) if x is not y else 0 for y in rows] for x in rows]
    np.testing.assert_allclose(row_distances(rows, metric), expected, atol=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_rows_without_direction_are_at_a_right_angle(metric):
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    assert row_distances(rows, metric).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_path_distances_are_those_of_networkx():
    graph = nx.gnp_random_graph(12, 0.15, seed=3)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[i].get(j, 12) for j in range(12)] for i in range(12)]
    assert path_distances(edges_of(graph), 12).tolist() == expected
    assert path_distances(np.empty((0, 2), dtype=np.int64), 2).tolist() == [[0, 2], [2, 0]]


@pytest.fixture
def spaces():
    return [paths(nx.gnp_random_graph(size, 0.4, seed=size)) for size in (3, 5, 7, 4, 6)]


@pytest.mark.parametrize("block", [2, 200])
def test_all_pairs_are_each_pair(spaces, monkeypatch, block):
    monkeypatch.setattr(gromov, "_BLOCK", block)  # parts of the pairs are put together
    matrix = pairwise_discrepancies(spaces)
    assert np.array_equal(matrix, matrix.T)
    assert not matrix.diagonal().any()
    for i, j in itertools.combinations(range(5), 2):
        assert matrix[i, j] == pytest.approx(pot(spaces[i], spaces[j]), abs=1e-8)


@pytest.mark.slow  # two processes start
def test_processes_find_what_one_finds(spaces):
    shared = pairwise_discrepancies(spaces, workers=2)
    np.testing.assert_allclose(shared, pairwise_discrepancies(spaces), rtol=1e-12, atol=1e-14)


def test_kernels_fall_with_the_discrepancy(spaces):
    matrix = pairwise_discrepancies(spaces)
    kernels = discrepancy_kernels(matrix)
    for kernel in kernels:
        assert (kernel.diagonal() == 1).all()
        assert (np.diff(kernel.ravel()[np.argsort(matrix, axis=None)]) <= 0).all()
    # Scales of the distances do not matter.
    np.testing.assert_allclose(discrepancy_kernels(7 * matrix), kernels)
    assert discrepancy_kernels(np.zeros((2, 2)))[0].tolist() == [[1, 1], [1, 1]]


def test_bad_spaces():
    symmetric, features = np.zeros((2, 2)), np.zeros((2, 1))
    with pytest.raises(ValueError, match="graph 1: its distances are not symmetric"):
        pairwise_discrepancies([Space(symmetric), Space(np.array([[0.0, 1.0], [2.0, 0.0]]))])
    with pytest.raises(ValueError, match="some graphs have features"):
        pairwise_discrepancies([Space(symmetric), Space(symmetric, features)])
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        pairwise_discrepancies([Space(np.zeros((2, 3)))])


def test_kmeans_finds_two_kinds_of_graphs():
    kinds = [nx.path_graph(k) for k in (7, 8, 9)] + [nx.star_graph(k) for k in (6, 7, 8)]
    graphs = [paths(graph) for graph in kinds]
    found = gromov_kmeans(graphs, pairwise_discrepancies(graphs), 2)
    assert len({*found.labels[:3]}) == len({*found.labels[3:]}) == 1
    assert found.labels[0] != found.labels[3]
    assert sorted(len(center) for center in found.centers) == [8, 8]
    assert found.spread < gromov_kmeans(graphs, pairwise_discrepancies(graphs), 1).spread
    with pytest.raises(ValueError, match="between 1 and 6"):
        gromov_kmeans(graphs, pairwise_discrepancies(graphs), 7)
    same = gromov_kmeans([graphs[0]] * 3, np.zeros((3, 3)), 2)  # none is far from any other
    assert len({*same.labels}) == 1
