r"""The moment of attributes over edges, :math:`S = \sum_{(i,j)} (y_i y_j^T + y_j y_i^T) / 2`.

Where the ends of an edge differ, as in a directed or a bipartite graph, it is
:math:`S = \sum_{(i,j)} y_i y_j^T`.
"""

import math

import torch
from torch import Tensor

# Edges whose rows are in memory at a time.
_CHUNK = 65_536


def edge_moment(edges: Tensor, rows: Tensor, *, two_sided: bool = False) -> Tensor:
    """Compute S in double precision.

    Args:
        edges: Records of shape ``(M, 2)`` (private).
        rows: Rows y of all nodes (public), shape ``(N, r)``.
        two_sided: Whether the ends of an edge differ.

    Returns:
        Matrix of shape ``(r, r)``, symmetric unless ``two_sided``.
    """
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.double)
    for part in torch.split(edges, _CHUNK):
        first, second = rows.double()[part].unbind(1)
        total += first.T @ second
    return total if two_sided else (total + total.T) / 2


def as_vector(matrix: Tensor) -> Tensor:
    r"""Write a symmetric matrix ``(r, r)`` as a vector of the same length, ``(r (r + 1) / 2,)``.

    Entries beside the diagonal occur twice in the matrix, so they are multiplied by
    :math:`\sqrt 2`. Noise of standard deviation s on the vector is noise of s on the diagonal of
    the matrix, and of :math:`s / \sqrt 2` beside it.
    """
    return (matrix * _weights(len(matrix)))[*_upper(len(matrix))]


def as_matrix(vector: Tensor) -> Tensor:
    """Undo :func:`as_vector`."""
    rank = math.isqrt(2 * len(vector))
    upper = torch.zeros(rank, rank, dtype=vector.dtype)
    upper[*_upper(rank)] = vector
    return (upper + upper.triu(1).T) / _weights(rank)


def bilinear_form(
    moment: Tensor, rows: Tensor, ridge: float, others: Tensor | None = None
) -> Tensor:
    r"""Weights :math:`(Y^T Y + \lambda I)^{-1} S (Z^T Z + \lambda I)^{-1}` of the scores of pairs.

    They are those of the ridge regression of the adjacency matrix on products of attributes.

    Args:
        moment: Released S, shape ``(r, r)``.
        rows: Public rows Y of the nodes that can be first ends, shape ``(N, r)``.
        ridge: The ridge lambda.
        others: Public rows Z of those that can be second ends; by default Y.
    """
    gram = _ridge_gram(rows, ridge)
    other = gram if others is None else _ridge_gram(others, ridge)
    half = torch.linalg.solve(gram, moment)
    # Row by row as in a release: both then score by the same order of sums.
    return torch.linalg.solve(other, half.T).T.contiguous()


def moment_of_form(form: Tensor, rows: Tensor, ridge: float) -> Tensor:
    """Undo :func:`bilinear_form`: the moment S of shape ``(r, r)`` behind released weights."""
    gram = _ridge_gram(rows, ridge)
    return gram @ form @ gram


def _ridge_gram(rows: Tensor, ridge: float) -> Tensor:
    gram = rows.double().T @ rows.double()
    gram.diagonal().add_(ridge)
    return gram


def _upper(rank: int) -> Tensor:
    return torch.triu_indices(rank, rank)


def _weights(rank: int) -> Tensor:
    weights = torch.full((rank, rank), math.sqrt(2), dtype=torch.double)
    weights.fill_diagonal_(1.0)
    return weights
