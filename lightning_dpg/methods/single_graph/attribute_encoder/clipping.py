r"""Clipped gradients of the edge term :math:`\log(1 + e^{-l})`, in closed form.

The gradient of the log odds is :math:`8 (y_i (y_j W)^T + y_j (y_i W)^T)` by W and
:math:`L_i + L_j` by c. Norms and sums follow without a matrix for each edge. With a matrix for each
end the same holds for rows that are filled up with zeros, see :meth:`AttributeLogits.placed`. A
record is one pair of ends in every kind of graph, and its gradient by all parameters together is
clipped: the sensitivity does not depend on the kind.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from lightning_dpg.nn.attribute_logits import SHARPNESS, AttributeLogits
from lightning_dpg.privacy.dpsgd import clip_factor

# Sums in chunks keep the rounding error within that of the ordinary clipped sum.
_CHUNK = 1024
# Share of its positive terms by which a squared norm is enlarged, far above its rounding error.
_MARGIN = 1e-12


class _Terms(NamedTuple):
    """Parts of the clipped gradients of some edges, in double precision.

    Attributes:
        ends: Rows y of both ends, filled up with zeros, shape ``(B, 2, sides * r)``.
        images: Rows y W of both ends, shape ``(B, 2, r)``.
        level: Sums of the levels of both ends, shape ``(B,)``.
        factor: Slope of the edge term times the factor of the clipping, shape ``(B,)``.
    """

    ends: Tensor
    images: Tensor
    level: Tensor
    factor: Tensor


def clipped_edge_sum(
    model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float
) -> dict[str, Tensor]:
    """Sum the clipped gradients of the edge term, in O(B r^2).

    Args:
        model: Log odds in their state at the step.
        rows: Rows y of both ends of each edge, shape ``(B, 2, r)``; B may be 0.
        levels: Levels of both ends, shape ``(B, 2)``.
        max_grad_norm: Clipping norm C of one edge, over all parameters together.

    Returns:
        Sum by parameter name, in double precision.
    """
    weight = torch.zeros_like(model.weight, dtype=torch.double)
    degree_weight = torch.zeros_like(model.degree_weight, dtype=torch.double)
    for low in range(0, len(rows), _CHUNK):
        part = slice(low, low + _CHUNK)
        terms = _terms(model, rows[part], levels[part], max_grad_norm)
        scaled = SHARPNESS * terms.factor[:, None] * terms.images[:, 1]
        weight += terms.ends[:, 0].T @ scaled
        scaled = SHARPNESS * terms.factor[:, None] * terms.images[:, 0]
        weight += terms.ends[:, 1].T @ scaled
        degree_weight += terms.factor @ terms.level
    return {"weight": weight, "degree_weight": degree_weight}


def clipped_edge_gradients(
    model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float
) -> Tensor:
    """The single clipped gradients, W first: a row for each edge, ``(B, sides * r * r + 1)``."""
    terms = _terms(model, rows, levels, max_grad_norm)
    by_weight = SHARPNESS * torch.einsum("bki,bkj->bij", terms.ends, terms.images.flip(1))
    both = torch.cat([by_weight.flatten(1), terms.level[:, None]], 1)
    return both * terms.factor[:, None]


def _terms(model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float) -> _Terms:
    ends, level = model.placed(rows).double(), levels.double().sum(1)
    images = ends @ model.weight.detach().double()
    with torch.no_grad():
        slope = -torch.sigmoid(-model.from_images(images, level))
    ends_product, images_product = ends.prod(1).sum(1), images.prod(1).sum(1)
    ends_squared, images_squared = ends.square().sum(2), images.square().sum(2)
    positive = (ends_squared * images_squared.flip(1)).sum(1)
    crossed = 2 * ends_product * images_product
    # Both sums can cancel; the margin keeps a rounded norm from being too small.
    by_weight = positive + crossed + _MARGIN * (positive + crossed.abs())
    squared = slope.square() * (SHARPNESS**2 * by_weight + level.square())
    scale = clip_factor(squared, max_grad_norm)
    images = torch.where((scale != 0)[:, None, None], images, 0.0)
    return _Terms(ends, images, level, torch.where(scale != 0, slope * scale, 0.0))
