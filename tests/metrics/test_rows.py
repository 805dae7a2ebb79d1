"""Figures of rows on nodes equal those of networkx, sklearn, or of counting."""

import math

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.metrics.rows import (
    categorical_assortativity,
    degree_by_category,
    mixing_shares,
    pair_association,
    prediction_score,
    total_variation,
)


@pytest.fixture(scope="module")
def drawn():
    """A graph of networkx with a column, its edges and the column."""
    graph = nx.planted_partition_graph(3, 20, 0.4, 0.05, seed=0)
    graph.add_node(60, block=0)
    values = np.array([graph.nodes[node]["block"] for node in range(61)])
    nx.set_node_attributes(graph, dict(enumerate(values.tolist())), "value")
    return graph, np.array(graph.edges), values


def test_assortativity_and_mixing_equal_networkx(drawn):
    graph, edges, values = drawn
    expected = nx.attribute_assortativity_coefficient(graph, "value")
    assert categorical_assortativity(edges, values) == pytest.approx(expected)
    mixing = nx.attribute_mixing_matrix(graph, "value", mapping={0: 0, 1: 1, 2: 2, 3: 3})
    assert np.allclose(mixing_shares(edges, values, 4), mixing)


def test_figures_without_edges_or_with_one_category_are_undefined():
    zeros = np.zeros(3, dtype=np.int64)
    assert math.isnan(categorical_assortativity(np.array([[0, 1]]), zeros))
    assert np.isnan(pair_association(np.stack([zeros, np.arange(3)], axis=1))).all()
    none = np.zeros((0, 2), dtype=np.int64)  # as of a graph that was drawn without edges
    assert np.isnan(pair_association(none)).all()
    assert math.isnan(total_variation(none, np.array([[0, 1]]), [2, 2], 2))


def test_association_equals_the_root_of_chi_square():
    rows = np.random.default_rng(0).integers(0, [2, 3], (200, 2))
    rows[:100, 1] = rows[:100, 0]
    counts = np.array([[np.sum((rows == (a, b)).all(axis=1)) for b in range(3)] for a in range(2)])
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 200
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert pair_association(rows)[0, 1] == pytest.approx(math.sqrt(chi_square / 200))


def test_total_variation_is_half_of_the_differences():
    first = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    second = np.array([[0, 0], [1, 0]])
    # Columns: (1/2, 1/2) twice; (1/4, 3/4) against (1, 0). Pairs: 1/4 1/4 0 1/2 against 1/2 0 1/2 0.
    assert total_variation(first, second, [2, 2], 1) == pytest.approx((0 + 0.75) / 2)
    assert total_variation(first, second, [2, 2], 2) == pytest.approx(0.75)


def test_degrees_are_means_over_nodes():
    edges, values = np.array([[0, 1], [0, 2], [1, 2], [2, 3]]), np.array([0, 0, 1, 1, 1])
    expected = [2.0, 4 / 3, math.nan]
    assert degree_by_category(edges, values, 3) == pytest.approx(expected, nan_ok=True)


def test_neighbors_predict_a_planted_column(drawn):
    _, edges, values = drawn
    other = nx.planted_partition_graph(3, 20, 0.4, 0.05, seed=1)
    blocks = np.array([other.nodes[node]["block"] for node in range(60)])
    real, synthetic = (edges, values[:, None]), (np.array(other.edges), blocks[:, None])
    assert prediction_score(synthetic, real, [4], 0) > 0.9
    chance = np.random.default_rng(1).permutation(blocks)[:, None]
    assert prediction_score((np.array(other.edges), chance), real, [4], 0) < 0.6
    two, halves = (values // 2)[:, None], (blocks // 2)[:, None]
    assert prediction_score((np.array(other.edges), halves), (edges, two), [2], 0) > 0.95
    assert prediction_score((np.array(other.edges), 0 * halves), (edges, two), [2], 0) == 0.5
