"""Kernels of private counts together with what is public of each graph."""

import math

import numpy as np

from lightning_dpg.graph.counts import Floats
from lightning_dpg.metrics.kernel_svm import column_kernels, standardized

_GRAPHS_PER_LABEL = 10  # fewer graphs do not show what a label of nodes says of a count


def joint_kernels(
    counts: Floats, scales: Floats, noise: Floats, sizes: Floats, node_labels: Floats
) -> list[Floats]:
    r"""Kernels of public numbers and of private counts, each with the weight that its noise leaves.

    Counts are linear within their noise and logarithmic beyond. All columns are standardized. A
    column of counts then gets the length w: a linear function of the public numbers is fitted to
    it, and w is the share of the variance left that noise does not explain, less the standard error
    of this share. A column that is noise beside the public numbers is thus left out, or short. No
    weight reads labels of the graphs, or anything private but the released counts.

    Args:
        counts: Released counts of G graphs, shape ``(G, F)``.
        scales: Scale of the noise of each column, shape ``(F,)``; 0 without noise.
        noise: Equally likely values of noise of scale 1, shape ``(Q,)``.
        sizes: Numbers of nodes (public), shape ``(G,)``.
        node_labels: Numbers of nodes with each label (public), shape ``(G, L)``.
    """
    size, labels = np.log1p(sizes)[:, None], np.log1p(node_labels)
    known = [np.ones_like(size), size, size**2]
    if len(sizes) >= _GRAPHS_PER_LABEL * labels.shape[1]:
        known.append(labels)
    varies = np.ptp(counts, axis=0) > 0
    counts, scales = counts[:, varies], scales[varies]
    columns = np.arcsinh(counts / np.where(scales > 0, scales, 1))
    weights, _, rank, _ = np.linalg.lstsq(np.hstack(known), columns)
    fitted = np.hstack(known) @ weights
    free = max(len(columns) - int(rank), 1)  # degrees of freedom of what is left
    left = ((columns - fitted) ** 2).sum(axis=0) / free
    noisy = (scales > 0) * (1 + math.sqrt(2 / free)) * _variance(np.sinh(fitted), noise)
    share = np.clip(1 - noisy / np.maximum(left, np.finfo(float).tiny), 0, 1)
    weighted = standardized(columns) * share
    return column_kernels(np.hstack([standardized(np.hstack([size, labels])), weighted]))


def _variance(means: Floats, noise: Floats) -> Floats:
    """Variance of the noise in each column, after the transform, at given means: ``(F,)``."""
    return np.array([np.arcsinh(column[:, None] + noise).var(axis=1).mean() for column in means.T])
