"""Differentiable draws of graphs, their statistics, and the discrepancy of two sets of these."""

import torch
from torch import Tensor

_BANDWIDTHS = (0.01, 0.1, 1.0)  # of the kernels, relative to the mean squared distance


def binned_degrees(degrees: Tensor, weights: Tensor) -> Tensor:
    """Weighted means of degrees in descending order.

    Args:
        degrees: Degrees of the nodes, 0 in padding, shape ``(B, n)``.
        weights: Weight of each place in each bin, shape ``(B, n, bins)``.

    Returns:
        Shape ``(B, bins)``.
    """
    ordered = degrees.sort(-1, descending=True).values
    return torch.einsum("bn,bnk->bk", ordered, weights)


def latin_normal(mask: Tensor, width: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw standard normal vectors of the nodes of graphs, by Latin hypercube sampling.

    Each of the n vectors of a graph has each coordinate in another n-th of the distribution.
    Exactly one node then has the role of, say, a center. McKay, Beckman, Conover, "A Comparison of
    Three Methods for Selecting Values of Input Variables", 1979.

    Args:
        mask: Mask of the places that hold a node, shape ``(B, n)``; they come first in each row.
        width: Width of the vectors.
        generator: Public source of the draw; None takes the default one.

    Returns:
        Vectors of shape ``(B, n, width)``; those of padding have no meaning.
    """
    keys, place = torch.rand(2, *mask.shape, width, generator=generator, dtype=torch.float64)
    order = (keys + ~mask[:, :, None].cpu()).argsort(1).argsort(1)
    quantile = (order + place) / mask.sum(1).clamp(min=1).cpu()[:, None, None]
    return torch.special.ndtri(quantile.clamp(1e-9, 1 - 1e-9)).float().to(mask.device)


def draw_adjacency(logits: Tensor, pairs: Tensor, num_edges: Tensor) -> Tensor:
    """Draw graphs of given numbers of edges, with the straight-through gradient.

    Pareto sampling approximates independent pairs given their number. The gradient is of pairs
    whose log odds are shifted to the same expected number.

    Args:
        logits: Symmetric log odds, shape ``(B, n, n)``.
        pairs: Mask of the pairs i < j, shape ``(B, n, n)``.
        num_edges: Number of edges of each graph, at most its pairs, shape ``(B,)``.

    Returns:
        Symmetric 0/1 matrices of shape ``(B, n, n)``.
    """
    outside = ~pairs.flatten(1)
    odds = logits.flatten(1).masked_fill(outside, 0)
    with torch.no_grad():
        keys = torch.logit(torch.rand_like(odds), eps=1e-7) - odds
        keys = keys.masked_fill(outside, torch.inf)
        ranked = keys.sort(-1).values
        threshold = ranked.gather(1, (num_edges[:, None] - 1).clamp(min=0))
        links = ((keys <= threshold) & (num_edges[:, None] > 0)).float()
        share = torch.sigmoid(odds + threshold).masked_fill(outside, 0)
        slope = share * (1 - share)
        slope_sum = slope.sum(-1, keepdim=True).clamp(min=1e-9)
    moved = odds - (slope * odds).sum(-1, keepdim=True) / slope_sum
    moved = slope * (moved - moved.detach())  # 0, and carries the gradient
    upper = (links + moved).view_as(logits)
    return upper + upper.mT


def num_triangles(adjacency: Tensor) -> Tensor:
    """Number of triangles of graphs: ``(B, n, n)`` to ``(B,)``."""
    return ((adjacency @ adjacency) * adjacency).sum((1, 2)) / 6


def maximum_mean_discrepancy(first: Tensor, second: Tensor) -> Tensor:
    """Squared maximum mean discrepancy of two samples, with a sum of Gaussian kernels.

    The kernels' widths follow from the mean squared distance of both samples. Gradients then
    reach a sample that is far from the other one. No gradient goes through the widths.

    Args:
        first: Vectors of shape ``(B, d)``.
        second: Vectors of shape ``(B', d)``.

    References:
        Gretton et al., "A Kernel Two-Sample Test", 2012, Eq. (5).
    """
    scale = _distances(first, second).mean().detach().clamp(min=1e-6)

    def kernel(left: Tensor, right: Tensor) -> Tensor:
        distances = _distances(left, right) / scale
        return torch.stack([(-distances / (2 * h)).exp().mean() for h in _BANDWIDTHS]).sum()

    return kernel(first, first) + kernel(second, second) - 2 * kernel(first, second)


def _distances(left: Tensor, right: Tensor) -> Tensor:
    return (left[:, None] - right[None]).square().sum(-1)
