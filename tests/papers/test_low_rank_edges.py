"""Edges follow the degrees and the affinity of a low-rank estimate."""

import numpy as np
import pytest
import torch

from lightning_dpg.graph.expected_degrees import edge_weights
from lightning_dpg.papers.zhang2020 import low_rank_edges as module
from lightning_dpg.papers.zhang2020.low_rank_edges import Affinity, affinity_scores, low_rank_edges


def blocks(size, noise=0.0):
    """Rows of two blocks whose estimates have different lengths and directions."""
    lengths = 1 + torch.arange(2 * size) % 5
    rows = torch.zeros(2 * size, 2).double()
    rows[:size, 0], rows[size:, 1] = lengths[:size].double(), lengths[size:].double()
    return rows, 4 * lengths


@pytest.fixture(params=["all pairs at once", "by rejection"])
def either_way(request, monkeypatch):
    if request.param == "by rejection":
        monkeypatch.setattr(module, "FEW_PAIRS", 0)


def test_affinity_is_the_cosine_with_signs_where_it_is_positive():
    rows = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]).double()
    signs = torch.tensor([1.0, -1.0]).double()
    first, second = torch.tensor([[0, 1], [0, 2], [0, 0], [1, 3]]).T
    expected = 0.02 + 0.98 * np.array([0.6, 0.0, 0.0, 0.0])
    assert Affinity(rows, signs)(first, second).numpy() == pytest.approx(expected)


def test_scores_are_those_of_the_whole_matrix():
    generator = torch.Generator().manual_seed(0)
    rows, signs = torch.randn(30, 4, generator=generator).double(), torch.tensor([1, 1, -1, 1.0])
    degrees = torch.arange(30) % 7
    lengths = rows.norm(dim=1)
    cosines = rows @ torch.diag(signs.double()) @ rows.T / torch.outer(lengths, lengths)
    expected = torch.outer(degrees, degrees) * (0.02 + 0.98 * cosines.clamp(min=0))
    pairs = torch.ones(30, 30).triu_(1).nonzero()
    found = affinity_scores(rows, signs.double(), degrees, pairs)
    np.testing.assert_allclose(found, expected[pairs[:, 0], pairs[:, 1]], rtol=1e-8)


def test_draws_the_number_of_different_edges_within_blocks_and_by_degrees(either_way):
    rows, degrees = blocks(100)
    count, totals, inside = int(degrees.sum()) // 2, torch.zeros(200), 0
    for seed in range(10):
        edges = low_rank_edges(
            rows, torch.ones(2).double(), degrees, count, torch.Generator().manual_seed(seed)
        )
        assert edges.shape == (count, 2)
        assert bool((edges[:, 0] < edges[:, 1]).all())
        assert len({tuple(edge) for edge in edges.tolist()}) == count
        totals += torch.bincount(edges.flatten(), minlength=200)
        inside += int((edges // 100).diff(dim=1).eq(0).sum())
    # Pairs across keep a fiftieth of their chance by degrees.
    assert inside / (10 * count) == pytest.approx(1 / 1.02, abs=0.005)
    for degree in (4, 12, 20):
        drawn = totals[degrees == degree].mean() / 10
        assert float(drawn) == pytest.approx(degree, rel=0.06)


ROWS = torch.tensor([[1.0, 0], [2, 0], [1, 1], [0, 1], [0, 3], [0, 0]]).double()
DEGREES = torch.tensor([1, 2, 2, 1, 3, 1])


def chances():
    """Chance of each node, by its row, to be the other end of an edge that starts at a node."""
    weights = edge_weights(DEGREES.numpy())
    unit = ROWS.numpy() / np.maximum(np.linalg.norm(ROWS.numpy(), axis=1, keepdims=True), 1e-9)
    table = weights * (0.02 + 0.98 * np.maximum(unit @ unit.T, 0))
    np.fill_diagonal(table, 0)
    return table / table.sum(axis=1, keepdims=True)


def test_partners_follow_degrees_and_affinity():
    ends = np.cumsum(edge_weights(DEGREES.numpy()))
    rng, affinity = np.random.default_rng(0), Affinity(ROWS, torch.ones(2))
    for node, expected in enumerate(chances()):
        drawn = module._partners(np.full(10_000, node), ends / ends[-1], affinity, rng)
        found = np.bincount(drawn, minlength=6) / 10_000
        assert found == pytest.approx(expected, abs=4 * 0.5 / 10_000**0.5)


def test_one_edge_at_once_has_the_law_of_a_start_and_a_partner():
    law = DEGREES.numpy()[:, None] / 10 * chances()
    law = np.triu(law + law.T)
    found = np.zeros((6, 6))
    for seed in range(1000):
        generator = torch.Generator().manual_seed(seed)
        ((i, j),) = low_rank_edges(ROWS, torch.ones(2), DEGREES, 1, generator).tolist()
        found[i, j] += 1e-3
    assert found == pytest.approx(law, abs=4 * 0.5 / 1000**0.5)


@pytest.mark.parametrize("num_edges", [0, 40, 45, 60])
def test_nearly_complete_and_empty_graphs(num_edges):
    rows, degrees = torch.randn(10, 3).double(), torch.full((10,), 9)
    drawn = low_rank_edges(rows, torch.ones(3), degrees, num_edges, torch.Generator())
    assert len(drawn) == min(num_edges, 45)
    nothing = low_rank_edges(rows, torch.ones(3), 0 * degrees, num_edges, torch.Generator())
    assert nothing.shape == (0, 2)
