r"""The truncated Katz index, on eigenvalues and as a product, and graphs from Katz matrices.

For an adjacency matrix A the Katz matrix is :math:`H = \sum_{l=1}^L \beta^l A^l`. It has the
eigenvectors of A, and an eigenvalue :math:`\lambda` of A becomes
:math:`F(\lambda) = \sum_{l=1}^L (\beta \lambda)^l`.

* Katz, "A new status index derived from sociometric analysis", 1953.
* Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy", 2020.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array
from torch import Tensor

from lightning_dpg.errors import Refusal

_BLOCK = 2**22  # pair products in memory at a time


def katz(values: NDArray[np.float64], decay: float, terms: int) -> NDArray[np.float64]:
    r"""Map eigenvalues of A to eigenvalues :math:`F(\lambda)` of its Katz matrix: ``(K,)``."""
    total = np.zeros_like(values)
    for _ in range(terms):
        total = decay * values * (1 + total)
    return total


def inverse_katz(values: NDArray[np.float64], decay: float, terms: int) -> NDArray[np.float64]:
    r"""Map eigenvalues of the Katz matrix to eigenvalues of A, the inverse of :func:`katz`.

    Args:
        values: Eigenvalues :math:`F(\lambda)`, shape ``(K,)``.
        decay: Decay :math:`\beta`, positive.
        terms: Number of terms L; it must be odd, since F ascends everywhere only then.
    """
    if terms % 2 == 0:
        raise Refusal(f"terms must be odd for the Katz index to be invertible, got {terms}")

    def difference(scaled: float, value: float) -> float:
        return float(katz(np.array([scaled]), 1.0, terms)[0]) - value

    # |F(x)| >= |x| for x below -1 and above 0.
    bounds = 2 * np.abs(values) + 2
    pairs = zip(values.tolist(), bounds.tolist(), strict=True)
    scaled = [brentq(difference, -bound, bound, args=(value,)) for value, bound in pairs]
    return np.array(scaled) / decay


def katz_product(
    matrix: csr_array, block: NDArray[np.float64], decay: float, terms: int
) -> NDArray[np.float64]:
    """Multiply the Katz matrix and a block of vectors, by ``terms`` products with A.

    Args:
        matrix: Adjacency matrix A of shape ``(N, N)``.
        block: Vectors as columns, shape ``(N, K)``.
        decay: Decay of the Katz index.
        terms: Number of terms; with one term and decay 1 it is the product with A.

    Returns:
        Array of shape ``(N, K)``.
    """
    total = matrix @ block if decay == 1 else decay * (matrix @ block)
    for _ in range(terms - 1):
        total = decay * (matrix @ (block + total))
    return total


def laplacian_rows(rows: Tensor, alpha: float) -> Tensor:
    r"""Factor the graph whose Laplacian PrivCom derives from a Katz matrix :math:`H = XX^T`.

    The paper takes :math:`L = -2 [(I - J/n) H (I - J/n) + \alpha I]^+`. With the centered rows W
    that matrix is positive definite, and its inverse :math:`\frac{1}{\alpha} (I - W (\alpha I + W^T
    W)^{-1} W^T)` takes the Cholesky factor C of a K x K matrix: an edge {i, j} has the weight
    :math:`-L_{ij} = -\frac{2}{\alpha} y_i^T y_j` with the rows y of :math:`W C^{-T}`.

    The formula is that of effective resistances, which are distances. A Katz index is large for
    near nodes; the edges therefore come out between nodes that are far apart.

    Args:
        rows: Factor X of shape ``(N, K)``.
        alpha: Regularization, positive.

    Returns:
        Rows z of shape ``(N, K)``; the weight of an edge is minus the product of its ends' rows.

    References:
        Courrieu, "Fast computation of Moore-Penrose inverse matrices", 2005, for a full matrix.
    """
    centered = rows.double() - rows.double().mean(dim=0)
    inner = centered.T @ centered + alpha * torch.eye(rows.shape[1], dtype=torch.double)
    factor = torch.linalg.cholesky(inner)
    solved = torch.linalg.solve_triangular(factor, centered.T, upper=False).T
    return solved * (2 / alpha) ** 0.5


def heaviest_pairs(rows: Tensor, signs: Tensor, count: int) -> Tensor:
    r"""Find the pairs of largest positive :math:`\sum_k s_k x_{ik} x_{jk}`, in blocks of pairs.

    Args:
        rows: Rows x of shape ``(N, K)``.
        signs: Signs s of shape ``(K,)``.
        count: Number of pairs wanted; there are fewer if fewer are positive.

    Returns:
        Rows ``i < j`` of shape ``(count, 2)`` in lexicographic order.
    """
    num_nodes, step = len(rows), max(1, _BLOCK // max(len(rows), 1))
    weights, pairs = rows.new_empty(0), torch.empty(0, 2, dtype=torch.long)
    for start in range(0, num_nodes, step):
        products = (rows[start : start + step] * signs) @ rows.T
        first, second = (products.triu(start + 1) > 0).nonzero().T
        weights = torch.cat([weights, products[first, second]])
        pairs = torch.cat([pairs, torch.stack([first + start, second], dim=1)])
        heaviest = weights.topk(min(count, len(weights))).indices.sort().values
        weights, pairs = weights[heaviest], pairs[heaviest]
    return pairs
