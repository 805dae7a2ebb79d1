r"""Declared sensitivities of sums of beliefs over neighbors; each docstring is the proof.

Node i has a public row :math:`z_i`, and a belief row :math:`u_i` that is public or a function of
earlier releases; it may be :math:`z_i` itself. Both are at most 1 long. The votes of node i are
:math:`s_i = \sum_j u_j` over its neighbors j. The moment is :math:`M = \sum_i z_i s_i^T`.

The votes themselves have no rounding errors, wherever the edges are: rows are rounded toward 0 first,
see :func:`lightning_dpg.graph.neighbor_sums.on_grid`. What rounding is left is that of the clipping
and of the sum over nodes, in this process.
"""

import math

# Share by which rounding may move a sum of up to 10^9 edges in double precision further.
_ROUNDING = 1e-6


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
