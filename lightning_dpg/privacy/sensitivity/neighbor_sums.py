"""Sensitivity of sums over neighbors."""

import math


def aggregation_sensitivity() -> float:
    r"""L2 sensitivity of the sums of neighbors' rows under adding or removing an edge: sqrt(2).

    The rows :math:`x_i` are public or functions of earlier releases, and their norms are at most 1.
    The sum of node i is that of :math:`x_j` over its neighbors j. The edge {u, v} adds
    :math:`x_v` to the sum of u and :math:`x_u` to that of v, and no other sum changes; the norm of
    both changes together is at most :math:`\sqrt{1 + 1}`. Were the sums divided by degrees, those of
    all neighbors of u and v would change as well. The sums have no rounding errors, see
    :func:`lightning_dpg.graph.neighbor_sums.on_grid`.
    """
    return math.sqrt(2)


def earlier_neighbor_sensitivity() -> int:
    """L1 sensitivity of counts of earlier neighbors under adding or removing an edge: 1.

    Nodes have their turns in an order that is public or released. A node counts the edges to nodes
    of earlier turns, by their communities. An edge {u, v} is counted by the later one of u and v
    only, in the one cell of the earlier one's community, and not at all if both have the same turn.
    Given the communities of earlier turns, neighboring graphs thus differ by 1 in one cell of one
    node at most. In a directed graph, where (u, v) and (v, u) are two records, each of them is
    counted so, and in a bipartite graph an edge between the sides. Counted at both ends, as in PrivGraph's paper, an edge would move two cells.
    """
    return 1
