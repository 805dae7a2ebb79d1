r"""Sensitivities of private columns: of their tables, their reports, and their mixing over edges.

**Mixing** is weighted by the degrees of the ends. Each edge :math:`\{u, v\}` has the weight
:math:`w_{uv} = \min(1, D / \max(d_u, d_v))`, where d are the
true degrees and D is a whole number from 1 on. For each of J private columns, cell {a, b} is the sum of
the weights of the edges between nodes with the values a and b, in units of 1 / U, rounded down. No edge
is left out, and no degree is bounded.

The cells, not the weights, are rounded. If each weight were rounded, all d edges of a node could lose a
unit together when its degree grows by 1, and the bounds would not hold.

Rounding: let x be the exact sum of a cell, in units, and p the integer that is released with noise. It
is the floor of a computed sum, which is at most x and falls short of it by less than h. For another
graph with y and q, :math:`|p - q| < |x - y| + h + 1`. Only C cells can change: those of column j with one
of two values, of which there are at most :math:`2 K_j - 1` of :math:`K_j (K_j + 1) / 2`. With
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
    as c tables.

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


def mixing_row_sensitivity(max_weight: int, sizes: Sequence[int], unit: int) -> int:
    r"""L1 sensitivity of normalized mixing under the private columns of one node: 2 D J U + C.

    The edges, and so all degrees and weights, stay. The edges of the node v weigh at most
    :math:`d_v \cdot D / d_v = D` together, or :math:`d_v \le D` if :math:`d_v < D`. In each of the J
    columns the weight of each of them leaves at most one cell and enters at most one other: 2 D.
    These cells have the old or the new value of v.

    Args:
        max_weight: Largest weight D of all edges of a node together (public), a whole number.
        sizes: Number of values of each private column (public).
        unit: Number U of units of a weight of 1.

    Returns:
        2 D J U + C, with C as in :mod:`lightning_dpg.privacy.sensitivity.private_columns`.
    """
    return 2 * max_weight * len(sizes) * unit + _cells_of_two_values(sizes)


def mixing_edge_sensitivity(max_weight: int, sizes: Sequence[int], unit: int) -> int:
    r"""L1 sensitivity of normalized mixing under one edge: 3 D J U / (D + 1), rounded up, plus C.

    Add the edge {u, v}; removing it takes that back. Let i and j be the degrees of u and v without it.
    The new edge weighs :math:`\min(1, D / (\max(i, j) + 1))`. Another edge of u keeps its weight if
    :math:`i < D`, since :math:`D / (i + 1) \ge 1` for whole numbers, so that the larger degree of its
    ends decides as before. If :math:`i \ge D`, it loses at most
    :math:`D / i - D / (i + 1) = D / (i (i + 1))`: the function :math:`\min(1, D / \max(d, e))` of d
    falls by no more than :math:`\min(1, D / d)` does. All i edges of u lose at most
    :math:`D / (i + 1)` together, and those of v likewise. Other edges keep their weights. In one column
    each weight is part of one cell, which has the value of u or of v. So all cells change by

    * 1 at most, if :math:`i, j < D`;
    * :math:`2 D / (i + 1) \le 2 D / (D + 1)`, if only :math:`i \ge D`, and likewise for j alone;
    * :math:`D / (\max(i, j) + 1) + D / (i + 1) + D / (j + 1) \le 3 D / (D + 1)`, if both are.

    The last bound is the largest, since :math:`D \ge 1`. It is attained where both nodes have D other
    edges, to nodes of no larger degree. Each of the J columns has cells of its own.

    Args:
        max_weight: Largest weight D of all edges of a node together (public), a whole number.
        sizes: Number of values of each private column (public).
        unit: Number U of units of a weight of 1.

    Returns:
        The bound, with C as in :mod:`lightning_dpg.privacy.sensitivity.private_columns`.
    """
    exact = -(-3 * max_weight * len(sizes) * unit // (max_weight + 1))
    return exact + _cells_of_two_values(sizes)


def _cells_of_two_values(sizes: Sequence[int]) -> int:
    """Cells at most of all columns that have one of two values of their column."""
    return sum(min(size * (size + 1) // 2, 2 * size - 1) for size in sizes)
