"""Dense batches of a set of graphs equal the graphs one by one."""

import networkx as nx
import torch
from scipy.stats import chisquare

from lightning_dpg.papers.yang2021.dense_batch import dense_adjacency, dense_batch, random_pairs


def some_set():
    """Graphs of different sizes: their edges in one sequence of nodes, and the graphs."""
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in (4, 1, 6, 3)]
    starts, edges = [0, 4, 5, 11], []
    for start, graph in zip(starts, graphs, strict=True):
        edges += [sorted((start + i, start + j)) for i, j in graph.edges]
    return torch.tensor(edges), torch.tensor([4, 1, 6, 3]), graphs


def test_blocks_are_the_adjacency_matrices_of_the_chosen_graphs():
    edges, sizes, graphs = some_set()
    blocks = dense_batch(sizes, torch.tensor([2, 0, 1]))
    adjacency = dense_adjacency(edges, sizes, blocks)
    assert adjacency.shape == (3, 6, 6)
    for block, number, start in ((0, 2, 5), (1, 0, 0), (2, 1, 4)):
        n = len(graphs[number])
        expected = torch.zeros(6, 6)
        expected[:n, :n] = torch.from_numpy(nx.to_numpy_array(graphs[number])).float()
        assert torch.equal(adjacency[block], expected)
        assert blocks.nodes[block, :n].tolist() == list(range(start, start + n))
        assert blocks.mask[block].tolist() == [True] * n + [False] * (6 - n)
        assert int(blocks.pairs[block].sum()) == n * (n - 1) // 2


def test_random_pairs_are_uniform_over_the_pairs_of_all_graphs():
    torch.manual_seed(0)
    _, sizes, _ = some_set()
    pairs = random_pairs(sizes, 24_000).sort(1).values
    seen, counts = torch.unique(pairs, dim=0, return_counts=True)
    expected = [[*map(int, pair)] for pair in seen]
    ranges = [range(4), range(5, 11), range(11, 14)]
    assert expected == [[i, j] for nodes in ranges for i in nodes for j in nodes if i < j]
    assert chisquare(counts.numpy()).pvalue > 1e-3
