"""Links between communities as they would be if no node had a wrong label, by released counts."""

import math

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import rounded

_STANDARD_DEVIATIONS = 2
_LEAST = 0.25  # share of the links between two communities that stays, whatever the estimate


def right_share(links: NDArray[np.int64], wedges: NDArray[np.int64], noise_scale: float) -> float:
    r"""Estimate how much of the links beyond chance noisy labels of communities leave.

    Say that both ends of a link have the right labels with a probability :math:`r`, independently of
    all else, and labels by chance otherwise. Links beyond chance are then :math:`r` times those of the
    right labels. So are the pairs of ends of a wedge, which are two links apart. The right labels make
    these follow from the links: by the matrix P of the shares of the links of each community that go
    to each, of which released links have :math:`r P` beyond chance, :math:`P^2`. With :math:`q` for the
    share of equal labels beyond chance by the square of the released shares, and :math:`x` for that of
    the wedges, :math:`r = q / x`: nothing needs to be known of the labels.

    Against noise, x is shrunk after James and Stein, :math:`(1 - (2 \sigma / x)^2)_+` for a standard
    deviation :math:`\sigma`. Then r is larger, up to 1, which changes nothing.

    Args:
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.
        wedges: Noisy numbers of wedges whose ends have equal and different labels, shape ``(2,)``.
        noise_scale: Scale of the Laplace noise in them.

    Returns:
        The share r, from above 0 to 1.
    """
    ends = _ends(links)
    totals, total = ends.sum(axis=1), float(np.maximum(wedges, 0).sum())
    if not totals.any() or not total:
        return 1.0
    volumes = totals / totals.sum()
    shares = ends / np.maximum(totals, 1)[:, None]
    chance = float(volumes @ volumes)
    expected = float(volumes @ np.einsum("ab,ba->a", shares, shares)) - chance
    equal, different = np.maximum(wedges, 0) / total
    excess = float(equal) - chance
    deviation = math.sqrt(2) * noise_scale / total * math.hypot(equal, different)
    if excess <= _STANDARD_DEVIATIONS * deviation or expected <= 0:
        return 1.0
    return min(expected / (excess - (_STANDARD_DEVIATIONS * deviation) ** 2 / excess), 1.0)


def sharpened_links(links: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the links between different communities that right labels would have.

    Links beyond chance, or below it, are divided by the share that noisy labels leave of them. Where that
    takes more than three quarters of the links of two communities, a quarter stays, and all links are
    scaled to the sum that the division gives, which is at least a quarter, too. Communities without links
    get none.

    Args:
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.
        share: Result of :func:`right_share`.

    Returns:
        Links arranged likewise; those within communities stay as they are.
    """
    if share >= 1:
        return links
    totals = _ends(links).sum(axis=1)
    chance = np.tril(np.outer(totals, totals) / max(totals.sum(), 1), -1)
    between = np.tril(links, -1).astype(np.float64)
    right = chance + (between - chance) / share
    total = max(float(right.sum()), _LEAST * float(between.sum()))
    wanted = np.where(between > 0, np.maximum(right, _LEAST * between), 0)
    wanted *= min(total / max(float(wanted.sum()), 1), 1)
    return rounded(wanted.ravel()).reshape(links.shape) + np.diag(np.diag(links))


def _ends(links: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the ends of links by community and by that of the other end, shape ``(K, K)``."""
    return (np.tril(links) + np.tril(links).T).astype(np.float64)
