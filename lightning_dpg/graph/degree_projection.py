"""Projection of a graph to degrees of at most D; one node then changes few degrees.

It differs from :mod:`lightning_dpg.graph.truncation`, which bounds the effect of one edge. Here all
edges of a node may change at once: the kept *degrees* then change by 2D in all, see
:func:`lightning_dpg.privacy.sensitivity.projected_degrees.projected_degree_sensitivity`. Which
edges are kept may change all over the graph.

* Day, Li, Lyu, "Publishing graph degree distribution with node differential privacy", 2016.
"""

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.truncation import scatter_pairs


def project_degrees(
    edges: NDArray[np.int64], num_nodes: int, max_degree: int, order: int = 0
) -> NDArray[np.bool_]:
    """Go through the edges in a fixed order of all pairs; keep one if both ends have fewer than D.

    The order is the pseudo-random one of :func:`scatter_pairs`, which does not depend on the graph.
    The result is that of the plain loop, computed in rounds. Each round keeps an open edge if it is
    so early among the open edges of both its ends that no open edge can take its place. It drops
    edges with a full end. The first open edge is always kept. An order at random takes about as
    many rounds as the logarithm of the number of edges.

    Args:
        edges: Different rows ``i < j`` of shape ``(M, 2)`` (private).
        num_nodes: Number of nodes N.
        max_degree: D, 1 or more (public).
        order: Number of the pseudo-random order (public).

    Returns:
        Mask of the kept edges, shape ``(M,)`` (private).

    Raises:
        Refusal: If ``max_degree`` is below 1.
    """
    if max_degree < 1:
        raise Refusal(f"max_degree must be 1 or more, got {max_degree}")
    first, second = edges.T
    is_kept = np.ones(len(edges), dtype=np.bool_)
    degrees = np.bincount(edges.ravel(), minlength=num_nodes)
    # Edges between ends that cannot be full are kept, and count for their ends from the start.
    is_sure = (degrees[first] <= max_degree) & (degrees[second] <= max_degree)
    contested = np.flatnonzero(~is_sure)
    room = max_degree - np.bincount(edges[is_sure].ravel(), minlength=num_nodes)
    by_order = contested[np.argsort(scatter_pairs(edges[contested], order))]
    # An edge is its place in the order from here on, and an end knows its edges in ascending order.
    ends = edges[by_order]
    is_kept[by_order] = _first_come(ends, room)
    return is_kept


def _first_come(ends: NDArray[np.int64], room: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the kept edges of shape ``(K, 2)``, the first ones first, in rounds."""
    is_kept = np.zeros(len(ends), dtype=np.bool_)
    is_open = np.ones(len(ends), dtype=np.bool_)
    stubs = np.argsort(ends.ravel(), kind="stable")  # by node, then by the order of the edges
    places, nodes = stubs // 2, ends.ravel()[stubs]
    room = room.copy()
    while len(places):
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        sizes = np.diff(starts, append=len(nodes))
        is_early = np.arange(len(nodes)) - np.repeat(starts, sizes) < room[nodes]
        # An edge is early at both its ends, or full at one of them.
        votes = np.bincount(places[is_early], minlength=len(ends))
        chosen = is_open & (votes == 2)
        is_kept |= chosen
        room -= np.bincount(ends[chosen].ravel(), minlength=len(room))
        is_open &= ~chosen & (room[ends] > 0).all(axis=1)
        stays = is_open[places]
        places, nodes = places[stays], nodes[stays]
    return is_kept
