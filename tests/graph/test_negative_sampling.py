"""Non-edges are uniform, or have the degrees of the edges, and are never edges."""

import networkx as nx
import pytest
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.held_out import degree_matched_non_edges, uniform_non_edges


def pairs_of(tensor):
    return [tuple(pair) for pair in tensor.tolist()]


def test_uniform_non_edges_are_uniform():
    graph = from_networkx(nx.path_graph(5))
    non_edges = [pair for pair in nx.complement(nx.path_graph(5)).edges()]
    generator = torch.Generator().manual_seed(0)
    counts = dict.fromkeys(non_edges, 0)
    for _ in range(3000):
        drawn = pairs_of(uniform_non_edges(graph, 2, generator))
        assert len(set(drawn)) == 2
        for pair in drawn:
            counts[pair] += 1
    # 1000 expected of each of the 6, standard deviation 26
    assert all(abs(count - 1000) < 110 for count in counts.values())


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.star_graph(20), nx.path_graph(2)])
def test_all_non_edges_are_the_complement(graph):
    expected = sorted(nx.complement(graph).edges())
    generator = torch.Generator().manual_seed(0)
    assert pairs_of(uniform_non_edges(from_networkx(graph), len(expected), generator)) == expected


def test_uniform_non_edges_of_a_large_graph():
    edges = torch.randint(1_000_000, (100_000, 2), generator=torch.Generator().manual_seed(1))
    graph = make_graph(edges, 1_000_000)
    drawn = uniform_non_edges(graph, 50_000, torch.Generator().manual_seed(0))
    assert len(set(pairs_of(drawn))) == 50_000
    assert not set(pairs_of(drawn)) & set(pairs_of(undirected_edges(graph)))
    assert bool((drawn[:, 0] < drawn[:, 1]).all())
    assert drawn.double().mean(dim=0) / 1e6 == pytest.approx([1 / 3, 2 / 3], abs=0.01)


def test_refuses_more_than_there_are():
    with pytest.raises(ValueError, match="the 6 non-edges, got 7"):
        uniform_non_edges(from_networkx(nx.path_graph(5)), 7, torch.Generator())


def test_matched_non_edges_have_the_degrees_of_the_edges():
    original = nx.barabasi_albert_graph(2000, 4, seed=0)
    graph = from_networkx(original)
    edges = undirected_edges(graph)[::10]
    non_edges = degree_matched_non_edges(graph, edges, torch.Generator().manual_seed(0))
    assert not any(original.has_edge(i, j) or i >= j for i, j in non_edges.tolist())

    original.remove_edges_from(edges.tolist())  # what a model sees
    degree = torch.tensor([d for _, d in original.degree()])
    wanted, got = (degree[pairs].sort(dim=1).values for pairs in (edges, non_edges))
    assert ((wanted == got).all(dim=1)).double().mean() > 0.9
    assert got.sum().item() == pytest.approx(wanted.sum().item(), rel=0.01)


def test_matched_non_edges_repeat_for_equal_generators_only():
    graph = from_networkx(nx.les_miserables_graph())
    edges = undirected_edges(graph)[::5]
    first, same, other = (
        degree_matched_non_edges(graph, edges, torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_matched_non_edges_end_on_dense_graphs():
    almost = nx.complete_graph(30)
    almost.remove_edges_from([(0, k) for k in range(1, 20)])
    edges = torch.tensor([[20, 21], [22, 23]])
    drawn = degree_matched_non_edges(from_networkx(almost), edges, torch.Generator().manual_seed(0))
    assert drawn[:, 0].tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"2 of 2 edges.*too dense"):
        degree_matched_non_edges(from_networkx(nx.complete_graph(30)), edges, torch.Generator())


def test_no_edges_no_non_edges():
    graph, none = from_networkx(nx.path_graph(3)), torch.empty(0, 2, dtype=torch.long)
    assert degree_matched_non_edges(graph, none, torch.Generator()).shape == (0, 2)
    assert uniform_non_edges(graph, 0, torch.Generator()).shape == (0, 2)
