"""The matrices whose eigenvectors are released: the adjacency matrix and Katz matrices."""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lightning_dpg.graph.katz import katz, katz_product


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
