"""Scores of noisy products with the adjacency matrix."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.graph.graph import adjacency

# Finite value for a score without noise.
_LEAST_STD = 1e-3


def product_score(observation: Observation) -> Tensor:
    """Return log-likelihood ratios of edges, given a noisy product or noisy eigenvalues.

    They are exact for a product with the adjacency matrix where no node is in two canaries. The
    one-sided product has the shape ``(N, K)``, the two-sided product ``(K, K)``. Single
    eigenvalues, which the published variant releases, get no score.

    Args:
        observation: The release of ``products`` or ``eigenvalues``.
    """
    if observation.noisy.dim() < 2:
        return torch.zeros(len(observation.pairs))
    method, noisy, is_product = (
        observation.method,
        observation.noisy.cpu(),
        observation.entry.key == "products",
    )
    block = (method.shown_block() if is_product else method.vectors.detach()).cpu()
    expected = method.matrix.times(
        _half_canaries(observation.pairs, observation.known_graph), block
    )
    surplus = noisy - expected if is_product else block @ (noisy - block.T @ expected)
    change = method.matrix.decay * _change(surplus, block, observation.pairs)
    std = observation.entry.scale
    return change / max(std, _LEAST_STD) ** 2


def estimate_score(
    rows: Tensor, signs: Tensor, basis: Tensor, std: float, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by a low-rank estimate of the adjacency matrix.

    Args:
        rows: Rows x of the estimate, shape ``(N, K)``.
        signs: Signs of the estimate, shape ``(K,)``.
        basis: Eigenvectors of shape ``(N, K)``.
        std: Standard deviation of the noise of a product.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    expected = torch.from_numpy(_half_canaries(pairs, known_graph) @ basis.numpy())
    surplus = (rows * signs) @ (rows.T @ basis) - expected
    return _change(surplus, basis, pairs) / max(std, _LEAST_STD) ** 2


def _half_canaries(pairs: Tensor, known_graph: Data) -> csr_array:
    """Return the mean adjacency matrix ``(N, N)`` if each canary is an edge with probability 1/2."""
    matrix = adjacency(known_graph)
    first, second = pairs.numpy().T
    canaries = csr_array((np.full(len(pairs), 0.5), (first, second)), shape=matrix.shape)
    return matrix + canaries + canaries.T


def _change(surplus: Tensor, block: Tensor, pairs: Tensor) -> Tensor:
    """Return the product of a surplus ``(N, K)`` and the change by each pair, shape ``(P,)``.

    The edge {i, j} adds row j of the block to row i of the product, and row i to row j.
    """
    first, second = pairs.T
    return (surplus[first] * block[second] + surplus[second] * block[first]).sum(dim=1)
