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


def edges_per_graph_sensitivity(max_occurrences: int) -> int:
    """L1 sensitivity of the vector of edge counts of a set's graphs under adding an edge: k.

    Graphs of a set share no nodes, so that each edge of the set is in one graph and counted in one
    cell. An edge of the private data is at most k edges of the set: one, if the set itself is the
    data, and at most k if its graphs were cut from a larger one. Adding or removing it moves at most
    k counts by 1, or fewer counts by k together.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.

    Returns:
        k.
    """
    return max_occurrences


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


def edge_partition_sensitivity() -> int:
    """L1 sensitivity of the numbers of edges by classes of their ends under adding an edge: 1.

    The classes of the nodes are public or functions of earlier releases, so that every pair of nodes
    belongs to one pair of classes, whether linked or not, and an edge is counted there alone.
    """
    return 1


def wedge_sensitivity(closures_per_edge: int) -> int:
    r"""L1 sensitivity of wedges and closed wedges by class, as chosen by ``count_wedges``: 6 + t.

    Each slot of a node holds one wedge or none, a function of the node's own neighbours in its two
    bins. A link closes the wedges between its ends, but only the first t in a public order of
    the slots are counted. Slots, bins, order and classes are public or functions of earlier
    releases. Add the edge {u, v} in three steps; removing it takes them back.

    1. v becomes a neighbour of u, while all closures are still decided by the old edges. One bin of
       u, hence one slot of u can change. Either a wedge comes where none was: the class of u has one
       wedge more, and if it is counted as closed, one closed wedge more, and another wedge with
       the same ends may drop out of the first t. That is 3. Or the wedge gets another end: the number
       of wedges stays. If the old one was counted, the class of u loses one closed wedge and
       another with the old ends may move up; if the new one is counted, the class of u wins one
       and another with the new ends may drop out. One of both is 2, and both are 2 as well, since
       loss and gain of the class of u cancel. So at most 3.
    2. u becomes a neighbour of v: at most 3 likewise.
    3. The link {u, v} closes the wedges between u and v, of which at most t are counted. Wedges
       with other ends do not notice: t.

    Args:
        closures_per_edge: For how many wedges t a link counts.

    Returns:
        6 + t.
    """
    return 6 + closures_per_edge


def earlier_neighbor_sensitivity() -> int:
    """L1 sensitivity of counts of earlier neighbours under adding or removing an edge: 1.

    Nodes have their turns in an order that is public or released. A node counts the edges to nodes
    of earlier turns, by their communities. An edge {u, v} is counted by the later one of u and v
    only, in the one cell of the earlier one's community, and not at all if both have the same turn.
    Given the communities of earlier turns, neighbouring graphs thus differ by 1 in one cell of one
    node at most. Counted at both ends, as in PrivGraph's paper, an edge would move two cells.
    """
    return 1


def aggregation_sensitivity() -> float:
    r"""L2 sensitivity of the sums of neighbors' rows under adding or removing an edge: sqrt(2).

    The rows :math:`x_i` are public or functions of earlier releases, and their norms are at most 1.
    The sum of node i is that of :math:`x_j` over its neighbors j. The edge {u, v} adds
    :math:`x_v` to the sum of u and :math:`x_u` to that of v, and no other sum changes; the norm of
    both changes together is at most :math:`\sqrt{1 + 1}`. Were the sums divided by degrees, those of
    all neighbors of u and v would change as well.
    """
    return math.sqrt(2)


def weighted_joint_degree_sensitivity() -> int:
    r"""Sensitivity of the joint degrees, a change of cell (a, b), a <= b, divided by b: 4.

    Cell (a, b) counts the edges whose ends have the degrees a and b. Let u and v have x and y
    neighbours, and add the edge {u, v}; removing it takes that back. Each old edge of u leaves a cell
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
    """L1 change at most of the joint degrees, by an edge that comes to or goes from a graph: 2T + 1.

    Cell (a, b) counts the edges whose ends have the degrees a <= b. Add the edge {u, v} where u and
    v have x and y neighbours: each of these x + y edges leaves one cell and enters another, and the
    new edge enters one, which is 2 (x + y) + 1 at most. The two degrees are no larger than the two
    largest ones, and so it is when the edge goes, which takes x - 1 and y - 1 other edges along.

    This is a bound for one graph, no sensitivity of all of them. It may be used where T is a released
    number that is too small with a probability of delta at most: unless it is, the two laws of what
    is released together are within the sum of both epsilons, and if it is, that is delta.

    Args:
        largest_two: Sum T of the two largest degrees of the graph, or more.

    Returns:
        2T + 1.

    References:
        Karwa, Raskhodnikova, Smith, Yaroslavtsev, "Private analysis of graph structure", 2011,
        release a bound of a local sensitivity before the noise that is scaled to it.
        Nissim, Raskhodnikova, Smith, "Smooth sensitivity and sampling in private data analysis",
        2007. Smooth bounds, of which Wang and Wu take one, are not released: their logarithm may
        change by epsilon / 4 (D + ln(2 / delta)) only where D cells have noise, so that for the
        cells of a graph of 1,000 nodes they hardly differ from the sensitivity of all graphs.
    """
    return 2 * largest_two + 1


def largest_degrees_sensitivity() -> int:
    """Sensitivity of the sum of the two largest degrees under adding or removing an edge: 2.

    Each of the two changes by 1 at most, as all degrees do, whichever nodes have them.
    """
    return 2


def log_likelihood_sensitivity(num_nodes: int) -> float:
    r"""Largest change of a dendrogram's log-likelihood by an edge: :math:`m \ln m - (m-1) \ln (m-1)`.

    The log-likelihood is a sum over branches, of :math:`f(e) = e \ln (e / m) + (m - e) \ln (1 - e /
    m)` for one that divides nodes with m pairs between its two sides and e edges among these. A pair
    of nodes is divided by one branch alone, so that an edge changes one e by 1. f is convex and the
    same for e and m - e, hence no step is larger than :math:`f(0) - f(1)`, which is the above. It
    grows with m, whose largest value is :math:`\lfloor N / 2 \rfloor \lceil N / 2 \rceil`.

    Args:
        num_nodes: Number of nodes N.

    References:
        Xiao, Chen, Tan, "Differentially private network data release via structural inference",
        2014, for even N.
    """
    most = (num_nodes // 2) * ((num_nodes + 1) // 2)
    return most * math.log(most) - (most - 1) * math.log(most - 1) if most > 1 else 0.0


def branch_sensitivity() -> int:
    """L1, and L2, sensitivity of the numbers of edges that the branches of a dendrogram divide: 1.

    The dendrogram is a function of earlier releases. Each pair of nodes is divided by one branch, and
    an edge is counted there alone.
    """
    return 1


def client_update_sensitivity(max_norm: float, largest_weight: float) -> float:
    r"""L2 sensitivity of a weighted sum of clipped client updates under a change of one graph: 2 S w.

    The sum is :math:`\sum_k w_k \mathrm{clip}_S(u_k)`. Labels and a public seed decide which client
    holds which graph, hence also the weights. The update of a client is a function of its own graphs
    and of the weights that the server has sent, which are released. Exchange one graph for any other
    of the same label, or change an edge of it: the update of the client that holds it becomes another
    vector of length S at most, 2 S away or less, and the others stay.

    Args:
        max_norm: Clipping norm S.
        largest_weight: Largest weight w of a client.

    Returns:
        2 S w.
    """
    return 2 * max_norm * largest_weight
