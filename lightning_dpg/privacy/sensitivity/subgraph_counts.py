r"""Sensitivities of counts of subgraphs: wedges, closed wedges, triangles, components, walks and graphlets.

**Walks and graphlets** are counted in truncated graphs: D bounds the degrees of the graphs that are
compared. Neighboring graphs differ in one edge {u, v}; G has it, G' has not. The graphs of a set share no
nodes, so an edge changes the counts of one graph only, and graphs compose in parallel.

* Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy", 2015.
"""

import math


def wedge_sensitivity(closures_per_edge: int) -> int:
    r"""L1 sensitivity of wedges and closed wedges by class, as chosen by ``count_wedges``: 6 + t.

    Each slot of a node holds one wedge or none, a function of the node's own neighbors in its two
    bins. A link closes the wedges between its ends, but only the first t in a public order of
    the slots are counted. Slots, bins, order and classes are public or functions of earlier
    releases. Add the edge {u, v} in three steps; removing it takes them back.

    1. v becomes a neighbor of u, while all closures are still decided by the old edges. One bin of
       u, hence one slot of u can change. Either a wedge comes where none was: the class of u has one
       wedge more, and if it is counted as closed, one closed wedge more, and another wedge with
       the same ends may drop out of the first t. That is 3. Or the wedge gets another end: the number
       of wedges stays. If the old one was counted, the class of u loses one closed wedge and
       another with the old ends may move up; if the new one is counted, the class of u wins one
       and another with the new ends may drop out. One of both is 2, and both are 2 as well, since
       loss and gain of the class of u cancel. So at most 3.
    2. u becomes a neighbor of v: at most 3 likewise.
    3. The link {u, v} closes the wedges between u and v, of which at most t are counted. Wedges
       with other ends do not notice: t.

    Args:
        closures_per_edge: For how many wedges t a link counts.

    Returns:
        6 + t.
    """
    return 6 + closures_per_edge


def label_wedge_sensitivity() -> int:
    """L1 sensitivity of wedges by equal or different labels of their ends, ``count_label_wedges``: 4.

    Each slot of a node holds one wedge or none, a function of the node's own neighbors in its two
    bins. Slots, bins and labels are public or functions of earlier releases. Add the edge {u, v};
    removing it takes this back. Then v becomes a neighbor of u, in one bin of u, hence in one slot of u.
    Either a wedge comes where none was, which adds 1 to one of both numbers. Or the wedge gets another
    end: it stays in its number, or leaves it for the other one, which changes both by 1. So at most 2.
    Likewise u becomes a neighbor of v: at most 2. The slots of all other nodes stay as they are, since
    it does not matter whether the ends of a wedge are linked.

    Returns:
        4.
    """
    return 4


def pooled_degree_sensitivity(max_occurrences: int, unit: int) -> int:
    r"""L1 sensitivity of weighted sums of ordered degrees, by class of graphs and by bin: 2 u k.

    Each graph is in one class, a function of its public size and of earlier releases. Its degrees
    are sorted in descending order. The place r adds :math:`w_{rb} d_{(r)}` to bin b of its class,
    where the integers :math:`w_{rb} \ge 0` are public or functions of earlier releases, and
    :math:`\sum_b w_{rb} \le u`.

    An edge that is added raises two degrees by 1 and lowers none. The r-th largest degree is the
    largest t that r nodes or more reach, so no :math:`d_{(r)}` becomes smaller, and all
    together grow by the 2 of their sum. The bins change together by
    :math:`\sum_r \sum_b w_{rb} \Delta_{(r)} \le 2u`.

    An edge of the private data is at most k edges of the set. They are added one after the other,
    each at a cost of 2 u at most.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.
        unit: Largest sum u of the weights of a place.

    Returns:
        2 u k.
    """
    return 2 * unit * max_occurrences


def pooled_triangle_sensitivity(max_occurrences: int, unit: int) -> int:
    r"""L1 sensitivity of sums of triangles over n - 2, by class of graphs, in units of 1 / u: u k.

    Each graph of n nodes with T triangles, n at least 3, adds
    :math:`\lfloor u T / (n - 2) \rfloor` to the sum of its class. The third node of a triangle on an
    edge is one of the n - 2 others, so an edge that is added closes at most n - 2 triangles and
    opens none. The number in the brackets grows by at most the integer u, and so does its floor,
    since :math:`\lfloor x + u \rfloor = \lfloor x \rfloor + u`. An edge of the private data is at
    most k edges of the set, and they are added one after the other.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.
        unit: Number u of units of a statistic of 1.

    Returns:
        u k.
    """
    return unit * max_occurrences


def pooled_component_sensitivity(max_occurrences: int, unit: int) -> int:
    r"""Sensitivity of the sum of largest components over half the nodes, in units of 1 / u: u k.

    Each graph of n nodes with a largest component of L nodes adds :math:`\lfloor 2 u L / n \rfloor`.
    An edge that is added does not make L smaller. An edge that is removed splits its component into
    two parts at most. The larger part of the largest component keeps half of its nodes. Hence L
    loses at most :math:`L / 2 \le n / 2`. Then 2 u L / n changes by at most the integer u, and so
    does its floor. An edge of the private data is at most k edges of the set, and they are added one
    after the other.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.
        unit: Number u of units of a statistic of 1.

    Returns:
        u k.
    """
    return unit * max_occurrences


def truncated_sensitivity(sensitivity: float, stretch: int) -> float:
    """L1 sensitivity of a function of the truncated graph, on all graphs: stretch times its own.

    Truncation leaves degrees of at most D, and makes of neighboring graphs two that differ in at
    most ``stretch`` edges. Take from the first, one by one, the edges that the second lacks, then add
    those that only the second has. The first half of the way consists of subgraphs of the first,
    the second half of subgraphs of the second, hence all degrees on it are at most D, and no step
    changes the function by more than its sensitivity on such graphs. The same holds for L2.

    Args:
        sensitivity: Largest change by an edge among graphs with degrees of at most D.
        stretch: :func:`truncation_stretch`.
    """
    return stretch * sensitivity


