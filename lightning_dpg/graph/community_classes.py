"""Links between classes of degrees, within communities and between them, from released counts."""

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.linked_classes import fitting_links, most_links
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.graph.whole_links import whole_links

_SCALINGS = 60
_LEAST = 1e-12
_STANDING_OUT = 2  # scales of noise, which is exceeded once in fifteen times


def count_class_links(
    classes: NDArray[np.int64], communities: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count edges between and within communities by the classes of their ends.

    Args:
        classes: Class of each node, integers from 0 below C, shape ``(N,)``.
        communities: Community of each node, shape ``(N,)``.
        edges: Edges of shape ``(M, 2)`` (private).

    Returns:
        Edges as :func:`count_links` gives them, between communities and then within them, shape
        ``(2, C, C)`` (private).
    """
    is_within = communities[edges[:, 0]] == communities[edges[:, 1]]
    return np.stack([count_links(classes, edges[is_within == part]) for part in (False, True)])


def class_ratios(
    counts: NDArray[np.int64],
    noise_scale: float,
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    links: NDArray[np.int64],
) -> NDArray[np.float64]:
    r"""Estimate how many times as many links two classes have as the communities make likely.

    Within two communities chance links nodes in proportion to their degrees. The difference r of a
    count to what that gives is shrunk against noise of scale b, :math:`(1 - (2 b / r)^2)_+` after James
    and Stein.

    Args:
        counts: Noisy numbers of :func:`count_class_links`, shape ``(2, C, C)``.
        noise_scale: Scale of the Laplace noise in them.
        degrees: Degrees of the nodes, shape ``(N,)``.
        classes: Class of each node, shape ``(N,)``.
        communities: Community of each node, integers from 0 below K, shape ``(N,)``.
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.

    Returns:
        Ratios between communities and within them, symmetric matrices, shape ``(2, C, C)``.
    """
    expected = _by_chance(degrees, classes, communities, links)[1]
    difference = _ends(counts.astype(np.float64)) - expected
    # Ends within a class are twice as many as links, and so is their noise.
    scale = noise_scale * (1 + np.eye(counts.shape[-1]))
    threshold = _STANDING_OUT * scale / np.maximum(np.abs(difference), _LEAST)
    difference *= np.maximum(1 - threshold**2, 0)
    ratios = 1 + np.divide(difference, expected, out=0 * expected, where=expected > 0)
    return np.asarray(np.maximum(ratios, 0))


def cell_links(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    links: NDArray[np.int64],
    ratios: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return cells of nodes, one for each community and class, and the links between them.

    Links start from chance within each two communities. They are scaled in turns to the ratios of
    the classes, to the links between communities, see :func:`fitting_links`, and to the degrees, and
    cut where cells have too few pairs of nodes. The ratios are left alone in the second half of the
    turns, since they need not agree with the others. Whole numbers near to these have the links between
    communities, see :func:`whole_links`. Where no simple graph with these degrees has them, some are
    missing, and :func:`draw_links` gives other links to the nodes that lack them.

    Args:
        degrees: Degrees of the nodes, shape ``(N,)``.
        classes: Class of each node, integers from 0 below C, shape ``(N,)``.
        communities: Community of each node, integers from 0 below K, shape ``(N,)``.
        links: Wanted links between communities, as :func:`count_links` gives them, ``(K, K)``.
        ratios: Result of :func:`class_ratios`, shape ``(2, C, C)``.

    Returns:
        Cell of each node, integers from 0 below L, shape ``(N,)``; community of each cell, ascending,
        shape ``(L,)``; and wanted links between cells as :func:`count_links` gives them, ``(L, L)``.
    """
    size, count = ratios.shape[-1], len(links)
    used, cells = np.unique(communities * size + classes, return_inverse=True)
    of_community, of_class = np.divmod(used, size)
    totals = np.bincount(cells, degrees).astype(np.int64)
    room = most_links(degrees, cells, len(used))
    links = fitting_links(links, degrees, communities)
    chance, expected = _by_chance(degrees, classes, communities, links)
    found = chance[np.ix_(used, used)]
    pairs = of_community[:, None] * count + of_community
    is_within = (of_community[:, None] == of_community).astype(np.int64)
    margins = (is_within * size + of_class[:, None]) * size + of_class
    wanted_links, wanted_ratios = (
        _ends(links.astype(np.float64)).ravel(),
        (expected * ratios).ravel(),
    )
    targets = [(margins, wanted_ratios), (pairs, wanted_links)]
    for turn in range(_SCALINGS):
        for places, wanted in targets[turn >= _SCALINGS // 2 :]:
            sums = np.bincount(places.ravel(), found.ravel(), len(wanted))
            found = found * (wanted / np.maximum(sums, _LEAST))[places]
        found = np.minimum(found, room)
        scale = np.sqrt(totals / np.maximum(found.sum(axis=1), _LEAST))
        found *= np.outer(scale, scale)
    ends = _ends(links.astype(np.float64)).astype(np.int64)
    return cells, of_community, whole_links(found, of_community, ends, totals, room)


def _by_chance(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    links: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of links between cells ``(K C, K C)`` and classes ``(2, C, C)`` by chance in communities."""
    count, size = len(links), int(classes.max()) + 1
    stubs = np.bincount(communities * size + classes, degrees, count * size).reshape(count, size)
    shares = stubs / np.maximum(stubs.sum(axis=1, keepdims=True), 1)
    ends = _ends(links.astype(np.float64))
    cells = np.einsum("ab,ac,bd->acbd", ends, shares, shares)
    within = np.einsum("acad->cd", cells)
    between = cells.sum(axis=(0, 2)) - within
    return cells.reshape(count * size, count * size), np.stack([between, within])


def _ends(links: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return symmetric matrices ``(..., K, K)`` whose rows sum to the ends of links."""
    lower = np.tril(links)
    return np.asarray(lower + np.swapaxes(lower, -1, -2))
