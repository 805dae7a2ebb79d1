"""BTER books its releases, and its graphs have the released clustering."""

import itertools
import math
from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.graph.pair_numbers import pairs_of_keys
from lightning_dpg.methods.single_graph import bter
from lightning_dpg.methods.single_graph.bter import (
    BTER,
    closed_shares,
    degree_classes,
    merged_classes,
)
from lightning_dpg.metrics.functional import local_clustering, triangles
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity
from tests.graphs import edges_of
from tests.training import release_edges


def released(graph, epsilon, seed=None):
    method = BTER(graph.number_of_nodes())
    method.ledger.budget = Budget(epsilon, 0.0)
    if seed is not None:
        method._noise = NoiseSource(unsafe_seed=seed)
    release_edges(method, edges_of(graph))
    return method


def draw(method, seed=0):
    return method.sample_edges(torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbours_of_four_nodes_are_told_apart_by_epsilon_at_most(seed, monkeypatch):
    """Given the same outputs so far, log ratios of the next ones add up to the budget at most."""
    monkeypatch.setattr(bter, "_FITTING_STEPS", 1)
    epsilon, pay = 0.7, BTER.pay
    outputs, reads = [], []

    def recorded(method, read, value):
        reads.append((value, 1 / read.scale))
        return outputs[len(reads) - 1]

    def first(method, read, value):
        outputs.append(pay(method, read, value))
        return outputs[-1]

    def run(edges, paid_by):
        monkeypatch.setattr(BTER, "pay", paid_by)
        reads.clear()
        method = BTER(4)
        method.ledger.budget = Budget(epsilon, 0.0)
        method._noise = NoiseSource(unsafe_seed=seed)
        release_edges(method, edges)
        return list(reads)

    pairs = torch.combinations(torch.arange(4))
    run(pairs[:4], first)
    assert len(outputs) == 5
    graphs = {
        bits: run(pairs[torch.tensor(bits)], recorded)
        for bits in itertools.product([False, True], repeat=6)
    }
    largest = 0.0
    for bits, flipped in itertools.product(graphs, range(6)):
        other = graphs[tuple(bit != (k == flipped) for k, bit in enumerate(bits))]
        # P(k) of integer noise falls by the factor exp(-rate) per unit.
        largest = max(
            largest,
            sum(
                rate * int((a - b).abs().sum())
                for (a, rate), (b, _) in zip(graphs[bits], other, strict=True)
            ),
        )
    assert 0.69 * epsilon < largest <= epsilon * (1 + 1e-9)


def test_edges_between_classes_move_within_their_sensitivity():
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    bits, classes = np.arange(10), np.array([0, 1, 1, 2, 3])
    counts = np.stack(
        [bter.count_links(classes, pairs[(g >> bits) & 1 == 1]).ravel() for g in range(1024)]
    )
    for bit in bits:
        changes = np.abs(counts - counts[np.arange(1024) ^ (1 << bit)]).sum(axis=1)
        assert (changes == edge_partition_sensitivity()).all()


def test_degrees_and_clustering_are_matched_without_noise():
    graph = nx.powerlaw_cluster_graph(600, 5, 0.9, seed=0)
    method = released(graph, math.inf)
    real, sample = from_networkx(graph), method.sample(torch.Generator().manual_seed(0))
    degrees = torch.bincount(sample.edge_index[0], minlength=600)
    assert degrees.tolist() == [d for _, d in graph.degree()]
    clustering = local_clustering(real).mean()
    assert local_clustering(sample).mean() == pytest.approx(clustering, rel=0.2)
    assert triangles(sample) == pytest.approx(triangles(real), rel=0.25)


def test_blocks_leave_the_released_mixing_alone():
    graph = nx.powerlaw_cluster_graph(1000, 15, 0.5, seed=0)
    method = released(graph, 1000.0, seed=0)
    classes = degree_classes(method.degrees.numpy())
    drawn = np.mean([bter.count_links(classes, draw(method, k).numpy()) for k in range(3)], axis=0)
    # Blocks in the order of the degrees alone have 37 % more links within classes.
    assert np.trace(drawn) == pytest.approx(np.trace(method.mixing.numpy()), rel=0.2)


def test_a_drawn_graph_has_the_released_mixing_where_hubs_are_crowded():
    """Chance repeats many links of 80 nodes to each other; 500 others have few, and to each other."""
    rates = [[0.85, 0.3, 0.001], [0.3, 0.05, 0.001], [0.001, 0.001, 0.006]]
    graph = nx.stochastic_block_model([80, 60, 500], rates, seed=0)
    method = released(nx.Graph(graph), math.inf)
    method.densities.zero_()
    drawn = bter.count_links(degree_classes(method.degrees.numpy()), draw(method).numpy())
    assert np.abs(drawn - method.mixing.numpy()).sum() <= 0.005 * method.num_edges


def test_hubs_find_places_for_their_links():
    """Thirty hubs are linked to most of 150 nodes, which are linked to hubs only, and 400 others."""
    rng = np.random.default_rng(0)
    rates = np.zeros((3, 3))
    rates[0, 1] = rates[1, 0] = 0.8
    rates[0, 0], rates[0, 2], rates[2, 0], rates[2, 2] = 0.9, 0.02, 0.02, 0.01
    graph = nx.stochastic_block_model([30, 150, 400], rates, seed=int(rng.integers(100)))
    method = released(nx.Graph(graph), 1000.0, seed=0)
    assert method.kept < 1

    def misplaced(edges):
        assert len(edges) == method.num_edges
        degrees = np.bincount(np.ravel(edges), minlength=580)
        return np.abs(degrees - method.degrees.numpy()).sum() / 2

    lacking = misplaced(draw(method).numpy())
    assert lacking < 0.02 * method.num_edges
    method.kept.fill_(1)
    assert misplaced(pairs_of_keys(method._completed(method._blocks(rng), rng), 580)) > 2 * lacking


def test_noise_makes_no_triangles():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))
    samples = [
        released(graph, 1.0, seed).sample(torch.Generator().manual_seed(0)) for seed in range(5)
    ]
    # As clustered as a geometric graph, this one would have more than two thousand.
    assert np.median([triangles(sample) for sample in samples]) < 30


