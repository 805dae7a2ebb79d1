"""Public rows of nodes: with components of their own on each side of a bipartite graph."""

from collections.abc import Callable

import torch
from torch import Tensor

from lightning_dpg.nn.attribute_rows import AttributeRows


def fit_rows(
    features: AttributeRows, right: AttributeRows | None, attributes: Tensor, num_left: int | None
) -> Tensor:
    """Find the components, and compute the rows of all nodes.

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
        return features(attributes)
    parts = attributes[:num_left], attributes[num_left:]
    features.fit(parts[0])
    right.fit(parts[1])
    return torch.cat([features(parts[0]), right(parts[1])])


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
    binned = left.binned[torch.isin(left.binned, right.binned)]
    return _directions(right, binned).T @ _directions(left, binned)


def _directions(side: AttributeRows, binned: Tensor) -> Tensor:
    """Components of one side, with the bins of the columns ``binned`` only."""
    directions, width = side.basis, len(side.column_weights)
    bins = directions[width:].view(len(side.bounds) - 1, len(side.binned), directions.shape[1])
    own = bins[:, torch.isin(side.binned, binned)]
    return torch.cat([directions[:width], own.flatten(0, 1)])


def attributes_alone(
    attributes: Tensor, num_left: int | None = None, rank: int = 64
) -> Callable[[Tensor], Tensor]:
    """Build the control that reads no edge, epsilon 0: the cosine of the public rows.

    Args:
        attributes: Public attributes of shape ``(N, F)``.
        num_left: Number of left nodes, which come first; None without sides.
        rank: Number of principal components r.

    Returns:
        Function from pairs of shape ``(P, 2)`` to scores of shape ``(P,)``.
    """
    features, right = AttributeRows(rank), None if num_left is None else AttributeRows(rank)
    rows = seconds = fit_rows(features, right, attributes.cpu(), num_left)
    if right is not None:
        seconds = rows @ common_directions(features, right)

    def score(pairs: Tensor) -> Tensor:
        first, second = pairs.cpu().unbind(1)
        return (rows[first] * seconds[second]).sum(1)

    return score
