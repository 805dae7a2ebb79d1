"""Networks of GAP: an encoder of public rows, and a classifier of the rows of all hops.

Sajadmanesh et al., "GAP: Differentially Private Graph Neural Networks with Aggregation Perturbation",
2023, Figure 3. Batch normalization, dropout and SELU come in the order of the authors' code.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class Encoder(nn.Module):
    """Two layers that map the row of a node to a row of length 1, and a head for its class.

    Args:
        row_dim: Width of the rows.
        hidden_dim: Width d of the encoded rows.
        num_classes: Number of classes C.
        dropout: Probability of dropout.
    """

    def __init__(self, row_dim: int, hidden_dim: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(row_dim, hidden_dim),
            *_activation(hidden_dim, dropout),
            nn.Linear(hidden_dim, hidden_dim),
        )
        self.head = nn.Sequential(
            *_activation(hidden_dim, dropout), nn.Linear(hidden_dim, num_classes)
        )

    def encode(self, rows: Tensor) -> Tensor:
        """Encode rows of shape ``(B, row_dim)``: rows of shape ``(B, d)`` and length 1."""
        return normalize(self.layers(rows))

    def forward(self, rows: Tensor) -> Tensor:
        """Compute the logits of the classes of rows ``(B, row_dim)``: shape ``(B, C)``."""
        logits: Tensor = self.head(self.encode(rows))
        return logits


class HopClassifier(nn.Module):
    """A layer for each hop, and a head for the class of a node on all of them side by side.

    Args:
        num_hops: Number K of hops, the node's own row among them.
        hidden_dim: Width d of the rows of each hop.
        num_classes: Number of classes C.
        dropout: Probability of dropout.
    """

    def __init__(self, num_hops: int, hidden_dim: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(hidden_dim, hidden_dim) for _ in range(num_hops)])
        width = num_hops * hidden_dim
        self.head = nn.Sequential(*_activation(width, dropout), nn.Linear(width, num_classes))

    def forward(self, hops: Tensor) -> Tensor:
        """Compute the logits of the classes of nodes: ``(B, K, d)`` to ``(B, C)``."""
        outputs = [layer(hop) for layer, hop in zip(self.layers, hops.unbind(1), strict=True)]
        logits: Tensor = self.head(normalize(torch.cat(outputs, 1)))
        return logits


def _activation(width: int, dropout: float) -> list[nn.Module]:
    return [nn.BatchNorm1d(width), nn.Dropout(dropout), nn.SELU()]
