"""Losses, traffic and inner products of low-rank models equal their formulas."""

import numpy as np
import torch

from lightning_dpg.nn import InnerProductDecoder, LowRankLogits
from lightning_dpg.nn.low_rank import inner_products


def test_loss_is_the_mean_cross_entropy_of_both_directions():
    model = LowRankLogits(5, 2, torch.Generator().manual_seed(0))
    edges = torch.tensor([[0, 1], [1, 4], [2, 3]])
    logits = (model.left @ model.right).detach()
    starts, ends = [0, 1, 2, 1, 4, 3], [1, 4, 3, 0, 1, 2]
    expected = torch.nn.functional.cross_entropy(logits[starts], torch.tensor(ends))
    torch.testing.assert_close(model.loss(edges), expected)


def test_likelihood_is_the_traffic_of_the_stationary_walk():
    model = LowRankLogits(6, 3, torch.Generator().manual_seed(1))
    with torch.no_grad():
        model.left *= 20
    transitions = torch.softmax(model.left @ model.right, 1).detach().double().numpy()
    values, vectors = np.linalg.eig(transitions.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    traffic = (stationary / stationary.sum())[:, None] * transitions
    expected = np.maximum(traffic, traffic.T)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.likelihood(), expected, atol=1e-5)
    pairs = torch.tensor([[0, 3], [5, 2]])
    np.testing.assert_allclose(model.score(pairs), expected[[0, 5], [3, 2]], atol=1e-5)


def test_a_walk_on_two_sides_has_traffic_between_them():
    """Without its lazy steps the walk would never settle."""
    model = LowRankLogits(4, 4)
    with torch.no_grad():
        model.left.copy_(50 * torch.eye(4))
        model.right.copy_(torch.eye(4)[[2, 3, 0, 1]])
    expected = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]) / 4
    torch.testing.assert_close(model.likelihood(), expected)


def test_inner_products_of_rows(monkeypatch):
    model = InnerProductDecoder(3, 4)
    affinity, intensity = torch.tensor([[1.0, 2], [3, 4], [0, 1]]), torch.tensor([[1.0], [-2], [3]])
    model.fit(affinity, intensity)
    assert model.score(torch.tensor([[0, 1], [1, 2]])).tolist() == [11, 4]
    (rows,) = model.likelihood_rows()
    assert rows.tolist() == [[1, 0, 3], [0, 4, 0], [3, 0, 9]]
    monkeypatch.setattr("lightning_dpg.nn.low_rank._ENTRIES_AT_ONCE", 6)
    blocks = [block.tolist() for block in model.likelihood_rows()]
    assert blocks == [[[1, 0, 3], [0, 4, 0]], [[9]]]  # pairs above the diagonal, each once
    model.fit(affinity[:, :1], intensity)  # narrower rows leave nothing of wider ones
    assert model.score(torch.tensor([[0, 1], [1, 2]])).tolist() == [3, 0]


def test_inner_products_do_not_depend_on_blocks_of_pairs():
    rows = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    pairs = torch.randint(9, (70_000, 2), generator=torch.Generator().manual_seed(1))  # two blocks
    products = inner_products(rows, pairs)
    torch.testing.assert_close(products, (rows @ rows.T)[pairs[:, 0], pairs[:, 1]])
    assert inner_products(rows, pairs[:0]).shape == (0,)
