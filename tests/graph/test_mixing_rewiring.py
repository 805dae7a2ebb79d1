"""Rewiring keeps degrees, simple edges and triangles, and reaches wanted mixing."""

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.graph.mixing import NoisyMixing, mixing_gap, rewire

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


def test_the_generator_decides(clustered):
    edges, rows = clustered
    one, same, other = (
        rewire(edges, rows, wanted(1.0), np.random.default_rng(seed)) for seed in (2, 2, 3)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_graph_without_edges_stays_empty():
    none, rows = np.empty((0, 2), dtype=np.int64), np.zeros((3, 2), dtype=np.int64)
    assert len(rewire(none, rows, wanted(1.0), np.random.default_rng(0))) == 0
