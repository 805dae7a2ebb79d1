"""Assembled graphs have the law of the published routine, written out as a loop."""

import numpy as np
import pytest
import torch

from lightning_dpg.graph.edge_sampling import assemble


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def skewed_pairs(num_pairs, num_nodes, seed=0):
    """Pairs whose lower ids are frequent, self loops included."""
    return (torch.rand(num_pairs, 2, generator=generator(seed)) ** 2 * num_nodes).long()


def assemble_literally(pairs, num_nodes, num_edges, rng):
    """Section 2.2 of the paper with the dense matrix S, node by node."""
    counts = np.zeros((num_nodes, num_nodes))
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    np.fill_diagonal(counts, 0)
    scores = np.maximum(counts, counts.T)
    result = np.zeros_like(scores, dtype=bool)
    for node in range(num_nodes):
        if scores[node].sum():
            neighbor = rng.choice(num_nodes, p=scores[node] / scores[node].sum())
            result[node, neighbor] = result[neighbor, node] = True
    while np.triu(result).sum() < num_edges:
        rest = np.triu(scores * ~result).ravel()
        i, j = divmod(rng.choice(num_nodes**2, p=rest / rest.sum()), num_nodes)
        result[i, j] = result[j, i] = True
    return result


def test_inclusion_frequencies_of_the_literal_routine():
    pairs, runs, rng, random = skewed_pairs(150, 12), 600, np.random.default_rng(0), generator()
    expected, observed = np.zeros((12, 12)), np.zeros((12, 12))
    for _ in range(runs):
        expected += np.triu(assemble_literally(pairs.numpy(), 12, 18, rng))
        i, j = assemble(pairs, 12, 18, random).T
        observed[i, j] += 1
    # Two binomial frequencies differ by at most sqrt(.5 / runs) in standard deviation.
    assert np.abs(expected - observed).max() / runs < 4.5 * np.sqrt(0.5 / runs)


def test_score_is_the_larger_count_not_the_sum():
    counts = {(0, 1): 2, (1, 0): 2, (0, 2): 3, (1, 2): 95}
    pairs = torch.tensor([pair for pair, count in counts.items() for _ in range(count)])
    random = generator()
    share = np.mean([[0, 1] in assemble(pairs, 3, 1, random).tolist() for _ in range(4000)])
    # Node 0 passes 1 over for 2 with probability 3/5, node 1 passes 0 over for 2 with 95/97.
    assert share == pytest.approx(1 - 3 / 5 * 95 / 97, abs=0.035)


def test_counts_degrees_and_form():
    pairs = skewed_pairs(400_000, 2810)
    edges = assemble(pairs, 2810, 7981, generator())
    assert edges.shape == (7981, 2)
    assert bool((edges[:, 0] < edges[:, 1]).all())
    keys = edges[:, 0] * 2810 + edges[:, 1]
    assert bool((keys[1:] > keys[:-1]).all())
    occurring = pairs[pairs[:, 0] != pairs[:, 1]].unique()
    assert torch.equal(edges.unique(), occurring)


def test_equal_generators_give_equal_graphs():
    pairs = skewed_pairs(2000, 50)
    first, again, other = (assemble(pairs, 50, 100, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_direction_and_order_of_the_pairs_do_not_matter_for_the_form():
    pairs = torch.tensor([[3, 1], [1, 3], [2, 2], [0, 3]])
    assert assemble(pairs, 5, 10, generator()).tolist() == [[0, 3], [1, 3]]
    assert assemble(pairs.int(), 5, 1, generator()).tolist() == [[0, 3], [1, 3]]
    assert assemble(torch.empty(0, 2, dtype=torch.long), 5, 1, generator()).shape == (0, 2)


def test_many_nodes():
    edges = assemble(skewed_pairs(1_000_000, 100_000), 100_000, 500_000, generator())
    assert edges.shape == (500_000, 2)


@pytest.mark.parametrize(
    ("pairs", "num_edges", "message"),
    [([[0, 3]], 1, "0 to 2"), ([[0, 1]], -1, "num_edges"), ([[0, 1, 2]], 1, "shape")],
)
def test_refuses(pairs, num_edges, message):
    with pytest.raises(ValueError, match=message):
        assemble(torch.tensor(pairs), 3, num_edges, generator())
