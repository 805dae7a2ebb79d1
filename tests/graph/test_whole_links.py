"""Whole links between cells have the ends of cells and the links between groups, where these exist."""

import numpy as np
import pytest

from lightning_dpg.graph.communities import whole_links
from lightning_dpg.graph.linked_classes import most_links

GROUPS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
CELLS = np.repeat(np.arange(8), [12, 9, 1, 10, 8, 2, 9, 9])


def graph(seed):
    """Degrees and ends by cell and cell of a random graph; hubs, in cells 2 and 5, fill their groups."""
    rng = np.random.default_rng(seed)
    appeal = np.where(np.isin(CELLS, [2, 5]), 3.0, rng.choice([0.3, 0.8], 60))
    is_near = np.equal.outer(GROUPS[CELLS], GROUPS[CELLS])
    rates = np.outer(appeal, appeal) * np.where(is_near, 1.0, 0.2)
    is_edge = np.triu(rng.random((60, 60)) < rates, 1)
    is_edge |= is_edge.T
    in_cell = np.eye(8, dtype=np.int64)[CELLS]
    return is_edge.sum(axis=1), in_cell.T @ is_edge @ in_cell


def ends_of(links):
    return np.tril(links) + np.tril(links).T


def by_group(ends):
    in_group = np.eye(3, dtype=np.int64)[GROUPS]
    return in_group.T @ ends @ in_group


@pytest.mark.parametrize("seed", range(10))
def test_cells_have_their_ends_and_groups_their_links_as_in_a_graph(seed):
    degrees, ends = graph(seed)
    totals, most = ends.sum(axis=1), most_links(degrees, CELLS, 8)
    links = whole_links(ends.astype(np.float64), GROUPS, by_group(ends), totals, most)
    assert ends_of(links).tolist() == ends.tolist()
    # Those of the graph show that there are such links. Here others are near.
    wild = ends * np.random.default_rng(seed).gamma(1, size=(8, 8))
    found = ends_of(whole_links(wild + wild.T, GROUPS, by_group(ends), totals, most))
    assert found.sum(axis=1).tolist() == totals.tolist()
    assert by_group(found).tolist() == by_group(ends).tolist()
    assert (found >= 0).all() and (found <= most).all() and not (np.diag(found) % 2).any()


def test_links_for_which_there_are_no_pairs_of_nodes_are_missing():
    ends, most = np.array([[4, 3], [3, 0]]), np.array([[2, 1], [1, 0]])
    links = whole_links(1.0 * ends, np.arange(2), ends, ends.sum(axis=1), most)
    assert links.tolist() == [[1, 0], [1, 0]]