def test_scores_add_up_to_the_degrees_and_to_the_links_between_classes():
    graph = nx.powerlaw_cluster_graph(120, 2, 0.8, seed=0)
    degrees = np.array([d for _, d in graph.degree()])
    method = released(graph, math.inf)
    score = method.score(torch.cartesian_prod(torch.arange(120), torch.arange(120)))
    score = score.view(120, 120).numpy()
    assert score.sum(axis=1) == pytest.approx(degrees, rel=0.01)
    low, high = (np.flatnonzero(degree_classes(degrees) == k) for k in (2, 4))
    links = sum(graph.has_edge(i, j) for i in low for j in high)
    assert score[np.ix_(low, high)].sum() == pytest.approx(links, rel=0.03)


def test_classes_are_powers_of_two_apart():
    degrees = np.arange(100)
    assert degree_classes(degrees).tolist() == [int(d).bit_length() for d in degrees]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(0, 60))
def test_groups_are_runs_of_classes_that_are_large_enough(sizes, least):
    groups = merged_classes(np.array(sizes, dtype=np.float64), least)
    assert groups[0] == 0 and set(np.diff(groups)) <= {0, 1}
    if groups[-1] > 0:
        assert np.bincount(groups, sizes).min() >= least


def test_closed_shares_near_the_noise_are_shrunk():
    counts = np.array([[1000, 1000, 1000, 5, 0], [500, 20, -30, 500, 0]])
    assert closed_shares(counts, 0.0).tolist() == [0.5, 0.02, 0, 1, 0]
    # Twice the scale is as large as 20, a twenty-fifth of 500; 5 wedges are taken for 100.
    assert closed_shares(counts, 10.0) == pytest.approx([0.5 * (1 - 1 / 625), 0, 0, 1, 0])


def test_three_graphs_fit_the_clustering_of_a_large_release(monkeypatch):
    monkeypatch.setattr(bter, "_LARGE_GRAPH", 1000)
    rng = np.random.default_rng(0)
    weights = (np.arange(6000) + 10.0) ** -0.5
    degrees = rng.permutation(rng.poisson(weights * 120_000 / weights.sum()) + 1)
    degrees[0] += degrees.sum() % 2
    classes = degree_classes(degrees)
    source = BTER(6000)
    source.degrees = torch.from_numpy(degrees)
    at_random = rng.permutation(np.repeat(np.arange(6000), degrees)).reshape(-1, 2)
    source.mixing = torch.from_numpy(bter.count_links(classes, at_random))
    source.densities = torch.full((classes.max() + 1,), 0.7, dtype=torch.double)
    source.spread.fill_(0.5)
    method = BTER(6000)
    method.ledger.budget = Budget(math.inf, 0.0)
    edges = draw(source)
    release_edges(method, edges)
    counts, _ = bter.wedge_counter(degrees, 0.0)
    released, *drawn = (
        counts(EdgeStatistics(each, method.space))
        for each in (edges, *map(partial(draw, method), range(5)))
    )
    shares = np.mean([closed_shares(each, 0.0) for each in drawn], axis=0)
    error = np.abs(shares - closed_shares(released, 0.0)) @ released[0] / released[1].sum()
    assert method.spread > 0
    assert error < 0.06  # three seeds give at most 0.037, and the steps of small releases 0.085


def test_a_large_release_says_how_far_it_is(monkeypatch, caplog):
    monkeypatch.setattr(bter, "_LARGE_GRAPH", 78)
    with caplog.at_level("INFO"):
        released(nx.karate_club_graph(), math.inf)
    assert [each for each in caplog.messages if "to fit blocks" in each] == [
        f"BTER: drawing graph {step} of 3 to fit blocks" for step in range(1, 4)
    ]
