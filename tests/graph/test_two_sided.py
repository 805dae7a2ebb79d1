"""Edges of directed and bipartite graphs with given degrees of both ends."""

import warnings

import numpy as np
import pytest
import torch

from lightning_dpg.graph import expected_degrees
from lightning_dpg.graph.expected_degrees import two_sided_edges, two_sided_weights
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs

SPACES = [DirectedPairs(60), BipartitePairs(80, 50)]


def heavy_degrees(space, seed=0):
    """Degrees of a graph whose nodes have very different numbers of edges on both sides."""
    rng = np.random.default_rng(seed)
    shares = [rng.pareto(1.5, part.stop - part.start) + 0.2 for part in space.parts]
    rates = np.concatenate([share / share.sum() for share in shares])
    pairs = space.pairs(torch.arange(space.num_pairs))
    chance = torch.from_numpy(rates)[space.ends(pairs)].prod(dim=1).numpy()
    edges = pairs[torch.from_numpy(rng.random(len(pairs)) < 1 - np.exp(-300 * chance))]
    return space.degrees(edges), len(edges)


@pytest.mark.parametrize("few_pairs", [2**20, 0], ids=["all pairs", "end by end"])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.kind)
def test_edges_differ_and_have_the_degrees_on_average(space, few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    degrees, num_edges = heavy_degrees(space)
    runs, total = 100, torch.zeros(space.num_ends)
    for seed in range(runs):
        generator = torch.Generator().manual_seed(seed)
        edges = two_sided_edges(space, degrees, num_edges, generator)
        assert len(edges) == num_edges
        assert torch.equal(space.pairs(space.numbers(edges)), edges)
        assert len(torch.unique(edges, dim=0)) == num_edges
        total += space.degrees(edges)
    # Ends that are drawn one by one leave loops out afterwards, which costs a hub up to an edge.
    most = 0.15 * degrees + 4 * (degrees / runs).sqrt() + 0.15 + (few_pairs == 0)
    assert ((total / runs - degrees).abs() < most).all()


@pytest.mark.parametrize("omit_loops", [False, True])
def test_weights_solve_their_equations(omit_loops):
    degrees, _ = heavy_degrees(SPACES[0])
    first, second = degrees[:60].numpy(), degrees[60:].numpy()
    x, y = two_sided_weights(first, second, omit_loops=omit_loops)
    linked = 1 - np.exp(-np.outer(x, y))
    if omit_loops:
        linked -= np.diag(np.diag(linked))
    np.testing.assert_allclose(linked.sum(axis=1), first, atol=0.02, rtol=0.02)
    np.testing.assert_allclose(linked.sum(axis=0), second, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("few_pairs", [2**20, 0])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.kind)
def test_a_complete_graph_ends_and_is_complete(space, few_pairs, monkeypatch):
    monkeypatch.setattr(expected_degrees, "FEW_PAIRS", few_pairs)
    everything = space.pairs(torch.arange(space.num_pairs))
    degrees, generator = space.degrees(everything), torch.Generator().manual_seed(0)
    edges = two_sided_edges(space, degrees, space.num_pairs, generator)
    assert len(torch.unique(edges, dim=0)) == space.num_pairs


def test_nodes_without_a_partner_lead_to_no_overflow():
    space = DirectedPairs(3)
    degrees = torch.tensor([5, 0, 0, 5, 0, 0])  # one node would have to link itself
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert two_sided_edges(space, degrees, 5, torch.Generator()).shape == (0, 2)


@pytest.mark.parametrize("space", [DirectedPairs(3), DirectedPairs(1100)], ids=["few", "many"])
def test_no_edge_is_drawn_where_all_degrees_are_0(space):
    degrees = torch.zeros(space.num_ends, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert two_sided_edges(space, degrees, 0, torch.Generator()).shape == (0, 2)
