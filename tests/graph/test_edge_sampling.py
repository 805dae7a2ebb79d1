"""Graphs sampled from probabilities, reports and generated edges."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from lightning_dpg.graph.edge_sampling import (
    above_diagonal,
    assemble,
    draw_posterior,
    draw_weighted,
    probabilities,
)
from lightning_dpg.graph.pair_numbers import pairs_of_ranks

PAIRS = list(combinations(range(9), 2))


def symmetric(values):
    matrix = torch.zeros(9, 9)
    for (i, j), value in zip(PAIRS, values, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_values_of_pairs_do_not_depend_on_the_blocks(rows):
    values = torch.arange(36.0)
    matrix = symmetric(values)
    blocks = [matrix[start : start + rows, start:] for start in range(0, 9, rows)]
    assert torch.equal(torch.cat(list(above_diagonal(blocks))), values)


def scaled(values, num_edges, size=10):
    """Probabilities of values in blocks."""
    blocks = [values.clone() for values in values.split(size)]
    total = float(values.double().sum())
    return torch.cat(list(probabilities(lambda: [b.clone() for b in blocks], total, num_edges)))


def test_probabilities_add_up_and_keep_proportions():
    values = torch.arange(36.0) + 1
    np.testing.assert_allclose(scaled(values, 5), 5 * values / values.sum(), rtol=1e-5)
    crowded = scaled(values, 24)
    assert float(crowded.sum()) == pytest.approx(24, rel=0.01)
    assert float(crowded.max()) < 1
    assert not scaled(torch.zeros(36), 5).any()
    assert not scaled(values, 0).any()


@pytest.mark.parametrize("num_edges", [3, 12, 24, 33, 36])
@pytest.mark.parametrize("power", [1.0, 6.0])
def test_the_cut_is_that_of_rounds_over_all_values(num_edges, power):
    """The scale comes from the values near the cut alone; here all of them are scaled and cut."""
    values = (torch.arange(36.0).double() + 1) ** power
    expected = values.clone()
    for _ in range(8):
        expected = (expected * num_edges / expected.sum()).clamp(max=0.95)
    np.testing.assert_allclose(scaled(values, num_edges), expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_pairs_are_drawn_by_bayes_rule(epsilon):
    """Frequencies of 2000 draws beside the posterior, found one pair at a time."""
    prior = scaled(torch.linspace(1, 4, 36), 12)
    reported = torch.tensor(PAIRS[::3])
    odds = prior / (1 - prior)
    odds = torch.where(torch.arange(36) % 3 == 0, odds * np.exp(epsilon), odds / np.exp(epsilon))
    posterior = odds / (1 + odds)
    count = round(float(posterior.sum()))
    generator, hits = torch.Generator().manual_seed(0), torch.zeros(9, 9)
    for _ in range(2000):
        edges = draw_posterior(prior.split(7), reported, epsilon, 9, count, generator)
        assert len(edges) == count
        hits[edges[:, 0], edges[:, 1]] += 1
    found = np.array([hits[i, j] / 2000 for i, j in PAIRS])
    # The number of edges is fixed, so that probabilities are scaled to it.
    np.testing.assert_allclose(found, posterior * count / posterior.sum(), atol=0.05)


@pytest.mark.parametrize("size", [1, 9, 36])
def test_a_draw_does_not_depend_on_the_blocks(size):
    prior = scaled(torch.linspace(1, 4, 36) ** 3, 12)
    reported = torch.tensor(PAIRS[::4])
    uniform = torch.rand(36, generator=torch.Generator().manual_seed(3))
    ranks = torch.logit(uniform) - torch.logit(prior) + 2.0
    ranks[::4] -= 4.0
    for count in (0, 1, 11, 36):
        generator = torch.Generator().manual_seed(3)
        drawn = draw_posterior(prior.split(size), reported, 2.0, 9, count, generator)
        expected = ranks.argsort()[:count].sort().values
        assert torch.equal(drawn, pairs_of_ranks(expected, 9))


def test_certain_reports_are_the_graph():
    reported = torch.tensor(PAIRS[5:11])
    prior = scaled(torch.rand(36, generator=torch.Generator().manual_seed(0)), 6)
    drawn = draw_posterior([prior], reported, float("inf"), 9, 6, torch.Generator())
    assert torch.equal(drawn, reported)


def test_weighted_draw_without_replacement():
    """Three pairs are sure, being each node's only likely neighbor; the fourth goes by weight."""
    weights = torch.zeros(6, 6)
    others = {(0, 2): 1.0, (1, 3): 2.0, (0, 5): 5.0}
    for (i, j), weight in {**others, (0, 1): 1e9, (2, 3): 1e9, (4, 5): 1e9}.items():
        weights[i, j] = weights[j, i] = weight
    generator, seen = torch.Generator().manual_seed(0), []
    for _ in range(1600):
        edges = [tuple(e) for e in pairs_of_ranks(draw_weighted(weights, 4, generator), 6).tolist()]
        assert {(0, 1), (2, 3), (4, 5)} < set(edges) and len(edges) == 4
        seen += set(edges) & set(others)
    counts = [seen.count(pair) for pair in others]
    assert stats.chisquare(counts, [200, 400, 1000]).pvalue > 1e-3


def test_nodes_without_weight_stay_alone():
    weights = torch.zeros(5, 5)
    weights[0, 1] = weights[1, 0] = 1.0
    assert draw_weighted(weights, 1, torch.Generator()).tolist() == [0]


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
