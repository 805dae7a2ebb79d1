r"""Sensitivities of sums over neighbors: of rows, of beliefs, and of products of attributes.

**Moments of attributes** are :math:`S = \sum_{(i,j)} (y_i y_j^T + y_j y_i^T) / 2` over the undirected
edges, each once. Of a directed graph it is :math:`S = \sum_{(i,j)} y_i y_j^T` over the ordered pairs, of a
bipartite one over the pairs of a left node i and a right node j, each once. The rows y are public,
since they were not computed from edges, and at most L long.

**Votes** are sums of beliefs. Node i has a public row :math:`z_i`, and a belief row :math:`u_i` that is
public or a function of earlier releases; it may be :math:`z_i` itself. Both are at most 1 long. The votes
of node i are :math:`s_i = \sum_j u_j` over its neighbors j. The moment is :math:`M = \sum_i z_i s_i^T`.

The votes themselves have no rounding errors, wherever the edges are: rows are rounded toward 0 first,
see :func:`lightning_dpg.graph.edge_statistics.on_grid`. What rounding is left is that of the clipping
and of the sum over nodes, in this process.
"""

import math

# Share by which rounding may move a sum of up to 10^9 edges in double precision further.
_ROUNDING = 1e-6


def aggregation_sensitivity() -> float:
    r"""L2 sensitivity of the sums of neighbors' rows under adding or removing an edge: sqrt(2).

    The rows :math:`x_i` are public or functions of earlier releases, and their norms are at most 1.
    The sum of node i is that of :math:`x_j` over its neighbors j. The edge {u, v} adds
    :math:`x_v` to the sum of u and :math:`x_u` to that of v, and no other sum changes; the norm of
    both changes together is at most :math:`\sqrt{1 + 1}`. Were the sums divided by degrees, those of
    all neighbors of u and v would change as well. The sums have no rounding errors, see
    :func:`lightning_dpg.graph.edge_statistics.on_grid`.
    """
    return math.sqrt(2)


def earlier_neighbor_sensitivity(passes: int = 1) -> int:
    r"""L1 sensitivity of weighted counts of earlier neighbors under adding or removing an edge: P.

    Nodes have their turns in an order that is public or released. A node counts the edges to nodes
    of earlier turns, by their communities. An edge {u, v} is counted by the later one of u and v
    only, in the one cell of the earlier one's community, and not at all if both have the same turn.
    Given the communities of earlier turns, neighboring graphs thus differ by 1 in one cell of one
    node at most. Counted at both ends, as in PrivGraph's paper, an edge would move two cells.

    With P passes, released degrees say which nodes are hubs. They divide the pairs of nodes into two parts:

    * Pairs of hubs. Hubs have P turns, one in each pass, in an order of that pass. In a pass a hub counts
      the edges to hubs that had their turn before it in the same pass, so that an edge moves one cell of
      one hub in each pass, by a weight of 1: by P in all passes together.
    * All other pairs. Nodes that are no hubs have one turn each, after all hubs. An edge is counted as above,
      once, by the later end, which is no hub. It moves one cell, by a weight of P.

    An edge is in one part, so the change is P at most, and not the sum of both (parallel composition). Weights
    that differ from this count an edge of a pass at the whole budget, and cost P times as much.
    What a hub prefers from earlier passes is a function of released degrees and of earlier choices.
    At a rate of :math:`\epsilon / P` for each unit, all choices are :math:`\epsilon`-DP together, and so are
    those of the last turn of each node, which alone are released.

    In a directed graph, where (u, v) and (v, u) are two records, each of them is counted so, and in a
    bipartite graph an edge between the sides.

    Args:
        passes: Number P of turns of a hub.

    Returns:
        P.
    """
    return passes


def edge_moment_sensitivity(max_length: float = 1.0) -> float:
    r"""Change of S in the Frobenius norm, by an edge: :math:`L^2`.

    The edge {i, j} adds :math:`(y_i y_j^T + y_j y_i^T) / 2` and changes no other summand. By the
    inequality of Cauchy and Schwarz its squared norm is
    :math:`(|y_i|^2 |y_j|^2 + (y_i^T y_j)^2) / 2 \le |y_i|^2 |y_j|^2 \le L^4`, with equality for
    :math:`y_i = y_j` of length L. An edge of a directed or a bipartite graph adds
    :math:`y_i y_j^T` alone, whose norm is :math:`|y_i| |y_j| \le L^2`; the opposite directed edge is
    another record. A millionth is added for the rounding of the sum.

    Args:
        max_length: Public bound L on the length of a row.

    Returns:
        :math:`L^2`, and a millionth more.
    """
    return max_length**2 * (1 + _ROUNDING)


def node_moment_sensitivity(max_degree: int, max_length: float = 1.0) -> float:
    r"""Change of S in the Frobenius norm, by all edges of a node: :math:`D L^2`.

    The node u and its row stay, and its edges to a set J of at most D nodes come or go. S changes
    by :math:`(y_u w^T + w y_u^T) / 2` with :math:`w = \sum_{j \in J} y_j`, whose norm is at most
    :math:`|y_u| |w| \le L \cdot D L` as for an edge; it is attained if all rows are equal.

    Args:
        max_degree: Public bound D on the degrees of both graphs.
        max_length: Public bound L on the length of a row.

    Returns:
        :math:`D L^2`, and a millionth more.
    """
    return max_degree * edge_moment_sensitivity(max_length)


def vote_sensitivity() -> float:
    r"""Change of the votes of all nodes in the Frobenius norm, by an edge: :math:`\sqrt 2`.

    The edge {i, j} adds :math:`u_j` to the votes of i and :math:`u_i` to those of j, and to no others.
    The norm of both together is at most :math:`\sqrt{1 + 1}`. A millionth is added for the rounding
    of the rows to a length of 1.
    """
    return math.sqrt(2) * (1 + _ROUNDING)


def vote_moment_sensitivity() -> float:
    r"""Change of the moment M in the Frobenius norm, by an edge: 2.

    The edge {i, j} adds :math:`z_i u_j^T + z_j u_i^T`, two matrices of a norm of at most
    :math:`|z| |u| \le 1` each. It is attained if both ends have equal rows. A millionth is added for
    the rounding of the sum.
    """
    return 2 * (1 + _ROUNDING)


def node_vote_moment_sensitivity(max_edges: int, clip: float) -> float:
    r"""Change of :math:`\sum_i z_i \, \mathrm{clip}_c(s_i)^T` by at most D edges of one node: D + min(D, 2c).

    :math:`\mathrm{clip}_c` scales rows that are longer than c to the length c. It projects on a
    ball, so it moves no two rows further apart.

    Let the m edges between node v and the nodes J come or go, with :math:`m \le D`. The votes of a
    node of J change by :math:`u_v`, and so, clipped, by at most 1; these m summands change M by at
    most m together. The votes of v change by at most m, and so, clipped, by at most m; both clipped
    rows are also at most c long, so that they differ by at most 2c. No other votes change. It is
    attained if the votes of v turn from one side of the ball to the other, and all rows are equal.

    Other edges of v and those of all other nodes are arbitrary: there is no bound on degrees. If v
    loses all of its edges, its votes become 0 and change by c at most; the bound for *at most D* of
    its edges cannot use that.

    Args:
        max_edges: Public number D of edges of one node that the guarantee hides together.
        clip: Public bound c on the length of a row of votes.

    Returns:
        D + min(D, 2c), and a millionth more.
    """
    return (max_edges + min(max_edges, 2 * clip)) * (1 + _ROUNDING)
