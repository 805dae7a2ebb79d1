"""Private degrees combine three releases into a sequence and the degree of each node."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace

from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.methods.single_graph import degree_release as private_degrees
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.methods.single_graph.degree_release import (
    degree_entries,
    descending_degrees,
    release_degrees,
    sorting_effect,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import degree_l1_sensitivity, edge_count_sensitivity
from tests.graphs import edges_of

PAIRS = torch.combinations(torch.arange(4))


def planned(epsilon):
    plan = degree_entries(Budget(epsilon, 0.0), count_share=0.1, sequence_share=0.3)
    return {read.key: read for read in plan}


def released(edges, num_nodes, epsilon, seed=None, kind="undirected"):
    method = ChungLu(num_nodes)
    method.take_kind(kind, None)
    if seed is not None:
        method._noise = NoiseSource(unsafe_seed=seed)
    reads = planned(epsilon)
    source = EdgeStatistics(edges, method.space)
    method.num_edges, degrees = release_degrees(method, source, reads)
    return method, degrees


def log_pmf(outputs, value, rate):
    return np.log(np.tanh(rate / 2)) - rate * np.abs(outputs - value)


def test_all_graphs_of_four_nodes_and_their_neighbours():
    """The statistics move within their sensitivities, and all outputs together keep epsilon."""
    epsilon, shares = 0.8, (0.1, 0.3, 0.6)
    sensitivities = (edge_count_sensitivity(), *[degree_l1_sensitivity()] * 2)

    def values(bits):
        edges = PAIRS[torch.tensor(bits, dtype=torch.bool)]
        degrees = torch.bincount(edges.flatten(), minlength=4).numpy()
        return np.array([len(edges)]), -np.sort(-degrees), degrees

    outputs, largest = np.arange(-10, 15), 0.0
    for bits in itertools.product([0, 1], repeat=6):
        for flipped in range(6):
            other = [bit ^ (k == flipped) for k, bit in enumerate(bits)]
            loss = 0.0
            parts = zip(values(bits), values(other), shares, sensitivities, strict=True)
            for first, second, share, sensitivity in parts:
                assert np.abs(first - second).sum() <= sensitivity
                rate = share * epsilon / sensitivity
                # Outputs are independent, so that the largest ratios of all come together.
                ratios = log_pmf(outputs, first[:, None], rate) - log_pmf(
                    outputs, second[:, None], rate
                )
                loss += ratios.max(axis=1).sum()
            largest = max(largest, loss)
    assert largest == pytest.approx(epsilon)


@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 99))
def test_without_noise_all_degrees_are_known(num_nodes, density, seed):
    graph = nx.gnp_random_graph(num_nodes, density, seed=seed)
    method, degrees = released(edges_of(graph), num_nodes, math.inf)
    assert degrees.tolist() == [d for _, d in graph.degree()]
    assert int(method.num_edges) == graph.number_of_edges()


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_the_number_of_edges_has_the_least_error_that_all_releases_allow(kind):
    """Half the sum of each release of degrees is an estimate of it, too."""
    graph = nx.gnm_random_graph(30, 90, seed=0, directed=kind == "directed")
    ends = 30 if kind == "undirected" else 60
    edges = edges_of(graph) if kind == "undirected" else torch.tensor([*graph.edges])
    found = [int(released(edges, 30, 2.0, seed, kind)[0].num_edges) for seed in range(100)]
    scales = {"count": 1 / 0.2, "order": 2 / 0.6, "nodes": 2 / 1.2}
    variances = [2 * scales["count"] ** 2]
    variances += [ends * 2 * scales[name] ** 2 / 4 for name in ("order", "nodes")]
    best = 1 / sum(1 / variance for variance in variances)
    assert np.mean(np.square(np.array(found) - 90)) == pytest.approx(best, rel=0.3)


def test_large_numbers_of_edges_are_exact():
    """Single precision ends at 2^24."""
    outputs = {"num_edges": torch.tensor(2**24 + 1), "degrees": torch.zeros(8000)}
    outputs["ordered_degrees"] = outputs["degrees"]
    method = ChungLu(8000)
    method.pay = lambda read, value: outputs[read.key].long()
    source = EdgeStatistics(torch.empty(0, 2, dtype=torch.long), method.space)
    found, _ = release_degrees(method, source, planned(math.inf))
    assert int(found) == 2**24 + 1


def noisy_degrees(true, scales, seed):
    """Noisy degrees in descending order of the true ones, and in their own."""
    rng = np.random.default_rng(seed)
    ordered, by_node = (
        true + rng.laplace(scale=scale, size=len(true)).round().astype(int) for scale in scales
    )
    return ordered, scales[0], -np.sort(-by_node), scales[1]


def test_order_removes_most_of_the_noise():
    graph = nx.barabasi_albert_graph(2000, 3, seed=0)
    true = np.sort([d for _, d in graph.degree()])[::-1]
    noisy = noisy_degrees(true, (10.0, 5.0), 0)
    found = descending_degrees(*noisy, int(true.sum()), len(true) - 1)
    assert np.abs(found - true).mean() < np.abs(noisy[0] - true).mean() / 5


def test_degrees_of_hubs_come_from_both_releases(monkeypatch):
    """Hubs are far apart, so both estimate their degrees: best weighted by inverse variances."""
    monkeypatch.setattr(private_degrees, "_DITHER", 0.0)
    true = np.r_[np.arange(900, 100, -40), np.full(980, 10)]
    errors = []
    for seed in range(30):
        noisy = noisy_degrees(true, (4.0, 2.0), seed)
        errors.append((descending_degrees(*noisy, int(true.sum()), len(true) - 1) - true)[:20])
    best = 1 / (1 / (2 * 4.0**2) + 1 / (2 * 2.0**2))
    assert np.square(errors).mean() == pytest.approx(best, rel=0.3)


def test_what_sorting_makes_of_noise():
    """Against the mean and variance of the largest of many equal values with Laplace noise."""
    bias, variance = sorting_effect(np.full(1000, 50.0), 8.0)
    quantiles = np.linspace(0.05, 0.95, 19)
    ranks = (1000 * (1 - quantiles)).astype(int)
    assert bias[ranks] == pytest.approx(laplace.ppf(quantiles, scale=8), abs=1.0)
    assert variance[ranks].max() < 4
    # One value alone has the variance of its noise.
    assert sorting_effect(np.array([5000.0, 0.0]), 8.0)[1][0] == pytest.approx(2 * 8**2, rel=0.8)


def test_degrees_have_few_gaps_at_a_small_budget():
    """Descending steps would leave out most of the degrees, and the smallest ones altogether."""
    true = -np.sort(-np.random.default_rng(0).poisson(9, 1000))
    missing = []
    for seed in range(10):
        noisy = noisy_degrees(true, (20.0, 10.0), seed)
        found = descending_degrees(*noisy, int(true.sum()), len(true) - 1)
        missing.append(1 - np.isin(true, found).mean())
    assert np.mean(missing) < 0.01


def test_nodes_are_ranked_by_their_noisy_degrees():
    assert released(edges_of(nx.star_graph(60)), 61, 5.0, seed=0)[1].argmax() == 0


def test_equal_noisy_degrees_are_not_told_apart_by_the_numbers_of_nodes(monkeypatch):
    descending = torch.arange(200, 0, -1)
    outputs = {"num_edges": torch.tensor(9000), "degrees": torch.zeros(200)}
    outputs["ordered_degrees"] = descending
    monkeypatch.setattr(ChungLu, "pay", lambda self, read, value: outputs[read.key])
    _, degrees = released(edges_of(nx.empty_graph(200)), 200, 1.0)
    assert len(degrees.unique()) > 10
    assert abs(np.corrcoef(degrees, descending)[0, 1]) < 0.2  # three standard deviations
