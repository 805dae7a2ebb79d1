r"""Sensitivities of private columns: of their tables, their reports, and their mixing over edges.

**Mixing** is weighted by the degrees of the ends. Each edge :math:`\{u, v\}` has the weight
:math:`w_{uv} = \min(1, D / \max(d_u, d_v))`, where d are the
true degrees and D is a whole number from 1 on. A degree is the number of records at a node: in a
directed graph both its outgoing and its incoming arcs, where (u, v) and (v, u) are two records. No edge
is left out, and no degree is bounded. There are T matrices, whose cells are the sums of the weights in
units of 1 / U, rounded down:

* of an undirected graph one for each of the J private columns: cell {a, b} has the edges between nodes
  with the values a and b;
* of a directed graph one for each column: cell (a, b) has the arcs from a node with a to one with b;
* of a bipartite graph one for each column j of left nodes and k of right ones: cell (a, b) has the edges
  of a left node with the value a of j and a right one with b of k.

In each matrix a weight is part of one cell.

The cells, not the weights, are rounded. If each weight were rounded, all d edges of a node could lose a
unit together when its degree grows by 1, and the bounds would not hold.

Rounding: let x be the exact sum of a cell, in units, and p the integer that is released with noise. It
is the floor of a computed sum, which is at most x and falls short of it by less than h. For another
graph with y and q, :math:`|p - q| < |x - y| + h + 1`. Only C cells can change: those with one of two
values, which are the values of both ends of an edge that is added, or the old and the new value of a node.
Of column j of an undirected graph they are at most :math:`2 K_j - 1` of :math:`K_j (K_j + 1) / 2`. A
matrix with an order of the ends has j first and k second, and all its :math:`K_j K_k` cells but
:math:`(K_j - 2)_+ (K_k - 2)_+` have one of two first or one of two second values. With
:math:`h C \le 1`, which :func:`lightning_dpg.graph.edge_statistics.exact_mixing` keeps, all integers
together change by less than S + C + 1 if all exact sums change by S at most, hence by
:math:`\lceil S \rceil + C` at most.
"""

from collections.abc import Sequence

LABEL_REPORTS = "label_reports"
"""Key of the reports of all private labels."""


def row_table_sensitivity(num_tables: int) -> int:
    """L1 sensitivity of tables of nodes by private columns, under the columns of one node: 2 T.

    Each of T tables counts all nodes by some of their private columns and by a class, which is public
    or a function of earlier releases. If the columns of one node are exchanged, it leaves one cell of
    each table and enters another; its class stays. A table that counts each node c times moves as much
    as c tables. A node of a bipartite graph is in the tables of its side alone, so that T is the larger
    number of both sides.

    Under edges the sensitivity is 0, so that the read costs an edge nothing: with the classes fixed, no
    cell depends on an edge. Classes of the true degrees would be different: an edge moves two nodes.

    Args:
        num_tables: Number T of tables (public), where one that counts each node c times counts as c.
    """
    return 2 * num_tables


def reported_label_sensitivity() -> int:
    """Number of labels that change when the private columns of one node are exchanged: 1.

    A node has one label, which is reported once. It is public which nodes have one, so that
    neighbors have labels of the same nodes. What is computed from reports reads no label.
    """
    return 1


def mixing_row_sensitivity(
    max_weight: int, sizes: Sequence[int], unit: int, pairs: Sequence[tuple[int, int]] | None = None
) -> int:
    r"""L1 sensitivity of normalized mixing under the private columns of one node: 2 D T U + C.

    The edges, and so all degrees and weights, stay. The node v is in :math:`d_v` records, which weigh
    at most :math:`d_v \cdot D / d_v = D` together, or :math:`d_v \le D` if :math:`d_v < D`. Of a
    directed graph these are its outgoing and its incoming arcs, and both of another node count. In each
    of the T matrices the weight of each of them leaves at most one cell and enters at most one other:
    2 D. These cells have the old or the new value of v.

    Args:
        max_weight: Largest weight D of all edges of a node together (public), a whole number.
        sizes: Number of values of each private column (public).
        unit: Number U of units of a weight of 1.
        pairs: Column of the first and of the second end, for each matrix whose ends have an order; None
            of an undirected graph, which has a matrix for each column (public).

    Returns:
        2 D T U + C, with C as in :mod:`lightning_dpg.privacy.sensitivity.private_columns`.
    """
    matrices = len(sizes if pairs is None else pairs)
    return 2 * max_weight * matrices * unit + _changing_cells(sizes, pairs)


def mixing_edge_sensitivity(
    max_weight: int, sizes: Sequence[int], unit: int, pairs: Sequence[tuple[int, int]] | None = None
) -> int:
    r"""L1 sensitivity of normalized mixing under one edge: 3 D T U / (D + 1), rounded up, plus C.

    Add the edge {u, v}; removing it takes that back. Let i and j be the degrees of u and v without it.
    The new edge weighs :math:`\min(1, D / (\max(i, j) + 1))`. Another edge of u keeps its weight if
    :math:`i < D`, since :math:`D / (i + 1) \ge 1` for whole numbers, so that the larger degree of its
    ends decides as before. If :math:`i \ge D`, it loses at most
    :math:`D / i - D / (i + 1) = D / (i (i + 1))`: the function :math:`\min(1, D / \max(d, e))` of d
    falls by no more than :math:`\min(1, D / d)` does. All i edges of u lose at most
    :math:`D / (i + 1)` together, and those of v likewise. Other edges keep their weights. In one matrix
    each weight is part of one cell, which has the value of u or of v. So all cells change by

    * 1 at most, if :math:`i, j < D`;
    * :math:`2 D / (i + 1) \le 2 D / (D + 1)`, if only :math:`i \ge D`, and likewise for j alone;
    * :math:`D / (\max(i, j) + 1) + D / (i + 1) + D / (j + 1) \le 3 D / (D + 1)`, if both are.

    The last bound is the largest, since :math:`D \ge 1`. It is attained where both nodes have D other
    edges, to nodes of no larger degree. Each of the T matrices has cells of its own.

    In a directed graph the arc (u, v) is added, and its reverse (v, u) may be there: it is one of the i
    other records of u and one of the j of v, and both its ends get another record. With
    :math:`m = \max(i, j)` its weight goes from :math:`\min(1, D / m)` to :math:`\min(1, D / (m + 1))`.
    It stays if :math:`m < D`, and loses at most :math:`D / (m (m + 1))` otherwise. That is what the sum
    over the records of the end with m grants it already, so that the bounds hold as they are.

    Args:
        max_weight: Largest weight D of all edges of a node together (public), a whole number.
        sizes: Number of values of each private column (public).
        unit: Number U of units of a weight of 1.
        pairs: Column of the first and of the second end, for each matrix whose ends have an order; None
            of an undirected graph, which has a matrix for each column (public).

    Returns:
        The bound, with C as in :mod:`lightning_dpg.privacy.sensitivity.private_columns`.
    """
    matrices = len(sizes if pairs is None else pairs)
    exact = -(-3 * max_weight * matrices * unit // (max_weight + 1))
    return exact + _changing_cells(sizes, pairs)


def _changing_cells(sizes: Sequence[int], pairs: Sequence[tuple[int, int]] | None) -> int:
    """Cells at most of all matrices that have one of two values of an end."""
    if pairs is None:
        return sum(min(size * (size + 1) // 2, 2 * size - 1) for size in sizes)
    shapes = [(sizes[first], sizes[second]) for first, second in pairs]
    return sum(k * l - max(k - 2, 0) * max(l - 2, 0) for k, l in shapes)
