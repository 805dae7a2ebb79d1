r"""Declared sensitivities of degrees that were projected to at most D; each docstring is the proof.

The relation is ``node``, and more: the graphs G and G' differ in the edges of one node v only,
*whichever* come and go, so rewiring v is one change like removing all its edges. The true
degrees are not bounded. :func:`project_degrees` goes through the pairs in one public order and keeps
an edge if both its ends have fewer than D kept edges. It keeps k edges of v in G, and k' in G'.

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

The bounds of Day, Li, Lyu ("Publishing graph degree distribution with node differential privacy",
2016) are 2D + 1 for the histogram and D + 1 for the cumulative one. They hold where a node comes with
its edges, and for D > 1 they are too small here, where the node stays and also changes its own bin.
"""


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


def projected_edge_count_sensitivity(max_degree: int) -> int:
    r"""Sensitivity of the number of kept edges by a node: D.

    The number is half the sum of the kept degrees, which changes by at most 2D, see
    :func:`projected_degree_sensitivity`. It is attained by the same graphs.

    Args:
        max_degree: Public bound D of the projection.

    Returns:
        D.
    """
    return max_degree


def projected_histogram_sensitivity(max_degree: int) -> int:
    r"""L1 sensitivity of the histogram of the kept degrees by a node: 4D.

    A node whose degree changes leaves one bin for another, which is 2. By the lemma of this file at
    most k + k' nodes beside v do so, and v itself if k differs from k'. Then k + k' is at most
    2D - 1. Hence at most 2D nodes change in either case. Six nodes attain it for D up to 3. If v
    loses all its edges, k' is 0, and the bound is 2(k + 1), at most 2D + 2.

    Args:
        max_degree: Public bound D of the projection.

    Returns:
        4D.
    """
    return 4 * max_degree
