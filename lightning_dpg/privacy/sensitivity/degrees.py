"""Sensitivity of degrees."""

import math


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

    The degrees of a directed graph are out-degrees and in-degrees: an edge (i, j) changes the
    out-degree of i and the in-degree of j by 1, and no other. Those of a bipartite graph are the
    degrees of both sides, and an edge changes one of each side by 1. So the joint vector of both
    parts changes by 2, each part by 1, and each part in descending order by at most 1.
    """
    return 2


def largest_degrees_sensitivity() -> int:
    """Sensitivity of the sum of the two largest degrees under adding or removing an edge: 2.

    Each of the two changes by 1 at most, as all degrees do, whichever nodes have them. With noise that
    may fall short, it is a bound that fails with a probability of delta, see
    :func:`joint_degree_sensitivity`.
    """
    return 2
