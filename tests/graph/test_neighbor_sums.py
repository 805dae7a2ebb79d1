"""Sums over neighbors are exact, so that neither order nor blocks of edges change a bit of them."""

from fractions import Fraction

import pytest
import torch

from lightning_dpg.graph import neighbor_sums as module
from lightning_dpg.graph.neighbor_sums import neighbor_sums, on_grid

STAR = torch.tensor([[0, leaf] for leaf in range(1, 400)] + [[7, 8], [8, 9]])


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(400, 3, generator=generator, dtype=torch.double)
    return torch.nn.functional.normalize(drawn)


def test_sums_are_those_of_exact_arithmetic_in_any_order_and_in_blocks(rows, monkeypatch):
    values = [[Fraction(value) for value in row] for row in on_grid(rows).tolist()]
    exact = [sum(column) for column in zip(*values[1:], strict=True)]
    sums = neighbor_sums(STAR, rows)
    assert [Fraction(value) for value in sums[0].tolist()] == exact
    monkeypatch.setattr(module, "_COLUMNS", 2)
    monkeypatch.setattr(module, "block_size", lambda _: 7)
    shuffled = STAR.flip(1)[torch.randperm(len(STAR), generator=torch.Generator().manual_seed(1))]
    assert torch.equal(neighbor_sums(shuffled, rows), sums)


def test_an_edge_moves_sums_by_the_rounded_rows_of_its_ends_and_by_no_rounding(rows):
    rounded = torch.from_numpy(on_grid(rows))
    moved = neighbor_sums(STAR, rows) - neighbor_sums(STAR[1:], rows)
    assert torch.equal(moved[0], rounded[1]) and torch.equal(moved[1], rounded[0])
    assert not moved[2:].any()
    assert (rounded.abs() <= rows.abs()).all()
    assert 0 < (rows - rounded).abs().max() < 2**-41  # of 400 nodes: 2^(1 + 9 - 52)
    wide = rows * 1000
    assert torch.equal(neighbor_sums(STAR, wide) - neighbor_sums(STAR[1:], wide), wide_change(wide))


def wide_change(wide):
    """Change of all sums by the edge {0, 1}."""
    change = torch.zeros_like(wide)
    change[[1, 0]] = torch.from_numpy(on_grid(wide))[:2]
    return change
