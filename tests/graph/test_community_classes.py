"""Links of cells of community and class have the released numbers, and an edge moves one count."""

import itertools

import numpy as np
import pytest

from lightning_dpg.graph.communities import (
    block_mixing,
    cell_mixing,
    class_ratios,
    count_class_links,
)
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity


def graph(seed):
    """Three communities whose hubs are linked to hubs of their own, and whose leaves to others."""
    rng = np.random.default_rng(seed)
    communities, hub = np.repeat([0, 1, 2], [60, 50, 40]), rng.random(150) < 0.3
    pairs = np.stack(np.triu_indices(150, 1), axis=1)
    same = communities[pairs[:, 0]] == communities[pairs[:, 1]]
    hubs = hub[pairs].sum(axis=1)
    rates = np.where(same, np.array([0.02, 0.2, 0.8])[hubs], np.array([0.03, 0.01, 0.0])[hubs])
    edges = pairs[rng.random(len(pairs)) < rates]
    return edges, np.bincount(edges.ravel(), minlength=150), communities


def by_group(links, groups):
    in_group = np.eye(groups.max() + 1, dtype=np.int64)[groups]
    return in_group.T @ links @ in_group


def classes_of(degrees):
    return np.frexp(degrees)[1].astype(np.int64)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]])
def test_one_edge_moves_one_count_by_one_over_all_graphs_of_five_nodes(labels):
    classes, communities = np.array([0, 1, 1, 2, 2]), np.array(labels)
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    bits = np.arange(10)
    counts = np.stack(
        [
            count_class_links(classes, communities, pairs[(g >> bits) & 1 == 1]).ravel()
            for g in range(1024)
        ]
    )
    for bit in bits:
        changes = np.abs(counts - counts[np.arange(1024) ^ (1 << bit)]).sum(axis=1)
        assert (changes == edge_partition_sensitivity()).all()


def test_counts_are_those_of_each_edge():
    edges, degrees, communities = graph(0)
    classes = classes_of(degrees)
    found = count_class_links(classes, communities, edges)
    expected = np.zeros_like(found)
    for i, j in edges:
        a, b = sorted((classes[i], classes[j]))
        expected[int(communities[i] == communities[j]), b, a] += 1
    assert found.tolist() == expected.tolist() and found[0].sum() > 50


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_cells_have_the_links_of_communities_and_of_classes(seed):
    edges, degrees, communities = graph(seed)
    classes, links = classes_of(degrees), count_links(communities, edges)
    counts = count_class_links(classes, communities, edges)
    ratios = class_ratios(counts, 0.0, degrees, classes, communities, links)
    mixing = block_mixing(links, np.bincount(communities, degrees))
    assert mixing == pytest.approx(links + links.T, rel=0.02, abs=1)
    cells, wanted = cell_mixing(degrees, classes, communities, mixing, ratios)
    names = [*zip(communities.tolist(), classes.tolist(), strict=True)]
    assert len(set(zip(cells.tolist(), names, strict=True))) == len(set(names)) == cells.max() + 1
    of_cell = np.array([names[np.flatnonzero(cells == k)[0]] for k in range(cells.max() + 1)])
    assert wanted.sum(axis=1) == pytest.approx(np.bincount(cells, degrees), rel=0.02)
    between = np.zeros(counts.shape)
    for (row, column), number in np.ndenumerate(np.tril(wanted)):
        (a, c), (b, d) = of_cell[row], of_cell[column]
        between[int(a == b), max(c, d), min(c, d)] += number / (1 + (row == column))
    assert by_group(wanted, of_cell[:, 0]) == pytest.approx(mixing, rel=0.05, abs=3)
    assert np.abs(between - counts).sum() < 0.06 * len(edges)
    # Chance within communities is farther away.
    chance = cell_mixing(degrees, classes, communities, mixing, np.ones_like(ratios))[1]
    assert np.abs(chance - wanted).sum() > 0.3 * len(edges)


def test_noise_leaves_chance():
    edges, degrees, communities = graph(0)
    classes, links = classes_of(degrees), count_links(communities, edges)
    counts = count_class_links(classes, communities, edges)
    assert (class_ratios(counts, 1e4, degrees, classes, communities, links) == 1).all()
    ratios = class_ratios(counts, 5.0, degrees, classes, communities, links)
    exact = class_ratios(counts, 0.0, degrees, classes, communities, links)
    assert (np.abs(ratios - 1) <= np.abs(exact - 1) + 1e-9).all() and (ratios != 1).any()
    assert (ratios == np.swapaxes(ratios, 1, 2)).all() and ratios.min() >= 0


def test_sharpened_links_are_kept():
    edges, degrees, communities = graph(1)
    links = count_links(communities, edges)
    sharp = np.tril(links, -1) // 2 + np.diag(np.diag(links))
    mixing = block_mixing(sharp, np.bincount(communities, degrees))
    # Links within communities take the rest of the degrees.
    assert mixing.sum(axis=1) == pytest.approx(np.bincount(communities, degrees), rel=0.01)
    assert np.tril(mixing, -1) == pytest.approx(np.tril(sharp, -1), rel=0.01, abs=1)


def test_a_graph_without_edges():
    nothing, zeros = np.empty((0, 2), dtype=np.int64), np.zeros(4, dtype=np.int64)
    counts = count_class_links(zeros, np.array([0, 0, 1, 1]), nothing)
    links = np.zeros((2, 2), dtype=np.int64)
    ratios = class_ratios(counts, 1.0, zeros, zeros, np.array([0, 0, 1, 1]), links)
    mixing = block_mixing(links, np.zeros(2, dtype=np.int64))
    assert not cell_mixing(zeros, zeros, np.array([0, 0, 1, 1]), mixing, ratios)[1].any()
