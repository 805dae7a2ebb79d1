r"""Declared sensitivities of the moment of public attributes over edges; each docstring is the proof.

The moment is :math:`S = \sum_{(i,j)} (y_i y_j^T + y_j y_i^T) / 2` over the undirected edges, each
once. Of a directed graph it is :math:`S = \sum_{(i,j)} y_i y_j^T` over the ordered pairs, of a
bipartite one over the pairs of a left node i and a right node j, each once. The rows y are public,
since they were not computed from edges, and at most L long.
"""

# Share by which rounding may move a sum of up to 10^9 edges in double precision further.
_ROUNDING = 1e-6


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
