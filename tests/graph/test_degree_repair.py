"""Drawn edges get wanted degrees, of each kind of graph, and stay simple."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph.degrees import degrees_by_classes, graphical, is_graphical, with_degrees
from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.pair_space import pair_space

SPACES = {
    "undirected": pair_space("undirected", 300),
    "directed": pair_space("directed", 300),
    "bipartite": pair_space("bipartite", 300, 280),
}


def drawn(space, seed=0):
    """Degrees of a random graph, and edges with these as expected degrees."""
    source = torch.Generator().manual_seed(seed)
    wanted = space.degrees(space.draw(torch.empty(0, 2, dtype=torch.long), 700, source))
    return wanted.numpy(), edges_by_degrees(space, wanted, 700, source).numpy()


@pytest.mark.parametrize("kind", SPACES)
def test_degrees_become_the_wanted_ones(kind):
    space = SPACES[kind]
    wanted, edges = drawn(space)
    found = with_degrees(edges, wanted, space, np.random.default_rng(0))
    before, after = (space.degrees(torch.from_numpy(each)).numpy() for each in (edges, found))
    assert np.abs(before - wanted).sum() > 200
    assert np.abs(after - wanted).sum() <= 10
    pairs = torch.from_numpy(found)
    assert len(torch.unique(space.numbers(pairs))) == len(edges)  # no loop, and none twice
    assert (space.pairs(space.numbers(pairs)) == pairs).all()


def test_degrees_that_cannot_be_are_neared():
    space = pair_space("undirected", 4)
    edges = np.array([(0, 1), (2, 3)])
    found = with_degrees(edges, np.array([9, 9, 0, 0]), space, np.random.default_rng(0))
    assert found.shape == (2, 2) and len(np.unique(found, axis=0)) == 2


def test_released_numbers_of_nodes_change_degrees_that_noise_has_spread():
    rng = np.random.default_rng(0)
    real = rng.choice([1, 2, 3, 5], 4000, p=[0.6, 0.2, 0.1, 0.1])
    spread = np.maximum(real + np.round(rng.laplace(0, 2, 4000)), 0).astype(int)
    spread[:3] = 500
    noisy = np.bincount(np.frexp(real)[1], minlength=13) + rng.laplace(0, 50, 13)
    found = degrees_by_classes(spread, noisy, 2 * 50.0**2, rng)
    counts = np.bincount(np.frexp(found)[1], minlength=4)
    assert np.abs(counts[:3] - noisy[:3]).max() < 150
    assert (found[:3] >= 256).all()  # too few to be seen in the noise, and kept
    means = [np.frexp(found[spread == degree])[1].mean() for degree in range(6)]
    assert means == sorted(means)  # nodes keep their order
    same = degrees_by_classes(spread, rng.laplace(0, 1e4, 13), 2e8, rng)
    assert (same == spread).all()
    assert degrees_by_classes(spread[:0], noisy, 1.0, rng).shape == (0,)


@given(st.lists(st.integers(0, 11), min_size=1, max_size=12))
def test_degrees_become_those_of_a_simple_graph_with_the_same_sum(values):
    """Against networkx."""
    values = np.minimum(values, len(values) - 1)
    degrees = -np.sort(-values)
    possible = nx.is_graphical(degrees.tolist())
    assert is_graphical(degrees) == possible
    if degrees.sum() % 2:
        return
    found = graphical(degrees)
    assert nx.is_graphical(found.tolist()) and found.sum() == degrees.sum()
    assert (np.diff(found) <= 0).all()
    assert not possible or found.tolist() == degrees.tolist()


def test_hubs_are_cut_as_little_as_possible():
    found = graphical(np.array([9, 9, 1, 1, 0, 0, 0, 0, 0, 0]))
    assert found.tolist() == [5, 5, 2, 2, 1, 1, 1, 1, 1, 1]
