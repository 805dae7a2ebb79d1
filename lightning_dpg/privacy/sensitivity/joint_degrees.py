"""Sensitivity of the joint degree distribution (dK-2)."""


def weighted_joint_degree_sensitivity() -> int:
    r"""Sensitivity of the joint degrees, a change of cell (a, b), a <= b, divided by b: 4.

    Cell (a, b) counts the edges whose ends have the degrees a and b. Let u and v have x and y
    neighbors, and add the edge {u, v}; removing it takes that back. Each old edge of u leaves a cell
    whose larger degree is x or more and enters one where it is x + 1 or more, which is
    :math:`x (1/x + 1/(x+1)) = 2 - 1/(x+1)` at most for all of them, and 0 if there are none. Those
    of v add :math:`2 - 1/(y+1)` at most, and the new edge :math:`1/(\max(x, y) + 1)`, which is no
    more than what is missing to 4. Edges elsewhere keep their degrees. Without the division the
    change grows with the degrees, see :func:`joint_degree_sensitivity`.

    References:
        Proserpio, Goldberg, McSherry, "Calibrating data to sensitivity in private data analysis",
        2014, weigh edges by :math:`1 / (2 + 2a + 2b)`.
    """
    return 4


def joint_degree_sensitivity(largest_two: int) -> int:
    r"""L1 change at most of the joint degrees, by an edge that comes to or goes from a graph: 2T + 1.

    Cell (a, b) counts the edges whose ends have the degrees a <= b. Add the edge {u, v} where u and
    v have x and y neighbors: each of these x + y edges leaves one cell and enters another, and the
    new edge enters one, which is 2 (x + y) + 1 at most. The two degrees are no larger than the two
    largest ones, and so it is when the edge goes, which takes x - 1 and y - 1 other edges along.

    This is a bound for one graph, no sensitivity of all of them. It may be used where T is a released
    number, of :math:`\epsilon_1`, that is below the sum L of its own graph with a probability of
    delta at most: T is then booked as :math:`(\epsilon_1, \delta)`, and the joint degrees as
    :math:`\epsilon_2`. Proof: of two neighbors, let m be the smaller L, that of the graph with fewer
    edges. T is below m with a probability of delta at most under both, as m is no more than either L.
    T together with the graph itself where :math:`T < m` is thus :math:`(\epsilon_1, \delta)`-DP for
    these two. Given any T from m on, 2T + 1 bounds the change, and noise of this scale makes the joint
    degrees :math:`\epsilon_2`-DP; given a smaller T, they are computed from what T has shown. Whoever
    stops once T is known has spent delta: it decides whether the noise that comes next is enough.

    Args:
        largest_two: Sum T of the two largest degrees of the graph, or more.

    Returns:
        2T + 1.

    References:
        Karwa, Raskhodnikova, Smith, Yaroslavtsev, "Private analysis of graph structure", 2011,
        release a bound of a local sensitivity before the noise that is scaled to it.
        Nissim, Raskhodnikova, Smith, "Smooth sensitivity and sampling in private data analysis",
        2007. Smooth bounds, of which Wang and Wu take one, are not released: their logarithm may
        change by epsilon / 4 (D + ln(2 / delta)) only where D cells have noise, so for the
        cells of a graph of 1,000 nodes they hardly differ from the sensitivity of all graphs.
    """
    return 2 * largest_two + 1
