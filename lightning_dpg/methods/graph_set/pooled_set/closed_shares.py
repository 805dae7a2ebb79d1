"""Shares of closed wedges by class of graphs, shrunk against noise."""

import numpy as np

from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import Floats


def closed_shares(closed: Floats, most: Floats, noise_scale: float) -> Floats:
    r"""Shares of closed wedges of classes, from their noisy numbers.

    Noise of scale b has the variance :math:`2 b^2`. The sum T of C classes is multiplied by
    :math:`(1 - C (2b / T)^2)_+`, twice the variance taken off, as :class:`BTER` shrinks its counts
    after James and Stein. The differences :math:`\delta` of the classes from the share of the whole
    set are multiplied by the same factor, and by the share :math:`(1 - 2 (C - 1) b^2 /
    |\delta|^2)_+` that noise does not explain. A set whose triangles are within their noise has
    none, and classes that differ no more than noise does have one share.

    Args:
        closed: Noisy sums of the classes, shape ``(C,)``.
        most: These sums if all wedges were closed, shape ``(C,)``.
        noise_scale: Scale b of the noise of each sum; 0 without noise.

    Returns:
        Shares from 0 to 1, shape ``(C,)``; 0 of a class without wedges.
    """
    variance = 2 * noise_scale**2
    total, wedges = max(float(closed.sum()), 0.0), max(float(most.sum()), 1.0)
    mean = total / wedges * most
    differences = closed - mean
    differing = _signal(float((differences**2).sum()), (len(closed) - 1) * variance)
    shrunk = _signal(total**2, 2 * len(closed) * variance) * (mean + differing * differences)
    return np.clip(shrunk / np.maximum(most, 1), 0, 1)


def _signal(square: float, noise: float) -> float:
    """Part of a square that noise does not explain, from 0 to 1."""
    return max(1 - noise / square, 0.0) if square > 0 else 0.0
