r"""Rows of nodes that are close where nodes link, from a noisy moment of rows over edges.

With C the sum of products of a row by itself, and S that of the rows at both ends of the edges,
:math:`C^{-1/2} S C^{-1/2}` has the correlations of both ends as eigenvalues. Directions in which the
ends of edges resemble or oppose each other tell more of what links follow than directions in which
they have nothing to do with each other.
"""

import torch
from torch import Tensor

_TINY = 1e-9
_BISECTIONS = 80


def link_metric(moment: Tensor, rows: Tensor, noise: float, degree: float = 0.0) -> Tensor:
    r"""Linear map that shortens rows in directions which links do not follow, shape ``(r, r)``.

    A direction is multiplied by the root of its correlation. An entry of the correlations has noise of
    known variance :math:`\nu`, and is shrunk by :math:`\tau / (\tau + \nu)`, where the variance
    :math:`\tau` of true entries is that of the largest likelihood under a normal law (empirical
    Bayes). What noise can hide of a correlation, the root of r times the mean posterior variance, is
    added to all of them: with noise alone, all directions count the same.

    Chance is noise, too. Links between ends that were drawn independently give an entry beside the
    diagonal the variance :math:`d / (4 N)`, with d the mean degree, and one on the diagonal twice as
    much.

    Args:
        moment: Released symmetric moment S, shape ``(r, r)``.
        rows: Public rows of all nodes, shape ``(N, r)``.
        noise: Standard deviation of the noise on the diagonal of S; beside it, it is smaller by the
            root of 2.
        degree: Released mean degree; 0 takes the links as given, and not as drawn.
    """
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values = values.clamp(min=_TINY * float(values.max().clamp(min=1.0)))
    scales = values.outer(values).sqrt()
    entries = vectors.T @ moment @ vectors / scales
    variances = (noise / scales) ** 2 + degree / (2 * max(len(rows), 1))
    variances = variances / 2 * (1 + torch.eye(len(values), dtype=values.dtype))
    true = _true_variance(entries, variances)
    shrinkage = true / (true + variances).clamp(min=torch.finfo(values.dtype).tiny)
    found, directions = torch.linalg.eigh(entries * shrinkage)
    hidden = (len(values) * (shrinkage * variances).mean()).sqrt()
    weights = found.abs() + hidden
    largest = float(weights.max())
    if largest > 0:
        weights = (weights / largest).sqrt()
    else:  # without edges and noise
        weights = torch.ones_like(weights)
    return vectors @ (directions * weights)


def _true_variance(entries: Tensor, variances: Tensor) -> float:
    """Variance of normal entries beside noise of known variances: the largest likelihood."""
    low, high = 0.0, float(entries.square().max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        both = (variances + middle).clamp(min=torch.finfo(variances.dtype).tiny)
        slope = ((entries.square() - both) / both.square()).sum()
        low, high = (middle, high) if slope > 0 else (low, middle)
    return high
