r"""Sensitivities of numbers of edges and of degrees: true ones, joint ones, and those of a projection.

**Projected degrees** are at most D. The relation is ``node``, and more: the graphs G and G' differ in the
edges of one node v only, *whichever* come and go, so rewiring v is one change like removing all its edges.
The true degrees are not bounded. :func:`project_degrees` goes through the pairs in one public order and
keeps an edge if both its ends have fewer than D kept edges. It keeps k edges of v in G, and k' in G'.

**Lemma.** Let :math:`\delta(u)` be the kept degree of u in G' minus that in G. Then
:math:`\sum_{u \ne v} |\delta(u)| \le k + k'`.

Follow the sum through the order; it begins at 0. A pair {a, b} without v is an edge of both graphs
or of none. If both keep it, or none does, nothing changes. If G alone keeps it, then one end, say a,
has D kept edges in G' and fewer in G, hence :math:`\delta(a) \ge 1`. Keeping the edge in G subtracts
1 from :math:`\delta(a)` and from :math:`\delta(b)`: :math:`|\delta(a)|` falls by 1,
:math:`|\delta(b)|` grows by 1 at most, and the sum does not grow. The same holds if G' alone keeps
it. A pair {u, v} changes the sum, by 1 at most, only if one of both graphs alone keeps it, which
happens k + k' times at most.

Which edges are kept has no such bound: each edge that is kept in one graph alone may let another one
in, so along a path of rising order every edge changes, whatever D is. So sums over kept edges,
such as moments of attributes, and numbers of triangles or closed wedges among them, change in
proportion to N in the worst case.
"""

import math


def edge_count_sensitivity() -> int:
    """Sensitivity of the number of undirected edges under adding or removing an edge: 1.

    Each undirected edge is counted once, and neighboring graphs differ in one of them. So is each
    ordered pair of a directed graph, and each edge between the sides of a bipartite one.
    """
    return 1


def edges_per_graph_sensitivity(max_occurrences: int) -> int:
    """L1 sensitivity of the vector of edge counts of a set's graphs under adding an edge: k.

    Graphs of a set share no nodes, so each edge of the set is in one graph and counted in one
    cell. An edge of the private data is at most k edges of the set: one, if the set itself is the
    data, and at most k if its graphs were cut from a larger one. Adding or removing it moves at most
    k counts by 1, or fewer counts by k together.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.

    Returns:
        k.
    """
    return max_occurrences


def pair_bit_sensitivity() -> int:
    """Number of node pairs whose bit changes when an undirected edge is added or removed: 1.

    The bits of the N (N - 1) / 2 pairs i < j say which are edges. Randomized response reports each
    on its own, so the two laws of all reports differ by the factor of that one bit. A directed
    graph has a bit for each of N (N - 1) ordered pairs, a bipartite one for each pair of a left and
    a right node, and an edge is one of them.
    """
    return 1


def edge_partition_sensitivity() -> int:
    """L1 sensitivity of the numbers of edges by classes of their ends under adding an edge: 1.

    The classes of the nodes are public or functions of earlier releases, so every pair of nodes
    belongs to one pair of classes, whether linked or not, and an edge is counted there alone. Where
    the ends of an edge have an order, as in a directed or a bipartite graph, so have the classes.
    """
    return 1


def branch_sensitivity() -> int:
    """L1, and L2, sensitivity of the numbers of edges that the branches of a dendrogram divide: 1.

    The dendrogram is a function of earlier releases. Each pair of nodes is divided by one branch, and
    an edge is counted there alone.
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

    The degrees of a directed graph are out-degrees and in-degrees: an edge (i, j) changes the
    out-degree of i and the in-degree of j by 1, and no other. Those of a bipartite graph are the
    degrees of both sides, and an edge changes one of each side by 1. So the joint vector of both
    parts changes by 2, each part by 1, and each part in descending order by at most 1.
    """
    return 2


def weighted_joint_degree_sensitivity() -> int:
    r"""Sensitivity of the joint degrees, a change of cell (a, b), a <= b, divided by b: 4.

    Cell (a, b) counts the edges whose ends have the degrees a and b. Let u and v have x and y
    neighbors, and add the edge {u, v}; removing it takes that back. Each old edge of u leaves a cell
    whose larger degree is x or more and enters one where it is x + 1 or more, which is
    :math:`x (1/x + 1/(x+1)) = 2 - 1/(x+1)` at most for all of them, and 0 if there are none. Those
    of v add :math:`2 - 1/(y+1)` at most, and the new edge :math:`1/(\max(x, y) + 1)`, which is no
    more than what is missing to 4. Edges elsewhere keep their degrees. Without the division the
    change grows with the degrees.

    References:
        Proserpio, Goldberg, McSherry, "Calibrating data to sensitivity in private data analysis",
        2014, weigh edges by :math:`1 / (2 + 2a + 2b)`.
    """
    return 4


def projected_degree_sensitivity(max_degree: int) -> int:
    r"""L1 sensitivity of the kept degrees, and of their cumulative histogram, by a node: 2D.

    By the lemma of this file all degrees together change by at most :math:`k + k' + |k - k'| =
    2 \max(k, k') \le 2D`. The cumulative histogram is the number of nodes of a kept degree of at
    least j, for j from 1 to D. A degree that changes by t changes t of these numbers by 1 each.
    Hence they all change by at most 2D together as well. It is attained where v has D edges to
    nodes without other edges, and loses them.

    Args:
        max_degree: Public bound D of the projection.

    Returns:
        2D.
    """
    return 2 * max_degree
