"""The content by which a budget book recognizes data: equal for equal edges, of one kind only."""

import random

import pytest

from lightning_dpg.datamodules import EdgeListDataModule, Nodes

PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")]


def identity(pairs, kind, **options):
    return EdgeListDataModule(pairs, kind=kind, **options).identity()


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("undirected", "undirected edge"),
        ("directed", "directed edge"),
        ("bipartite", "edge between the two sides"),
    ],
)
def test_the_order_of_lines_is_no_part_of_it_and_the_kind_is(kind, record):
    pairs = [("u1", "i1"), ("u2", "i1"), ("u1", "i2"), ("u3", "i2")]
    shuffled = random.Random(0).sample(pairs, len(pairs))
    found = identity(pairs, kind)
    assert identity(shuffled, kind) == found
    assert found.record == record
    others = {"undirected", "directed", "bipartite"} - {kind}
    assert found.edges not in [identity(pairs, other).edges for other in others]


def test_a_reversed_edge_is_another_directed_graph_and_the_same_undirected_one():
    turned = [("b", "a"), *PAIRS[1:]]
    assert identity(turned, "directed").edges != identity(PAIRS, "directed").edges
    assert identity(turned, "undirected") == identity(PAIRS, "undirected")


def test_both_directions_are_two_edges_of_a_directed_graph():
    one = identity([("a", "b"), ("b", "c")], "directed")
    assert identity([("a", "b"), ("b", "a"), ("b", "c")], "directed").edges != one.edges


def test_exchanged_columns_are_another_bipartite_graph():
    """Left and right ids that both count from 1 are other nodes: user 1 is not item 1."""
    pairs = [("1", "2"), ("2", "2"), ("3", "1")]
    turned = [pair[::-1] for pair in pairs]
    assert identity(turned, "bipartite").edges != identity(pairs, "bipartite").edges


def test_listed_sides_add_nodes_and_no_edges():
    pairs = [("u1", "i1"), ("u2", "i1")]
    sides = Nodes(left=["u1", "u2", "u3"], right=["i1", "i2"])
    plain, listed = identity(pairs, "bipartite"), identity(pairs, "bipartite", nodes=sides)
    assert listed.edges == plain.edges
    assert listed.nodes != plain.nodes
