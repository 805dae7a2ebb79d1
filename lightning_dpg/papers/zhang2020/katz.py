r"""The truncated Katz index, on eigenvalues and as a product with a matrix.

For an adjacency matrix A the Katz matrix is :math:`H = \sum_{l=1}^L \beta^l A^l`. It has the
eigenvectors of A, and an eigenvalue :math:`\lambda` of A becomes
:math:`F(\lambda) = \sum_{l=1}^L (\beta \lambda)^l`.

* Katz, "A new status index derived from sociometric analysis", 1953.
* Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy", 2020.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array

from lightning_dpg.errors import Refusal


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
