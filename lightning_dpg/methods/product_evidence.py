"""What noisy products with the adjacency matrix tell an attacker who knows all edges but a few."""

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.graph import adjacency
from lightning_dpg.methods.single_graph.privcom.matrix import PrivateMatrix
from lightning_dpg.privacy.ledger import LedgerEntry

# Where there is no noise, evidence would be infinite.
_LEAST_STD = 1e-3


def release_evidence(
    matrix: PrivateMatrix,
    noisy: Tensor,
    block: Tensor,
    entry: LedgerEntry,
    pairs: Tensor,
    known: Data,
) -> Tensor:
    """Logarithms of likelihood ratios of edges, given a noisy product or noisy eigenvalues.

    They are exact for a product with the adjacency matrix where no node is in two canaries.

    Args:
        matrix: What was multiplied with the block.
        noisy: Product with the block, shape ``(N, K)``, or from both sides, shape ``(K, K)``.
        block: What the matrix was multiplied with, shape ``(N, K)``.
        entry: What was booked for it.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known: Graph of all other edges.

    Returns:
        Tensor of shape ``(P,)``, higher speaks for an edge.
    """
    expected = matrix.times(_half_canaries(pairs, known), block)
    if entry.key == "products":
        surplus = noisy - expected
    else:
        surplus = block @ (noisy - block.T @ expected)
    std = entry.sensitivity * entry.noise_multiplier
    return matrix.decay * _change(surplus, block, pairs) / max(std, _LEAST_STD) ** 2


def estimate_evidence(
    rows: Tensor, signs: Tensor, basis: Tensor, terms: dict[str, Any], pairs: Tensor, known: Data
) -> Tensor:
    """How much a low-rank estimate of the adjacency matrix speaks for each pair.

    Args:
        rows: Rows x of the estimate, shape ``(N, K)``.
        signs: Signs of the estimate, shape ``(K,)``.
        basis: Eigenvectors of shape ``(N, K)``.
        terms: On which products were released.
        pairs: Canaries of shape ``(P, 2)``.
        known: Graph of all other edges.
    """
    expected = torch.from_numpy(_half_canaries(pairs, known) @ basis.numpy())
    surplus = (rows * signs) @ (rows.T @ basis) - expected
    std = terms["sensitivity"] * terms["noise_multiplier"]
    return _change(surplus, basis, pairs) / max(std, _LEAST_STD) ** 2


def _half_canaries(pairs: Tensor, known: Data) -> csr_array:
    """Expected adjacency matrix of shape ``(N, N)``."""
    matrix = adjacency(known)
    first, second = pairs.numpy().T
    canaries = csr_array((np.full(len(pairs), 0.5), (first, second)), shape=matrix.shape)
    return matrix + canaries + canaries.T


def _change(surplus: Tensor, block: Tensor, pairs: Tensor) -> Tensor:
    """Product of a surplus ``(N, K)`` with what each pair as an edge changes: shape ``(P,)``.

    The edge {i, j} adds row j of the block to row i of the product, and row i to row j.
    """
    first, second = pairs.T
    return (surplus[first] * block[second] + surplus[second] * block[first]).sum(dim=1)
