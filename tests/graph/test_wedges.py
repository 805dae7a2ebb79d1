"""Wedge counts change by at most their sensitivity, over all graphs of five nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import edge_statistics, wedges
from lightning_dpg.graph.edge_statistics import NumberedEdges
from lightning_dpg.graph.pair_numbers import pair_keys
from lightning_dpg.graph.wedges import (
    WedgeHash,
    count_label_wedges,
    count_wedges,
    wedge_slots,
)
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    label_wedge_sensitivity,
    wedge_sensitivity,
)


def edges_of(graph):
    edges = sorted(tuple(sorted(edge)) for edge in graph.edges)
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


@pytest.fixture
def one_hash(monkeypatch):
    """The public hash of some slots is drawn once for all graphs."""
    known = {}

    def drawn(slots, seed):
        key = tuple(slots.tolist()), seed
        if key not in known:
            known[key] = WedgeHash(slots, seed)
        return known[key]

    monkeypatch.setattr(wedges, "WedgeHash", drawn)


def largest_change(num_nodes, count):
    """Largest L1 change of counts over all graphs and all flips of an edge."""
    pairs = np.array(list(itertools.combinations(range(num_nodes), 2)))
    bits = np.arange(len(pairs))
    counts = np.stack([count(pairs[(g >> bits) & 1 == 1]).ravel() for g in range(2 ** len(pairs))])
    graphs = np.arange(len(counts))
    return max(np.abs(counts - counts[graphs ^ (1 << bit)]).sum(axis=1).max() for bit in bits)


@pytest.mark.usefixtures("one_hash")
@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize(("slots", "seed"), [([1] * 5, 0), ([2] * 5, 1), ([1, 3, 2, 0, 1], 2)])
def test_sensitivity_over_all_graphs_of_five_nodes(slots, cap, seed):
    change = largest_change(
        5, lambda edges: count_wedges(edges, np.array(slots), np.arange(5), cap, seed)
    )
    assert 3 <= change <= wedge_sensitivity(cap)


@pytest.mark.usefixtures("one_hash")
@pytest.mark.parametrize(
    ("labels", "slots", "seed", "attained"),
    [
        ([0, 1, 0, 1, 0], [1] * 5, 3, 4),
        ([0, 1, 0, 1, 1], [2] * 5, 1, 2),
        ([0, 0, 1, 1, 2], [1, 3, 2, 0, 1], 2, 2),
        ([0, 1, 1, 0, 0, 1], [1] * 6, 0, 4),
    ],
)
def test_sensitivity_of_label_wedges_over_all_graphs(labels, slots, seed, attained):
    labels, slots = np.array(labels), np.array(slots)
    change = largest_change(
        len(labels), lambda edges: count_label_wedges(edges, slots, labels, seed)
    )
    assert attained <= change <= label_wedge_sensitivity()


@pytest.mark.parametrize("seed", range(3))
def test_label_wedges_are_the_chosen_wedges_by_the_labels_of_their_ends(seed, monkeypatch):
    graph = nx.gnp_random_graph(40, 0.3, seed=seed)
    edges, labels = edges_of(graph), np.random.default_rng(seed).integers(0, 3, 40)
    slots = wedge_slots(np.bincount(edges.ravel(), minlength=40))
    hashing, ends = WedgeHash(slots, seed), {}
    for center in graph:
        others = np.array(sorted(graph[center]))
        arms = np.stack([np.full(len(others), center), others], axis=1)
        bins, codes = next(hashing.arms(arms))
        for place in np.argsort(codes):
            ends.setdefault(bins[place], others[place])
    pairs = [(ends[b], ends[b + 1]) for b in ends if b % 2 == 0 and b + 1 in ends]
    equal = sum(labels[i] == labels[j] for i, j in pairs)
    found = count_label_wedges(edges, slots, labels, seed)
    assert found.tolist() == [equal, len(pairs) - equal] and equal > 20
    assert found.sum() == count_wedges(edges, slots, labels, 1, seed)[0].sum()
    monkeypatch.setattr(wedges, "BLOCK", 50)  # in many blocks
    assert count_label_wedges(edges, slots, labels, seed).tolist() == found.tolist()


def test_slots_are_one_for_four_neighbors():
    assert wedge_slots(np.array([0, 1, 2, 3, 4, 5, 8, 9])).tolist() == [0, 0, 1, 1, 1, 2, 2, 3]


def test_sensitivity_over_random_graphs_with_many_closures():
    rng = np.random.default_rng(0)
    largest = 0
    for seed in range(60):
        num_nodes = 9
        graph = nx.gnp_random_graph(num_nodes, rng.uniform(0.4, 1.0), seed=seed)
        slots = rng.integers(1, 4, num_nodes)
        before = count_wedges(edges_of(graph), slots, np.arange(num_nodes), 1, seed)
        for pair in itertools.combinations(range(num_nodes), 2):
            other = graph.copy()
            other.remove_edge(*pair) if graph.has_edge(*pair) else other.add_edge(*pair)
            after = count_wedges(edges_of(other), slots, np.arange(num_nodes), 1, seed)
            largest = max(largest, np.abs(before - after).sum())
    assert 5 <= largest <= wedge_sensitivity(1)  # a bound of 4 would be wrong


def test_wedges_are_random_pairs_of_neighbors():
    graph = nx.powerlaw_cluster_graph(60, 4, 0.7, seed=0)
    edges, nodes = edges_of(graph), np.arange(60)
    degrees = np.array([d for _, d in graph.degree()])
    slots = -(-degrees // 4)
    total = sum(count_wedges(edges, slots, nodes, 60, seed) for seed in range(600))
    local = np.array([nx.clustering(graph, v) for v in graph])
    deviation = np.sqrt(local * (1 - local) / total[0])
    assert (np.abs(total[1] / total[0] - local) < 4.5 * deviation + 1e-9).all()
    # A bin of b balls stays empty with probability (1 - 1/b)^d: inclusion and exclusion of two.
    bins = 2 * slots
    both = 1 - 2 * (1 - 1 / bins) ** degrees + (1 - 2 / bins) ** degrees
    assert total[0] / 600 == pytest.approx(slots * both, rel=0.1)


def test_each_link_counts_for_few_closures():
    graph = nx.complete_graph(30)
    slots, one = np.full(30, 7), np.zeros(30, dtype=np.int64)
    wedges, all_closed = count_wedges(edges_of(graph), slots, one, 1000, 0)[:, 0]
    assert wedges == all_closed > 150
    closures = [count_wedges(edges_of(graph), slots, one, cap, 0)[1, 0] for cap in range(4)]
    # Every link less counts for up to one closure more.
    gains = np.diff(closures)
    assert closures[0] == 0 and (gains[:-1] >= gains[1:]).all() and gains.min() >= 0
    assert closures[1] < all_closed


@pytest.mark.parametrize("graph", [nx.star_graph(9), nx.cycle_graph(10), nx.empty_graph(10)])
def test_no_triangles_no_closures(graph):
    counts = count_wedges(edges_of(graph), np.full(10, 2), np.arange(10), 2, 0)
    assert counts.shape == (2, 10)
    assert counts[1].sum() == 0


def test_nodes_without_slots_have_no_wedges():
    counts = count_wedges(
        edges_of(nx.complete_graph(6)), np.array([0, 0, 0, 4, 4, 4]), np.arange(6), 9, 0
    )
    assert counts[0, :3].sum() == 0 < counts[0, 3:].sum()


@given(st.integers(0, 2**32 - 1))
def test_wedges_are_those_of_the_first_neighbors_in_the_bins_of_a_slot(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(12, rng.uniform(0.2, 0.9), seed=seed)
    slots = rng.integers(0, 4, 12)
    hashing = WedgeHash(slots, seed)
    expected = np.zeros((2, 12), dtype=np.int64)
    for center in range(12):
        first = {}
        for other in graph[center] if slots[center] else ():
            place, code = (int(part[0]) for part in next(hashing.arms(np.array([[center, other]]))))
            assert code % 2**32 == other
            first[place] = min(first.get(place, (code, other)), (code, other))
        ends = [(node, first[place + 1][1]) for place, (_, node) in first.items()
                if place % 2 == 0 and place + 1 in first]  # fmt: skip
        expected[:, center] = len(ends), sum(graph.has_edge(*pair) for pair in ends)
    found = count_wedges(edges_of(graph), slots, np.arange(12), 1000, seed)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("size", [1, 7, 60])
def test_blocks_of_edges_give_equal_counts(size, monkeypatch):
    edges = edges_of(nx.powerlaw_cluster_graph(60, 4, 0.7, seed=0))
    given = np.arange(60) % 4, np.arange(60) % 3, 1, 0
    whole = count_wedges(edges, *given)
    for name in ("BLOCK", "_PART"):
        monkeypatch.setattr(wedges, name, size)
    assert whole[1].sum() > 0
    assert count_wedges(edges, *given).tolist() == whole.tolist()


def test_edges_as_numbers_give_equal_counts(monkeypatch):
    edges = edges_of(nx.powerlaw_cluster_graph(60, 4, 0.7, seed=0))
    given = np.arange(60) % 4, np.arange(60) % 3, 1, 0
    monkeypatch.setattr(edge_statistics, "BLOCK", 7)
    numbered = NumberedEdges(pair_keys(edges[::-1], 60), 60)
    assert numbered.degrees().tolist() == np.bincount(edges.ravel(), minlength=60).tolist()
    assert numbered.wedges(*given).tolist() == count_wedges(edges, *given).tolist()
