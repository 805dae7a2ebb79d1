"""Breadth-first orders of unions of graphs, and the rows of links to earlier nodes."""

import networkx as nx
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from lightning_dpg.papers.yang2021.bfs import adjacency_rows, bandwidths, bfs_positions


@st.composite
def unions(draw):
    """Random graphs, some without an edge or with several components, and their union."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    density, seed = draw(st.sampled_from([0.0, 0.2, 0.4, 1.0])), draw(st.integers(0, 99))
    graphs = [nx.gnp_random_graph(size, density, seed=seed + k) for k, size in enumerate(sizes)]
    edges, first = [], 0
    for graph in graphs:
        edges += [[i + first, j + first] for i, j in graph.edges]
        first += len(graph)
    union = torch.tensor(edges, dtype=torch.long).reshape(-1, 2)
    return graphs, union, torch.tensor(sizes), torch.Generator().manual_seed(seed)


@given(unions())
def test_orders_are_breadth_first_and_large_components_come_first(case):
    graphs, edges, sizes, generator = case
    positions = bfs_positions(edges, sizes, generator)
    for graph, places in zip(graphs, positions.split(sizes.tolist()), strict=True):
        assert sorted(places.tolist()) == list(range(len(graph)))
        order = places.argsort().tolist()
        # An order is breadth-first if and only if the first neighbors of its nodes are in order.
        lengths, parents = [], []
        for place, node in enumerate(order):
            parent = min((int(places[other]) for other in graph[node]), default=place)
            if parent >= place:
                lengths.append(len(nx.node_connected_component(graph, node)))
                assert place == sum(lengths[:-1])
                parent = place
            parents.append(parent)
        assert parents == sorted(parents)
        assert lengths == sorted(lengths, reverse=True)


@given(unions(), st.integers(1, 8))
def test_rows_hold_the_links_that_the_look_back_reaches(case, look_back):
    graphs, edges, sizes, generator = case
    positions = bfs_positions(edges, sizes, generator)
    rows = adjacency_rows(edges, sizes, positions, look_back).split(sizes.tolist())
    widest = bandwidths(edges, sizes, positions).tolist()
    for graph, row, places, width in zip(
        graphs, rows, positions.split(sizes.tolist()), widest, strict=True
    ):
        placed = nx.relabel_nodes(graph, dict(enumerate(places.tolist())))
        reach = [abs(i - j) for i, j in placed.edges]
        assert width == max(reach, default=0)
        assert row[0].tolist() == [1] * look_back
        expected = [(max(e), min(e)) for e in placed.edges if abs(e[0] - e[1]) <= look_back]
        found = [(i + 1, i - back) for i, back in row[1:].nonzero().tolist()]
        assert sorted(found) == sorted(expected)


def test_starts_and_neighbors_are_random():
    copies = 3000
    first = 3 * torch.arange(copies)[:, None]
    edges = torch.cat([first + torch.tensor([0, 1]), first + torch.tensor([1, 2])])
    generator = torch.Generator().manual_seed(0)
    positions = bfs_positions(edges, torch.full((copies,), 3), generator).view(copies, 3)
    orders, counts = torch.unique(positions.argsort(1), dim=0, return_counts=True)
    assert orders.tolist() == [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]]
    expected = [copies / 3, copies / 6, copies / 6, copies / 3]
    assert chisquare(counts.numpy(), expected).pvalue > 0.001
