r"""The matrices whose eigenvectors are released: the adjacency matrix and truncated Katz matrices.

For an adjacency matrix A the Katz matrix is :math:`H = \sum_{l=1}^L \beta^l A^l`. It has the
eigenvectors of A, and an eigenvalue :math:`\lambda` of A becomes
:math:`F(\lambda) = \sum_{l=1}^L (\beta \lambda)^l`.

* Katz, "A new status index derived from sociometric analysis", 1953.
* Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy", 2020.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array
from torch import Tensor

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


class KatzMatrix(NamedTuple):
    r"""The matrix :math:`\sum_{l \le 2h+1} \beta^l A^l` of an adjacency matrix A, by public facts.

    Attributes:
        decay: Decay :math:`\beta`.
        hops: Hops h.
    """

    decay: float
    hops: int

    @property
    def terms(self) -> int:
        """Number of terms; as it is odd, eigenvalues determine those of the adjacency matrix."""
        return 2 * self.hops + 1

    def times(self, adjacency: csr_array, block: Tensor) -> Tensor:
        """Product with a block of vectors of shape ``(N, K)`` (private)."""
        product = katz_product(adjacency, block.cpu().numpy(), self.decay, self.terms)
        return torch.from_numpy(product).to(block.device)

    def signal_to_noise(self, max_degree: int, num_nodes: int, rank: int, std: float) -> float:
        """Largest possible ratio over all graphs (public).

        The signal is the largest eigenvalue, the noise a spectral norm.

        Args:
            max_degree: Largest degree that a node can have.
            num_nodes: Number of nodes N.
            rank: Number K of vectors.
            std: Standard deviation of the noise in a product, positive.
        """
        signal = float(katz(np.array([float(max_degree)]), self.decay, self.terms)[0])
        return signal / (std * (math.sqrt(num_nodes) + math.sqrt(rank)))


ADJACENCY = KatzMatrix(decay=1.0, hops=0)
"""The adjacency matrix itself."""
