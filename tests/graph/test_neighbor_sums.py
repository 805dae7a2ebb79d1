"""Sums over neighbors are exact, so that neither order nor blocks of edges change a bit of them."""

from fractions import Fraction

import pytest
import torch

from lightning_dpg.graph import edge_statistics as module
from lightning_dpg.graph.edge_statistics import neighbor_sums, on_grid

STAR = torch.tensor([[0, leaf] for leaf in range(1, 400)] + [[7, 8], [8, 9]])


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(400, 3, generator=generator, dtype=torch.double)
    return torch.nn.functional.normalize(drawn)


def rounded(rows):
    steps, step = on_grid(rows)
    return torch.from_numpy(steps * step)


def test_sums_are_those_of_exact_arithmetic_in_any_order_and_in_blocks(rows, monkeypatch):
    leaves = [[Fraction(value) for value in row] for row in rounded(rows)[1:].tolist()]
    exact, sums = [sum(column) for column in zip(*leaves, strict=True)], neighbor_sums(STAR, rows)
    assert [Fraction(value) for value in sums[0].tolist()] == exact
    monkeypatch.setattr(module, "_COLUMNS", 2)
    monkeypatch.setattr(module, "block_size", lambda _: 7)
    shuffled = STAR.flip(1)[torch.randperm(len(STAR), generator=torch.Generator().manual_seed(1))]
    assert torch.equal(neighbor_sums(shuffled, rows), sums)


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_an_edge_moves_sums_by_the_rounded_rows_of_its_ends_and_by_no_rounding(rows, size):
    rows = size * rows
    moved = neighbor_sums(STAR, rows) - neighbor_sums(STAR[1:], rows)
    assert torch.equal(moved[:2], rounded(rows)[:2].flip(0)) and not moved[2:].any()
    assert (rounded(rows).abs() <= rows.abs()).all()
    assert 0 < (rows - rounded(rows)).abs().max() < size * 2**-41  # a step for 400 nodes is 2^-42
    steps, _ = on_grid(rows)
    assert 400 * abs(steps).max() < 2**52 and (steps == steps.astype(int)).all()
