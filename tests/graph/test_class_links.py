"""Drawn links of each pair of classes are the wanted ones, and degrees are met."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.graph.class_links import draw_links, fitting_links
from lightning_dpg.graph.stubs import count_links


def degrees_of(edges, num_nodes):
    return np.bincount(edges.ravel(), minlength=num_nodes)


def ends_of(links):
    return links.sum(axis=0) + links.sum(axis=1)


def table(classes, edges, size):
    """Links between classes, also where the last ones have no node."""
    found = np.zeros((size, size), dtype=np.int64)
    for i, j in classes[edges]:
        found[max(i, j), min(i, j)] += 1
    return found


def with_hubs(seed):
    """Communities of sizes 5 to 80; some nodes have more neighbors than their communities have nodes."""
    graph = nx.stochastic_block_model([80, 60, 30, 5], 0.01 + 0.3 * np.eye(4), seed=seed)
    rng = np.random.default_rng(seed)
    for hub in (0, 100, 150):
        graph.add_edges_from((hub, int(v)) for v in rng.choice(175, 70, False) if v != hub)
    return np.array(graph.edges), np.repeat(np.arange(4), [80, 60, 30, 5])


@pytest.mark.parametrize("seed", range(5))
def test_links_and_degrees_of_a_graph_are_drawn_exactly(seed):
    edges, classes = with_hubs(seed)
    degrees, links = degrees_of(edges, len(classes)), count_links(classes, edges)
    assert fitting_links(links, degrees, classes).tolist() == links.tolist()
    drawn = draw_links(degrees, classes, links, np.random.default_rng(seed))
    assert (drawn[:, 0] < drawn[:, 1]).all() and len(np.unique(drawn, axis=0)) == len(edges)
    assert degrees_of(drawn, len(classes)).tolist() == degrees.tolist()
    assert count_links(classes, drawn).tolist() == links.tolist()
    assert {*map(tuple, drawn.tolist())} != {*map(tuple, np.sort(edges, axis=1).tolist())}


@pytest.mark.parametrize("seed", range(5))
def test_links_to_others_stay_where_degrees_say_something_else(seed):
    edges, classes = with_hubs(seed)
    rng = np.random.default_rng(seed)
    links = count_links(classes, edges)
    links[:3, :3] += np.tril(rng.integers(0, 9, (3, 3)))
    links[2, 0] = 0
    degrees = degrees_of(edges, len(classes)) + rng.integers(0, 2, len(classes))
    degrees[0] += degrees.sum() % 2
    fitted = fitting_links(links, degrees, classes)
    change = np.abs(np.tril(fitted - links, -1))
    assert change.max() <= 1 and change.sum() <= 3  # where the rest of a class is odd
    assert np.diag(fitted).tolist() != np.diag(links).tolist()
    drawn = draw_links(degrees, classes, links, rng)
    assert degrees_of(drawn, len(classes)).tolist() == degrees.tolist()
    found = count_links(classes, drawn)
    assert np.abs(found - fitted).sum() <= 4  # hubs leave no place for an edge, which is inserted
    assert found[2, 0] == 0


def test_links_that_pairs_or_degrees_have_no_room_for_go_to_linked_classes():
    classes, degrees = np.array([0, 0, 1, 1, *[2] * 8, *[3] * 8]), np.full(20, 4)
    links = np.zeros((4, 4), dtype=np.int64)
    links[1, 0], links[2, 0], links[2, 1], links[3, 3] = 7, 1, 1, 16
    fitted = fitting_links(links, degrees, classes)
    assert ends_of(fitted).tolist() == [8, 8, 32, 32]
    # Of 7 links between 2 and 2 nodes 4 are possible; each class has one pair of its own.
    assert fitted[[1, 0, 1], [0, 0, 1]].tolist() == [4, 1, 1]
    assert fitted[2, 0] == fitted[2, 1] == 2 and fitted[3].tolist() == [0, 0, 0, 16]
    drawn = draw_links(degrees, classes, links, np.random.default_rng(0))
    assert count_links(classes, drawn).tolist() == fitted.tolist()


def test_a_hub_beyond_its_links_gets_others_of_linked_classes_only():
    sizes = [10, 40, 40]
    classes, degrees = np.repeat(np.arange(3), sizes), np.full(90, 6)
    degrees[0] = 45  # of 9 + 20 that its class can give
    degrees[1] += 1
    links = np.zeros((3, 3), dtype=np.int64)
    links[1, 0] = 20
    drawn = draw_links(degrees, classes, links, np.random.default_rng(0))
    assert degrees_of(drawn, 90).tolist() == degrees.tolist()
    found = count_links(classes, drawn)
    assert found[1, 0] > 20 and found[2, 0] == found[2, 1] == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_link_without_a_place_between_classes_stays_between_their_groups(seed):
    sizes, groups = [1, 5, 10, 30], np.array([0, 1, 1, 2])
    classes = np.repeat(np.arange(4), sizes)
    links = np.array([[0, 0, 0, 0], [5, 4, 0, 0], [2, 4, 10, 0], [3, 2, 3, 100]])
    degrees = np.array([10, *[4] * 4, *[3] * 10, 2, *[7] * 28, 6, 6])
    rng, barred = np.random.default_rng(seed), np.array([[0, 1]])  # one of 5 pairs for 5 links
    drawn = draw_links(degrees, classes, links, rng, groups=groups, no_pairs=barred)
    assert degrees_of(drawn, 46).tolist() == degrees.tolist()
    in_group = np.eye(3, dtype=np.int64)[groups]
    expected = in_group.T @ links @ in_group
    assert count_links(groups[classes], drawn).tolist() == expected.tolist()
    assert count_links(classes, drawn)[1, 0] == 4


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_fitted_links_have_the_ends_of_the_degrees(size, seed, two_sided):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, size, 24)
    if two_sided:
        classes[12:] += size
        pairs = np.argwhere(rng.random((12, 12)) < rng.random()) + np.array([0, 12])
        size *= 2
    else:
        pairs = np.argwhere(np.triu(rng.random((24, 24)) < rng.random(), 1))
    degrees = degrees_of(pairs, 24)
    links = np.tril(rng.integers(0, 30, (size, size)) * (rng.random((size, size)) < 0.7))
    if two_sided:
        links[: size // 2] = links[:, size // 2 :] = 0
    fitted = fitting_links(links, degrees, classes, two_sided=two_sided)
    assert (fitted >= 0).all() and (np.triu(fitted, 1) == 0).all()
    assert ends_of(fitted).tolist() == np.bincount(classes, degrees, size).tolist()
    drawn = draw_links(degrees, classes, links, rng, two_sided=two_sided)
    assert len(np.unique(drawn, axis=0)) == len(drawn) <= len(pairs)
    assert (drawn[:, 0] < drawn[:, 1]).all() and (degrees_of(drawn, 24) <= degrees).all()
    if two_sided:
        found = table(classes, drawn, size)
        assert not found[: size // 2].any() and not found[:, size // 2 :].any()


@pytest.mark.parametrize("seed", range(5))
def test_two_sides_are_drawn_exactly_without_pairs_that_are_barred(seed):
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(6), 20)
    chance = np.kron(0.05 + 0.3 * np.eye(3), np.ones((20, 20))) * (1 - np.eye(60))
    edges = np.argwhere(rng.random((60, 60)) < chance) + np.array([0, 60])
    degrees, links = degrees_of(edges, 120), table(classes, edges, 6)
    barred = np.stack([np.arange(60), np.arange(60, 120)], axis=1)
    drawn = draw_links(degrees, classes, links, rng, no_pairs=barred, two_sided=True)
    assert degrees_of(drawn, 120).tolist() == degrees.tolist()
    assert np.abs(table(classes, drawn, 6) - links).max() <= 1
    assert not {*map(tuple, drawn.tolist())} & {*map(tuple, barred.tolist())}


@pytest.mark.parametrize("degrees", [[1, 1, 1], [0, 0, 0], [4, 0, 0]])
def test_ends_without_a_place_are_left_over(degrees):
    none = np.zeros((1, 1), dtype=np.int64)
    classes, rng = np.zeros(3, dtype=np.int64), np.random.default_rng(0)
    drawn = draw_links(np.array(degrees), classes, none, rng)
    assert len(drawn) == (degrees == [1, 1, 1])
