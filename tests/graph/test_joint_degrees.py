"""Joint degrees are counted by loops, and fitted links lie between counts and chance."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph.edge_statistics import (
    degree_cells,
    fitted_links,
    joint_degrees,
    num_degree_cells,
)
from lightning_dpg.graph.stubs import count_links


def arrays(graph):
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    return edges, np.array([degree for _, degree in graph.degree])


@given(st.integers(0, 40), st.integers(0, 20))
def test_cells_are_all_pairs_of_degrees_in_order(largest_two, largest):
    expected = [
        [a, b] for a in range(1, largest + 1) for b in range(a, largest + 1) if a + b <= largest_two
    ]
    assert degree_cells(largest_two, largest).tolist() == expected
    assert num_degree_cells(largest_two, largest) == len(expected)


@given(st.integers(2, 15), st.integers(0, 60), st.integers(2, 30), st.integers(0, 9))
def test_edges_are_counted_by_the_degrees_of_their_ends(num_nodes, num_edges, largest_two, seed):
    graph = nx.gnm_random_graph(num_nodes, num_edges, seed=seed)
    edges, degrees = arrays(graph)
    expected = Counter(tuple(sorted((degrees[i], degrees[j]))) for i, j in graph.edges)
    cells = degree_cells(largest_two, num_nodes - 1)
    counts = joint_degrees(edges, degrees, largest_two)
    assert dict(zip(map(tuple, cells.tolist()), counts.tolist(), strict=True)) == {
        (a, b): expected[a, b] for a, b in cells.tolist()
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_without_noise_links_are_the_counts_and_with_much_of_it_chance(seed):
    edges, degrees = arrays(nx.barabasi_albert_graph(60, 3, seed=seed))
    largest_two = int(np.sort(degrees)[-2:].sum())
    cells = degree_cells(largest_two, 59)
    counts = joint_degrees(edges, degrees, largest_two)
    values, classes = np.unique(degrees, return_inverse=True)
    links = fitted_links(counts, cells, np.zeros(len(cells)), degrees)
    assert links == pytest.approx(count_links(classes, edges))

    drowned = fitted_links(counts, cells, np.full(len(cells), 1e4), degrees)
    sizes = np.bincount(classes)
    first, last = values[0], values[-1]
    chance = first * sizes[0] * last * sizes[-1] / degrees.sum()
    assert drowned[-1, 0] == pytest.approx(chance)
    common = sizes.argmax()
    within = (values[common] * sizes[common]) ** 2 / degrees.sum() / 2
    assert drowned[common, common] == pytest.approx(within)
    assert drowned[-1, -1] == sizes[-1] * (sizes[-1] - 1) / 2 == 0  # there is but one largest


def test_counts_of_other_degrees_belong_to_the_nearest():
    degrees = np.array([1, 1, 1, 1, 6, 6, 6, 6])
    cells = degree_cells(14, 7)
    counts = np.where((cells == [2, 5]).all(axis=1), 4, 0) + np.where(
        (cells == 7).all(axis=1), 3, 0
    )
    links = fitted_links(counts, cells, np.zeros(len(cells)), degrees)
    assert links.tolist() == [[0, 0], [4, 3]]


def test_what_many_degrees_have_in_common_stands_out_before_each_one_does():
    rng = np.random.default_rng(0)
    degrees = np.repeat(np.arange(16, 32), 40)  # one power of two
    degrees = np.concatenate([degrees, np.ones(degrees.sum() // 2, dtype=np.int64)])
    cells = degree_cells(62, 31)
    # Hubs link to hubs alone; chance would give them a third of that.
    hubs = (cells >= 16).all(axis=1)
    exact = np.where(hubs, degrees[degrees > 1].sum() / 2 / hubs.sum(), 0)
    noise_scale = exact.max() / 5
    noisy = np.rint(exact + rng.laplace(0, noise_scale, len(cells))).astype(np.int64)
    links = fitted_links(noisy, cells, np.full(len(cells), noise_scale), degrees)
    assert links[1:, 1:].sum() > 0.8 * exact.sum()
