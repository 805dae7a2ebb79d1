"""Votes and moments of all graphs of five nodes, with extreme rows, and of all their neighbors."""

from functools import cache
from itertools import combinations, product

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.methods.neighbor_votes import clipped
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    node_vote_moment_sensitivity,
    vote_moment_sensitivity,
    vote_sensitivity,
)

N = 5
PAIRS = list(combinations(range(N), 2))
GRAPHS = torch.tensor(list(product((0, 1), repeat=len(PAIRS))), dtype=torch.bool)
NUMBERS = torch.arange(len(PAIRS))


def rows_of(kind: str) -> tuple[Tensor, Tensor]:
    """Rows of attributes and of beliefs: random ones, equal ones, or ones of opposite signs."""
    source = torch.Generator().manual_seed(1)
    if kind == "random":
        drawn = torch.randn(2, N, 3, generator=source, dtype=torch.double)
        return tuple(normalize(drawn, dim=2).unbind())
    equal = torch.eye(N, 3, dtype=torch.double)[:1].expand(N, 3)
    signs = torch.tensor([1, 1, -1, -1, 1])[:, None] if kind == "opposite" else 1
    return equal, equal * signs


@cache
def votes_of(kind: str) -> Tensor:
    """Votes of all graphs, shape ``(G, N, k)``."""
    edges, (_, beliefs) = torch.tensor(PAIRS), rows_of(kind)
    return torch.stack([neighbor_sums(edges[graph], beliefs) for graph in GRAPHS])


def changes(table, flips):
    """Largest change of a table by each of some sets of flipped pairs."""
    codes = (GRAPHS.long() * 2 ** (len(PAIRS) - 1 - NUMBERS)).sum(1)
    assert torch.equal(codes, torch.arange(len(GRAPHS)))
    moves = [sum(2 ** (len(PAIRS) - 1 - pair) for pair in flip) for flip in flips]
    rows = table.flatten(1)
    return max(float((rows[codes ^ move] - rows).norm(dim=1).max()) for move in moves)


@pytest.mark.parametrize("kind", ["random", "equal", "opposite"])
def test_an_edge_moves_votes_and_moment_by_their_sensitivities(kind):
    rows, edges = rows_of(kind)[0], [[pair] for pair in range(len(PAIRS))]
    votes = changes(votes_of(kind), edges)
    moment = changes(rows.T @ votes_of(kind), edges)
    assert votes <= vote_sensitivity()
    assert moment <= vote_moment_sensitivity()
    assert votes == pytest.approx(vote_sensitivity(), rel=1e-5)
    if kind != "random":
        assert moment == pytest.approx(vote_moment_sensitivity(), rel=1e-5)


@pytest.mark.parametrize("kind", ["random", "equal", "opposite"])
@pytest.mark.parametrize("clip", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_edges_of_one_node_move_the_clipped_moment_by_its_sensitivity(kind, clip, most):
    votes = votes_of(kind)
    flips = [
        flip
        for node in range(N)
        for size in range(1, most + 1)
        for flip in combinations([i for i, pair in enumerate(PAIRS) if node in pair], size)
    ]
    short = clipped(votes.flatten(0, 1), clip).view_as(votes)
    moved = changes(rows_of(kind)[0].T @ short, flips)
    assert moved <= node_vote_moment_sensitivity(most, clip)
    if kind == "equal" and clip >= 3:  # a node with all others, which have no other edge
        assert moved == pytest.approx(most + min(most, 3), rel=1e-5)


def test_a_node_that_keeps_other_edges_turns_its_votes_from_one_side_to_the_other():
    """A bound of D + c, as if the node lost all of its edges, would be too small here."""
    most, clip = 6, 1.0
    others = torch.arange(1, 9)
    star = torch.stack([torch.zeros_like(others), others], 1)
    rows = torch.ones(9, 1, dtype=torch.double)
    beliefs = rows.clone()
    beliefs[7:] = -1  # two neighbors that stay
    before, after = (
        rows.T @ clipped(neighbor_sums(edges, beliefs), clip) for edges in (star, star[6:])
    )
    moved = float((before - after).norm())
    assert most + clip < moved <= node_vote_moment_sensitivity(most, clip)
    assert moved == pytest.approx(most + 2 * clip)
