"""The moment of attributes: every edge and every node of small graphs, and the worst rows."""

from itertools import combinations, pairwise

import pytest
import torch
from torch.nn.functional import normalize

from lightning_dpg.graph.edge_statistics import edge_moment
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    edge_moment_sensitivity,
    node_moment_sensitivity,
)

N, RANK = 7, 3
PAIRS = torch.combinations(torch.arange(N))


def moment_by_hand(edges, rows):
    """S as the sum of outer products of one edge after the other."""
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.double)
    for i, j in edges.tolist():
        total += (torch.outer(rows[i], rows[j]) + torch.outer(rows[j], rows[i])) / 2
    return total


def changes_by_edges(rows):
    """Changes of S by each pair, added to the graph of all earlier pairs."""
    moments = [edge_moment(PAIRS[:count], rows) for count in range(len(PAIRS) + 1)]
    return torch.stack([(b - a).norm() for a, b in pairwise(moments)])


def changes_by_nodes(rows, max_degree):
    """Changes of S by each node with each set of at most ``max_degree`` neighbors."""
    stars = [
        torch.tensor([(node, other) for other in others])
        for node in range(N)
        for size in range(1, max_degree + 1)
        for others in combinations([other for other in range(N) if other != node], size)
    ]
    return torch.stack([edge_moment(star, rows).norm() for star in stars])


@pytest.mark.parametrize("seed", range(3))
def test_the_moment_is_the_sum_over_edges(seed):
    source = torch.Generator().manual_seed(seed)
    rows = torch.randn(N, RANK, generator=source, dtype=torch.double)
    edges = PAIRS[torch.rand(len(PAIRS), generator=source) < 0.5]
    torch.testing.assert_close(edge_moment(edges, rows), moment_by_hand(edges, rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_each_ordered_pair_moves_the_moment_by_its_own_product(kind, seed):
    """All records of small graphs, added one after the other in both kinds."""
    source = torch.Generator().manual_seed(seed)
    rows = normalize(torch.randn(N, RANK, generator=source, dtype=torch.double))
    rows[1] = rows[5]  # attains the bound
    ordered = [(i, j) for i in range(N) for j in range(N) if i != j]
    pairs = torch.tensor(
        ordered if kind == "directed" else [e for e in ordered if e[0] < 3 <= e[1]]
    )
    moments = [edge_moment(pairs[:count], rows, two_sided=True) for count in range(len(pairs) + 1)]
    changes = [b - a for a, b in pairwise(moments)]
    for (i, j), change in zip(pairs.tolist(), changes, strict=True):
        torch.testing.assert_close(change, torch.outer(rows[i], rows[j]))
    norms = torch.stack([change.norm() for change in changes])
    assert norms.max() <= edge_moment_sensitivity()
    assert norms.max() == pytest.approx(edge_moment_sensitivity(), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("length", [1.0, 1.7])
def test_no_edge_and_no_node_moves_the_moment_further(seed, length):
    source = torch.Generator().manual_seed(seed)
    rows = length * normalize(torch.randn(N, RANK, generator=source, dtype=torch.double))
    assert changes_by_edges(rows).max() <= edge_moment_sensitivity(length)
    for max_degree in (1, 2, 4):
        bound = node_moment_sensitivity(max_degree, length)
        assert changes_by_nodes(rows, max_degree).max() <= bound


def test_equal_rows_attain_both_bounds():
    rows = normalize(torch.ones(N, RANK, dtype=torch.double))
    assert changes_by_edges(rows).max() == pytest.approx(edge_moment_sensitivity(), rel=1e-5)
    worst = changes_by_nodes(rows, 3).max()
    assert worst == pytest.approx(node_moment_sensitivity(3), rel=1e-5)
    assert worst > 2.9 * edge_moment_sensitivity()  # an edge's noise does not cover a node
