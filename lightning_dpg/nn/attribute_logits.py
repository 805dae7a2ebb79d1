"""Log odds of node pairs from public attribute rows and released degrees."""

import torch
from torch import Tensor, nn

# Tuned on Citeseer. A learned factor or offset would use up the clipping norm of an edge.
SHARPNESS = 8.0
_OFFSET = -6.0
_FIRST_DEGREE_WEIGHT = 0.5


class AttributeLogits(nn.Module):
    r"""Log odds :math:`l_{ij} = 8 \langle y_i W, y_j W \rangle + c (L_i + L_j) - 6` of pairs.

    Training starts at W = I, where the product is the cosine of the attributes.

    Args:
        rank: Width r of the rows y.

    Attributes:
        weight: W, shape ``(r, r)``.
        degree_weight: c, shape ``(1,)``.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(rank))
        self.degree_weight = nn.Parameter(torch.tensor([_FIRST_DEGREE_WEIGHT]))

    def forward(self, rows: Tensor, levels: Tensor) -> Tensor:
        """Log odds of pairs.

        Args:
            rows: Rows y of both ends, shape ``(P, 2, r)``.
            levels: Levels L of the degrees of both ends, shape ``(P, 2)``.

        Returns:
            Log odds of shape ``(P,)``.
        """
        return self.from_images(rows @ self.weight, levels.sum(1))

    def from_images(self, images: Tensor, level: Tensor) -> Tensor:
        """Log odds of pairs from the rows y W ``(P, 2, r)`` and the sums of levels ``(P,)``."""
        products = images.prod(1).sum(1)
        return SHARPNESS * products + self.degree_weight * level + _OFFSET


def degree_levels(degrees: Tensor) -> Tensor:
    """Half the logarithms of degrees ``(N,)`` (released), less their mean.

    A degree of 0 counts as one half.
    """
    logs = degrees.double().clamp(min=0.5).log() / 2
    return (logs - logs.mean()).float()
