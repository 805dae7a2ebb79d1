"""PrivCom's formulas as printed, where they differ from the corrected ones."""

import math

import torch
from torch import Tensor

from lightning_dpg.graph.katz import heaviest_pairs, laplacian_rows
from lightning_dpg.privacy.ledger import Budget

_ALPHA = 5e-6  # as printed


def printed_sigma(budget: Budget, releases: int) -> float:
    r"""Noise :math:`\sqrt{2 \ln(1.25 / \delta_i)} / \epsilon_i` of each release, by equal parts."""
    if math.isinf(budget.epsilon):
        return 0.0
    return math.sqrt(2 * math.log(1.25 * releases / budget.delta)) * releases / budget.epsilon


def printed_direction(basis: Tensor, noisy: Tensor, steps: int, sigma: float) -> Tensor:
    r"""The sum :math:`V + \eta (HV + \mathrm{noise})` over its rate :math:`\eta`, whose QR is equal.

    The rate is :math:`\eta = 1 / (\gamma \sigma \sqrt n)` with the number of steps :math:`\gamma`.

    Args:
        basis: V of shape ``(N, K)``.
        noisy: Noisy product, shape ``(N, K)``.
        steps: Number of steps.
        sigma: Standard deviation of the noise.
    """
    return steps * sigma * len(basis) ** 0.5 * basis + noisy


def printed_edges(rows: Tensor, num_edges: int) -> Tensor:
    """The heaviest edges of the Laplacian that is read off a Katz matrix, shape ``(M, 2)``.

    Negative weights are removed, so that there may be fewer than ``num_edges``.
    """
    found = laplacian_rows(rows, _ALPHA)
    return heaviest_pairs(found, -torch.ones(found.shape[1], dtype=found.dtype), num_edges)
