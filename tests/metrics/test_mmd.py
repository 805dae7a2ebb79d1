"""Discrepancies of sets of graphs equal loops over pairs with networkx."""

import math

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics import set_queries
from lightning_dpg.metrics.set_queries import DESCRIPTORS, orbit_means, squared_mmd

# Bipartite, with lonely nodes, dense, and of several components
GRAPHS = [
    nx.path_graph(6),
    nx.star_graph(7),
    nx.gnm_random_graph(20, 12, seed=0),
    nx.complete_graph(5),
    nx.karate_club_graph(),
]
OTHERS = [nx.gnp_random_graph(15, 0.2, seed=seed) for seed in range(3)]


def described(name, graph):
    """Vector of a graph as GRAN computes it, with networkx."""
    if name == "degree":
        counts = np.array(nx.degree_histogram(graph))
    elif name == "clustering":
        values = list(nx.clustering(graph).values())
        counts = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    elif name == "spectrum":
        # Rounded, as networkx' eigenvalues of 2 may lie beyond the last bin
        matrix = nx.normalized_laplacian_matrix(graph, weight=None).toarray()
        counts = np.histogram(np.linalg.eigvalsh(matrix).round(9), bins=200, range=(-1e-5, 2))[0]
    else:
        return orbit_means(from_networkx(graph))
    return counts / counts.sum()


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_equals_loops_over_pairs(name):
    bandwidth = {"degree": 1, "clustering": 1 / 10, "orbit": 30, "spectrum": 1}[name]

    def mean_kernel(first, second):
        total = 0.0
        for a in first:
            for b in second:
                x, y = described(name, a), described(name, b)
                size = max(len(x), len(y))
                x, y = np.pad(x, (0, size - len(x))), np.pad(y, (0, size - len(y)))
                total += math.exp(-((np.abs(x - y).sum() / 2) ** 2) / (2 * bandwidth**2))
        return total / len(first) / len(second)

    expected = (
        mean_kernel(GRAPHS, GRAPHS) + mean_kernel(OTHERS, OTHERS) - 2 * mean_kernel(GRAPHS, OTHERS)
    )
    describe = DESCRIPTORS[name].describe
    real, synthetic = ([describe(from_networkx(g)) for g in set_] for set_ in (GRAPHS, OTHERS))
    found = squared_mmd(real, synthetic, DESCRIPTORS[name].bandwidth)
    assert found == pytest.approx(expected)
    assert expected > 0.01


def test_refuses_an_empty_set():
    with pytest.raises(ValueError, match="got 1 and 0"):
        squared_mmd([np.ones(2)], [], 1.0)


def test_refuses_the_spectrum_of_a_large_graph(monkeypatch):
    monkeypatch.setattr(set_queries, "MAX_SPECTRUM_NODES", 5)
    with pytest.raises(ValueError, match="6 nodes, more than the 5"):
        set_queries.spectrum_histogram(from_networkx(nx.path_graph(6)))
