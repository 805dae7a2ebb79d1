"""Log odds of node pairs from public attribute rows and released degrees."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Tuned on Citeseer. A learned factor or offset would use up the clipping norm of an edge.
SHARPNESS = 8.0
_OFFSET = -6.0
_FIRST_DEGREE_WEIGHT = 0.5


class AttributeLogits(nn.Module):
    r"""Log odds :math:`l_{ij} = 8 \langle y_i W, y_j W \rangle + c (L_i + L_j) - 6` of pairs.

    Training starts at W = I, where the product is the cosine of the attributes.

    If the two ends of a pair differ, as in a directed or a bipartite graph, each has a matrix of its
    own: :math:`l_{ij} = 8 \langle y_i U, y_j V \rangle + c (L_i + L_j) - 6`. This is the same form
    for rows of width 2 r, :math:`(y_i, 0)` and :math:`(0, y_j)`, with U above V in W.

    Args:
        rank: Width r of the rows y.
        sides: Number of matrices: 1 or 2.

    Attributes:
        weight: W, shape ``(sides * r, r)``.
        degree_weight: c, shape ``(1,)``.
    """

    def __init__(self, rank: int, sides: int = 1) -> None:
        super().__init__()
        self.sides = sides
        self.weight = nn.Parameter(torch.eye(rank).repeat(sides, 1))
        self.degree_weight = nn.Parameter(torch.tensor([_FIRST_DEGREE_WEIGHT]))

    def forward(self, rows: Tensor, levels: Tensor) -> Tensor:
        """Log odds of pairs.

        Args:
            rows: Rows y of both ends, shape ``(P, 2, r)``.
            levels: Levels L of the degrees of both ends, shape ``(P, 2)``.

        Returns:
            Log odds of shape ``(P,)``.
        """
        return self.from_images(self.placed(rows) @ self.weight, levels.sum(1))

    def placed(self, rows: Tensor) -> Tensor:
        """Fill the rows ``(P, 2, r)`` up with zeros; each end then meets its own matrix.

        Returns:
            Rows of shape ``(P, 2, sides * r)``.
        """
        if self.sides == 1:
            return rows
        empty = torch.zeros_like(rows[:, 0])
        first, second = rows.unbind(1)
        return torch.stack([torch.cat([first, empty], 1), torch.cat([empty, second], 1)], 1)

    def from_images(self, images: Tensor, level: Tensor) -> Tensor:
        """Log odds of pairs from the rows y W ``(P, 2, r)`` and the sums of levels ``(P,)``."""
        products = images.prod(1).sum(1)
        return SHARPNESS * products + self.degree_weight * level + _OFFSET


def degree_levels(degrees: Tensor, starts: Sequence[int] = (0,)) -> Tensor:
    """Half the logarithms of degrees ``(N,)`` (released), less the mean of their part.

    A degree of 0 counts as one half.

    Args:
        degrees: Degrees of one or more parts, such as out-degrees and then in-degrees.
        starts: First entry of each part.
    """
    logs = degrees.double().clamp(min=0.5).log() / 2
    parts = logs.tensor_split(starts[1:])
    return torch.cat([part - part.mean() for part in parts]).float()
