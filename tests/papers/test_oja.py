"""Oja's rule finds the leading eigenvectors, also beside large negative eigenvalues."""

import numpy as np
import pytest
import torch
from torch import nn

from lightning_dpg.papers.zhang2020.power_method import Oja, orthonormal


def turned(matrix, rank, momentum, steps):
    generator = torch.Generator().manual_seed(0)
    basis = nn.Parameter(orthonormal(torch.randn(len(matrix), rank, generator=generator).double()))
    optimizer = Oja([basis], momentum)
    for _ in range(steps):
        basis.grad = matrix @ basis.detach()
        optimizer.step()
    return basis.detach(), optimizer


def with_values(values, seed=0):
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    return torch.from_numpy(vectors * values @ vectors.T), torch.from_numpy(vectors)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_finds_the_leading_eigenvectors_in_their_order(momentum):
    matrix, vectors = with_values(np.array([9.0, 6, 3, 1, 0.5, 0, -0.5, -1]))
    basis, _ = turned(matrix, 3, momentum, 100)
    assert (basis.T @ vectors[:, :3]).abs().numpy() == pytest.approx(np.eye(3), abs=1e-2)


def test_momentum_passes_over_an_eigenvalue_that_is_larger_but_negative():
    matrix, vectors = with_values(np.array([5.0, 1, 0, 0, 0, -6]))
    for momentum, place in ((0.0, 5), (0.9, 0)):
        basis, _ = turned(matrix, 1, momentum, 150)
        assert float(basis[:, 0] @ vectors[:, place]) ** 2 == pytest.approx(1, abs=1e-3)


def test_a_step_is_the_decomposition_of_the_mean_of_products():
    basis = nn.Parameter(torch.eye(4, 2).double())
    optimizer, total = Oja([basis], 0.5), np.zeros((4, 2))
    for seed in range(3):
        basis.grad = torch.randn(4, 2, generator=torch.Generator().manual_seed(seed)).double()
        total = 0.5 * total + basis.grad.numpy()
        optimizer.step()
        expected = np.linalg.cholesky(total.T @ total)  # R, whose diagonal is positive
        assert (basis.detach().numpy() @ expected.T) == pytest.approx(total)


def test_its_state_resumes():
    matrix, _ = with_values(np.array([9.0, 6, 3, 1]))
    whole, _ = turned(matrix, 2, 0.9, 7)
    part, optimizer = turned(matrix, 2, 0.9, 4)
    basis = nn.Parameter(part)
    again = Oja([basis], 0.9)
    again.load_state_dict(optimizer.state_dict())
    for _ in range(3):
        basis.grad = matrix @ basis.detach()
        again.step()
    assert torch.equal(basis.detach(), whole)


@pytest.mark.parametrize("momentum", [-0.1, 1.0])
def test_refuses_a_momentum_that_forgets_nothing(momentum):
    with pytest.raises(ValueError, match="momentum"):
        Oja([nn.Parameter(torch.eye(2))], momentum)
