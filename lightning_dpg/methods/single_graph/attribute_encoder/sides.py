"""Public rows of nodes: with components of their own on each side of a bipartite graph."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lightning_dpg.methods.single_graph.attribute_encoder.rows import AttributeRows


def fit_rows(
    features: AttributeRows, right: AttributeRows | None, attributes: Tensor, num_left: int | None
) -> Tensor:
    """Find the components, and compute the rows of all nodes, averaged with similar nodes.

    The sides of a bipartite graph may have different columns, and one side may have far more nodes:
    common components would describe the larger side alone.

    Args:
        features: Rows of all nodes, or of the left ones.
        right: Rows of the right nodes; None without sides.
        attributes: Attributes of shape ``(N, F)`` (public).
        num_left: Number of left nodes, which come first; None without sides.

    Returns:
        Rows of shape ``(N, r)``.
    """
    if right is None:
        features.fit(attributes)
        return features.smoothed(attributes)
    parts = attributes[:num_left], attributes[num_left:]
    features.fit(parts[0])
    right.fit(parts[1])
    return torch.cat([features.smoothed(parts[0]), right.smoothed(parts[1])])


def rows_of_pairs(
    features: AttributeRows, right: AttributeRows | None, first: Tensor, second: Tensor
) -> Tensor:
    """Compute the rows of both ends of pairs of new nodes.

    Args:
        features: Rows of all nodes, or of the left ones.
        right: Rows of the right nodes; None without sides.
        first: Attributes of the first ends, shape ``(P, F)``.
        second: Attributes of the second ends, shape ``(P, F)``.

    Returns:
        Rows of shape ``(P, 2, r)``.
    """
    other = features if right is None else right
    return torch.stack([features(first), other(second)], 1)


def common_directions(left: AttributeRows, right: AttributeRows) -> Tensor:
    """Products of the components of both sides, shape ``(r, r)``: zero if no column is common."""
    return normalize(right.basis, dim=0).T @ normalize(left.basis, dim=0)
