"""Graphlet counts equal enumeration, igraph and closed forms."""

import math
from functools import cache
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.datamodules.tu import read_tu_folder
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.motifs import motif_counts
from lightning_dpg.papers.dubhashi2015 import graphlets
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts

PAIRS = list(combinations(range(9), 2))
SIZES = list(GRAPHLETS)


def example(edges):
    return nx.Graph([(int(edge[0]), int(edge[1])) for edge in edges.split()])


EXAMPLES = {size: [example(edges) for edges in GRAPHLETS[size].values()] for size in SIZES}


def union_of(graphs):
    union = nx.disjoint_union_all(graphs)
    edges = torch.tensor(sorted(tuple(sorted(edge)) for edge in union.edges), dtype=torch.long)
    edges = edges.reshape(-1, 2)
    graph_of = torch.repeat_interleave(torch.tensor([len(graph) for graph in graphs]))
    return edges, graph_of, len(graphs)


def union_of_data(graphs):
    sizes = torch.tensor([graph.num_nodes for graph in graphs])
    starts = sizes.cumsum(0) - sizes
    edges = [undirected_edges(graph) + start for graph, start in zip(graphs, starts, strict=True)]
    return torch.cat(edges), torch.repeat_interleave(sizes)


@cache
def type_of(size, edges):
    part = nx.empty_graph(size)
    part.add_edges_from(edges)
    return next((i for i, g in enumerate(EXAMPLES[size]) if nx.is_isomorphic(part, g)), None)


def by_enumeration(graph, size):
    """Every set of nodes, and the isomorphism test of networkx."""
    counts = np.zeros(len(GRAPHLETS[size]), dtype=int)
    for nodes in combinations(sorted(graph), size):
        pairs = combinations(range(size), 2)
        edges = tuple((i, j) for i, j in pairs if graph.has_edge(nodes[i], nodes[j]))
        if (found := type_of(size, edges)) is not None:
            counts[found] += 1
    return counts


@pytest.mark.parametrize("size", SIZES)
def test_types_are_the_connected_graphs_of_the_atlas(size):
    atlas = [g for g in map(nx.graph_atlas, range(1, 53)) if len(g) == size and nx.is_connected(g)]
    assert len(atlas) == len(EXAMPLES[size])
    for graph in atlas:
        assert sum(nx.is_isomorphic(graph, other) for other in EXAMPLES[size]) == 1


@pytest.mark.parametrize("size", SIZES)
def test_all_graphs_of_up_to_six_nodes_in_one_set(size):
    graphs = [nx.graph_atlas(number) for number in range(1, 209)]
    counts = graphlet_counts(*union_of(graphs), size)
    assert counts.dtype == torch.long
    expected = np.stack([by_enumeration(graph, size) for graph in graphs])
    np.testing.assert_array_equal(counts, expected)


@settings(max_examples=30)
@given(st.sets(st.sampled_from(PAIRS)), st.sampled_from(SIZES), st.randoms())
def test_any_graph_beside_others(pairs, size, random):
    graph = nx.empty_graph(9)
    graph.add_edges_from(pairs)
    other = nx.gnp_random_graph(7, random.random(), seed=random.getrandbits(32))
    counts = graphlet_counts(*union_of([other, graph, nx.empty_graph(1)]), size)
    np.testing.assert_array_equal(counts[1], by_enumeration(graph, size))
    np.testing.assert_array_equal(counts[0], by_enumeration(other, size))
    assert not counts[2].any()


def test_blocks_do_not_matter(monkeypatch):
    graphs = [nx.les_miserables_graph(), nx.karate_club_graph()]
    whole = graphlet_counts(*union_of(graphs), 5)
    monkeypatch.setattr(graphlets, "_PATHS", 100)
    assert torch.equal(graphlet_counts(*union_of(graphs), 5), whole)
    reference = motif_counts(from_networkx(graphs[1])).counts[8:]
    np.testing.assert_array_equal(whole[1], reference)


@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "IMDB-BINARY"])
def test_real_graphs_as_the_motifs_of_metrics(data_root, name):
    """Orbits and sorted sets of nodes, which share no code with homomorphisms."""
    if not (data_root / "tu" / name).is_dir():
        pytest.skip(f"no {name}")
    graphs = read_tu_folder(data_root / "tu" / name / "raw")
    small = sorted(graphs, key=lambda graph: graph.num_edges)[100:800:100]
    edges, graph_of = union_of_data(small)
    counts = [graphlet_counts(edges, graph_of, len(small), size) for size in SIZES]
    expected = [motif_counts(graph, exact_up_to=10**7).counts for graph in small]
    np.testing.assert_array_equal(torch.cat(counts, dim=1), expected)


def test_real_graphs_as_igraph_finds_them(data_root):
    """20 graphs of PROTEINS; GraKeL's kernel of all graphlets loses some and is no reference."""
    igraph = pytest.importorskip("igraph")
    if not (data_root / "tu" / "PROTEINS").is_dir():
        pytest.skip("no PROTEINS")
    graphs = read_tu_folder(data_root / "tu" / "PROTEINS" / "raw")[20::55]
    edges, graph_of = union_of_data(graphs)
    others = [
        igraph.Graph(n=graph.num_nodes, edges=undirected_edges(graph).tolist()) for graph in graphs
    ]
    for size in SIZES:
        classes = [igraph.Graph(edges=list(graph.edges)).isoclass() for graph in EXAMPLES[size]]
        found = [np.array(other.motifs_randesu(size=size))[classes] for other in others]
        np.testing.assert_array_equal(graphlet_counts(edges, graph_of, len(graphs), size), found)


@pytest.mark.parametrize("size", SIZES)
def test_closed_forms_of_a_clique_and_a_star(size):
    counts = graphlet_counts(*union_of([nx.complete_graph(40), nx.star_graph(400)]), size)
    clique, star = counts.tolist()
    assert clique == [0] * (len(clique) - 1) + [math.comb(40, size)]
    leaves = list(GRAPHLETS[size]).index({3: "path_3", 4: "claw", 5: "star"}[size])
    assert star[leaves] == sum(star)


def test_refuses_other_sizes_and_numbers_beyond_64_bits():
    small = union_of([nx.path_graph(3)])
    with pytest.raises(ValueError, match="size must be one of 3, 4, 5, got 6"):
        graphlet_counts(*small, 6)
    hub = 50_000
    edges = torch.stack([torch.zeros(hub, dtype=torch.long), torch.arange(1, hub + 1)], dim=1)
    with pytest.raises(ValueError, match="degrees up to 50000 are too large"):
        graphlet_counts(edges, torch.zeros(hub + 1, dtype=torch.long), 1, 5)
