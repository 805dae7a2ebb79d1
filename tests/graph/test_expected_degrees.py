"""Chung-Lu weights give the degrees, and edges are drawn in proportion to them."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph import expected_degrees
from lightning_dpg.graph.expected_degrees import chung_lu_edges, chung_lu_pieces, edge_weights


@given(st.lists(st.sampled_from([0.05, 0.1, 0.3, 0.7]), min_size=5, max_size=30))
def test_weights_are_recovered_from_the_degrees_that_they_give(weights):
    x = np.array(weights)
    links = [[1 - np.exp(-a * b) for b in x] for a in x]
    degrees = np.sum(links, axis=1) - np.diagonal(links)
    found = edge_weights(degrees)
    again = -np.expm1(-np.outer(found, found))
    assert again.sum(axis=1) - again.diagonal() == pytest.approx(degrees, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("few_pairs", [0, 2**20])
def test_pairs_are_drawn_in_proportion_to_weights_without_replacement(few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees = np.array([2, 1, 1, 0])
    x = np.append(edge_weights(degrees[:3]), 0.0)
    rates = {(i, j): x[i] * x[j] for i in range(3) for j in range(i + 1, 3)}
    total = sum(rates.values())
    expected = {}
    for (a, first), (b, second) in itertools.permutations(rates.items(), 2):
        both = frozenset((a, b))
        expected[both] = expected.get(both, 0) + first / total * second / (total - first)
    generator, draws = torch.Generator().manual_seed(0), 1000
    counts = dict.fromkeys(expected, 0)
    for _ in range(draws):
        edges = chung_lu_edges(torch.from_numpy(degrees), 2, generator).tolist()
        counts[frozenset(map(tuple, edges))] += 1
    for graph, chance in expected.items():
        deviation = (draws * chance * (1 - chance)) ** 0.5
        assert abs(counts[graph] - draws * chance) < 4.5 * deviation


@pytest.mark.parametrize("few_pairs", [0, 2**20])
def test_hubs_reach_their_degrees(few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees = torch.tensor([300, 200, 150] + [6] * 195 + [0, 0] + [3] * 300)
    num_edges = int(degrees.sum()) // 2
    found, runs = torch.zeros(len(degrees)), 10
    for seed in range(runs):
        edges = chung_lu_edges(degrees, num_edges, torch.Generator().manual_seed(seed))
        assert len({tuple(edge) for edge in edges.tolist()}) == num_edges
        assert bool((edges[:, 0] < edges[:, 1]).all())
        found += torch.bincount(edges.flatten(), minlength=len(degrees)) / runs
    # Three standard deviations of a Poisson mean
    assert ((found[:3] - degrees[:3]).abs() < 3 * (degrees[:3] / runs) ** 0.5).all()
    assert found[198:200].tolist() == [0, 0]


def test_draws_repeat_for_equal_generators_only():
    degrees = torch.full((3000,), 4)
    first, same, other = (
        chung_lu_edges(degrees, 6000, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert torch.equal(first, same) and not torch.equal(first, other)


@pytest.mark.parametrize(
    ("degrees", "num_edges", "expected"),
    [([0, 0, 0], 0, 0), ([3, 0, 3], 3, 1), ([4] * 5, 10, 10), ([0], 0, 0), ([4, 1, 1, 1, 1], 4, 4)],
)
def test_there_are_as_many_edges_as_fit(degrees, num_edges, expected):
    edges = chung_lu_edges(torch.tensor(degrees), num_edges, torch.Generator().manual_seed(0))
    assert len({tuple(edge) for edge in edges.tolist()}) == len(edges) == expected


def test_a_node_without_a_partner_leads_to_no_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edges = chung_lu_edges(torch.tensor([0, 8, 0]), 4, torch.Generator())
    assert edges.shape == (0, 2)


@pytest.mark.parametrize("draw", ["whole", "pieces"])
def test_a_degree_beyond_all_other_nodes_is_that_of_all_other_nodes(draw):
    # Otherwise nearly all draws would be edges of this node, drawn again and again.
    def drawn(hub):
        degrees, generator = torch.tensor([hub, *[1] * 2_000]), torch.Generator().manual_seed(0)
        if draw == "whole":
            return chung_lu_edges(degrees, 2_000, generator)
        return torch.cat(list(chung_lu_pieces(degrees, 2_000, generator)))

    assert torch.equal(drawn(2_100), drawn(2_000))