def truncation_stretch() -> int:
    """Edges in which truncated neighboring graphs differ at most: 3.

    The proof is that of :func:`lightning_dpg.graph.degrees.truncate`.
    """
    return 3


def walk_sensitivity(length: int, max_degree: int) -> int:
    r"""Largest change of the number of walks of length k: :math:`2 D^{k-2} (kD - k + 1)`.

    With E the matrix of the edge {u, v}, whose two entries are 1,
    :math:`1^T A^k 1 - 1^T A'^k 1 = \sum_{i=0}^{k-1} 1^T A^i E A'^j 1`, where j = k - 1 - i. The entry
    of :math:`A^i 1` at a node is the number of walks from it and at most :math:`D^i`. In
    G' the nodes u and v have D - 1 neighbors at most, and so :math:`A'^j 1` is at most
    :math:`(D - 1) D^{j-1}` there, or 1 for j = 0. The k summands are thus
    :math:`2 (D - 1) D^{k-2}`, but the last one :math:`2 D^{k-1}`. All are counts; hence the change
    is no less than 0. It is attained for k up to 3 where the nodes around the edge are of degree D
    and form a tree.

    Args:
        length: Length k, 1 or more.
        max_degree: D, 1 or more.
    """
    if length == 1:
        return 2
    return 2 * max_degree ** (length - 2) * (length * max_degree - length + 1)


def printed_walk_sensitivity(length: int, max_degree: int) -> int:
    """The paper's bound :math:`2 k D^{k-1}` of the same change, which is true but not attained."""
    return 2 * length * max_degree ** (length - 1)


def containing_graphlets(size: int, max_degree: int) -> int:
    r"""Connected sets of k nodes that contain an edge: :math:`Z = \frac{2}{k} \binom{k(D-1)}{k-2}`.

    A set that is connected has a spanning tree with the edge in it. The universal cover of G is a
    part of the infinite tree whose degrees are D. A spanning tree has one lift that contains a
    given lift of the edge, and the lift determines the tree, and so the set. Hence there are no
    more such trees, over all sets together, than subtrees of k nodes of the infinite tree around
    one of its edges. These are pairs of non-empty (D - 1)-ary trees with k nodes together, whose
    number is the one above, a whole one. It is attained if G is a tree around the edge with degree
    D.

    Args:
        size: Number of nodes k, 2 or more.
        max_degree: D, 1 or more.
    """
    return 2 * math.comb(size * (max_degree - 1), size - 2) // size


def graphlet_sensitivity(size: int, max_degree: int) -> int:
    r"""L1 sensitivity of the numbers of induced connected graphlets with k nodes, by type: Z.

    Only sets with both u and v change, and those that are not connected in G are not in G' either.
    So let S be connected in G. If it is not so in G', it leaves its type, which is 1. If it still
    is, it may leave one type and enter another, which is 2; but then the edge lies on a cycle
    of S. For each of the two or more other edges f of the cycle there is a spanning tree of S that
    contains all of the cycle but f, and these trees differ. So S changes the vector by no more than
    the number of its spanning trees with the edge. All sets together have no more than Z of these, see
    :func:`containing_graphlets`, and a tree of degree D attains it. No type changes by more.

    Args:
        size: Number of nodes k, 3 or more.
        max_degree: D, 1 or more.
    """
    return containing_graphlets(size, max_degree)


def printed_graphlet_sensitivity(size: int, max_degree: int) -> int:
    """The paper's bound :math:`k D^{k-1}` on the change of one type, which is true but loose."""
    return size * max_degree ** (size - 1)


def amplified_epsilon(epsilon: float, sample_rate: float) -> float:
    r"""Epsilon of a mechanism on a Poisson sample of the edges: :math:`\log(1 + q(e^\epsilon - 1))`.

    Each edge is kept with probability q, and all else is done inside the kept graph: truncation,
    counting, noise. Given what else was kept, the law with {u, v} in the graph is q times that of
    the mechanism with it plus 1 - q times that without it, and these two are within a factor of
    :math:`e^\epsilon`. Counts are of the sample: dividing by :math:`q^{|E(H)|}` afterwards
    multiplies the noise, so sampling saves time, not error.

    Args:
        epsilon: Epsilon of the mechanism on the kept graph.
        sample_rate: q.
    """
    return math.log1p(sample_rate * math.expm1(epsilon))


def printed_amplification(
    epsilon: float, num_samples: int, num_edges: int, size: int, max_degree: int
) -> float:
    r"""Epsilon that the paper claims for drawn edges: :math:`\log(1 + \beta_u e^\epsilon - \beta_l)`.

    No guarantee: epsilon is that of noise for exact counts, while a drawn edge is multiplied by
    m / s; m is read from the graph; and :math:`\beta_u`, the probability
    :math:`1 - ((m-1)(m - 2(D-1)^{t-1}) / m^2)^s` that a draw meets the edge or its surroundings,
    takes the two for independent and is too small.

    Args:
        epsilon: Claimed epsilon of the noise without sampling.
        num_samples: Number of draws s.
        num_edges: m.
        size: Number of nodes t of the graphlets.
        max_degree: D.
    """
    surroundings = min(num_edges, 2 * (max_degree - 1) ** (size - 1))
    missed = (num_edges - 1) * (num_edges - surroundings) / num_edges**2
    upper = 1 - missed**num_samples
    lower = 1 - (1 - 1 / num_edges) ** num_samples
    return math.log1p(upper * math.exp(epsilon) - lower)
