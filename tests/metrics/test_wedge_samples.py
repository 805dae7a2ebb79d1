"""Estimates from wedges are unbiased, know their errors, and begin beyond a stated cost."""

import math

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import functional
from lightning_dpg.metrics.functional import (
    estimate_local_clustering,
    estimate_triangles,
    measure_clustering,
    oriented_adjacency,
)

# A hub, cliques, a tail of degree 1 and nodes without an edge make nodes and wedges unequal.
UNEQUAL = nx.disjoint_union_all(
    [nx.barabasi_albert_graph(120, 3, seed=0), nx.complete_graph(7), nx.star_graph(30)]
)
SEEDS = 400
WEDGES = 500


@pytest.mark.parametrize("figure", ["triangles", "average"])
def test_estimates_are_unbiased_and_know_their_errors(figure):
    graph = from_networkx(UNEQUAL)
    if figure == "triangles":
        exact = sum(nx.triangles(UNEQUAL).values()) / 3
        oriented = oriented_adjacency(graph)
        found = [estimate_triangles(graph, oriented, WEDGES, seed) for seed in range(SEEDS)]
    else:
        exact = nx.average_clustering(UNEQUAL)
        found = [estimate_local_clustering(graph, WEDGES, seed).average for seed in range(SEEDS)]
    values, errors = np.array(found).T
    assert values.mean() == pytest.approx(exact, abs=4 * values.std() / math.sqrt(SEEDS))
    # The spread of 400 values is known to 3.5 %.
    assert errors.mean() == pytest.approx(values.std(), rel=0.12)


def test_wedges_of_a_degree_show_its_clustering():
    # Nodes 0 to 3 are a clique, and 4 has neighbors that are not linked.
    clique = [[i, j] for j in range(4) for i in range(j)]
    graph = make_graph(torch.tensor([*clique, [4, 5], [4, 6]]), 7)
    local = estimate_local_clustering(graph, 2_000)
    assert set(local.nodes) == {0, 1, 2, 3, 4}
    assert local.shares[local.nodes < 4].all() and not local.shares[local.nodes == 4].any()
    assert local.average.value == pytest.approx(4 / 7, abs=4 * local.average.standard_error)


def test_no_closed_wedge_leaves_an_error():
    graph = from_networkx(nx.complete_bipartite_graph(5, 5))
    estimate = estimate_triangles(graph, oriented_adjacency(graph), 1_000)
    assert estimate.value == 0
    assert 0 < estimate.standard_error < 0.1


def test_the_cost_is_the_number_of_oriented_paths():
    degree = dict(UNEQUAL.degree())
    directed = nx.DiGraph(sorted(edge, key=lambda v: (degree[v], v)) for edge in UNEQUAL.edges())
    paths = sum(directed.out_degree(middle) for _, middle in directed.edges())
    oriented = oriented_adjacency(from_networkx(UNEQUAL))
    assert functional.num_oriented_paths(oriented) == paths


def test_figures_agree_across_the_threshold(monkeypatch):
    graph = from_networkx(UNEQUAL)
    paths = functional.num_oriented_paths(oriented_adjacency(graph))
    monkeypatch.setattr(functional, "EXACT_PATHS", paths)
    exact, local = measure_clustering(graph)
    assert exact == (sum(nx.triangles(UNEQUAL).values()) / 3, 0)
    assert local.average == (pytest.approx(nx.average_clustering(UNEQUAL)), 0)
    assert dict(zip(local.nodes.tolist(), local.shares.tolist(), strict=True)) == pytest.approx(
        {node: nx.clustering(UNEQUAL, node) for node, degree in UNEQUAL.degree() if degree > 1}
    )
    values, errors = functional.statistics_and_errors(graph)
    assert errors == {}

    monkeypatch.setattr(functional, "EXACT_PATHS", paths - 1)
    for estimate, known in zip(measure_clustering(graph), (exact, local), strict=True):
        near = getattr(estimate, "average", estimate)
        assert near.standard_error > 0
        number = getattr(known, "average", known).value
        assert near.value == pytest.approx(number, abs=4 * near.standard_error)
    sampled, errors = functional.statistics_and_errors(graph)
    assert set(errors) == {"triangles", "cluster", "transitivity"}
    for name, value in values.items():
        assert sampled[name] == pytest.approx(value, abs=4 * errors.get(name, 0)), name
    again = functional.statistics_and_errors(graph)
    assert again == (sampled, errors)  # the seed is public and fixed
