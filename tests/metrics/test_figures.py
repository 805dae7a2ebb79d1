"""Figures show the degrees, the communities and the hubs of graphs."""

import networkx as nx
import numpy as np
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.figures import (
    MAX_SHOWN_NODES,
    adjacency_figure,
    community_order,
    degree_figure,
)

ORIGINAL = from_networkx(nx.karate_club_graph())


def test_degree_figure_shows_nodes_of_at_least_each_degree():
    star = from_networkx(nx.star_graph(4))
    figure = degree_figure({"synthetic": star, "original": ORIGINAL})
    synthetic, original = figure.axes[0].lines
    assert synthetic.get_xydata().tolist() == [[1, 5], [4, 1]]
    degrees = np.array([d for _, d in nx.karate_club_graph().degree()])
    assert all((degrees >= x).sum() == y for x, y in original.get_xydata())
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_adjacency_figure_shows_communities_as_blocks():
    names = np.random.default_rng(0).permutation(12).tolist()
    cliques = nx.disjoint_union(nx.complete_graph(7), nx.complete_graph(5))
    edges = torch.tensor([[names[i], names[j]] for i, j in cliques.edges()])
    graph = make_graph(edges, 12)
    order = community_order(graph, seed=0)
    assert set(order[:7]) == set(names[:7])
    pixels = adjacency_figure({"synthetic": graph}, seed=0).axes[0].images[0].get_array()
    blocks = {(i, j) for i in range(12) for j in range(12) if i != j and (i < 7) == (j < 7)}
    assert {(int(i), int(j)) for i, j in zip(*np.nonzero(pixels[..., 3]), strict=True)} == blocks


def test_large_graphs_are_shown_by_their_hubs():
    count = MAX_SHOWN_NODES + 500
    path = torch.stack([torch.arange(count - 1), torch.arange(1, count)], dim=1)
    hub = torch.stack([torch.full((50,), count - 1), torch.arange(50)], dim=1)
    order = community_order(make_graph(torch.cat([path, hub]), count), seed=0)
    assert len(order) == len(set(order)) == MAX_SHOWN_NODES
    assert count - 1 in order


def test_figures_of_a_graph_without_edges(tmp_path):
    graphs = {"synthetic": make_graph(torch.empty(0, 2, dtype=torch.long), 5)}
    degree_figure(graphs).savefig(tmp_path / "degrees.png")
    adjacency_figure(graphs, seed=0).savefig(tmp_path / "adjacency.png")
