"""Declared sensitivities. Each docstring is the proof that ledger entries name."""

import math


def edge_gradient_sensitivity(max_grad_norm: float) -> float:
    r"""L2 sensitivity of a sum of clipped per-edge gradients under adding or removing an edge.

    An undirected edge is exactly one record (i, j) with i < j, drawn into the batch or not, and the
    sum is :math:`\sum_e \mathrm{clip}_C(g_e)` with :math:`g_e` a function of the record e and of
    what is public or released: the weights, random numbers, fakes that read no record. There
    are no batch statistics and no division by the realized batch size. Neighbouring graphs
    differ in one record, hence with the same draw of the others in at most one summand, whose norm
    is at most C. Stored in both orientations an edge would be two records and move the sum by
    2C; datamodules refuse that.

    Args:
        max_grad_norm: Clipping norm C over all parameters together.

    Returns:
        C.
    """
    return max_grad_norm


def edge_count_sensitivity() -> int:
    """Sensitivity of the number of undirected edges under adding or removing an edge: 1.

    Each undirected edge is counted once, and neighbouring graphs differ in one of them.
    """
    return 1


def degree_sensitivity() -> float:
    """L2 sensitivity of the vector of node degrees under adding or removing an edge: sqrt(2).

    The degrees of the two ends change by 1, all others stay.
    """
    return math.sqrt(2)


def degree_l1_sensitivity() -> int:
    """L1 sensitivity of the vector of node degrees under adding or removing an edge: 2.

    The degrees of the two ends change by 1, all others stay. The same bound holds for the degrees
    in descending order, where it no longer matters whose they are: two sorted vectors are at most
    as far apart as the vectors themselves (Hay et al., "Accurate estimation of the degree
    distribution of private networks", 2009).
    """
    return 2


def pair_bit_sensitivity() -> int:
    """Number of node pairs whose bit changes when an undirected edge is added or removed: 1.

    The bits of the N (N - 1) / 2 pairs i < j say which are edges. Randomized response reports each
    on its own, so that the two laws of all reports differ by the factor of that one bit.
    """
    return 1
