"""Sensitivities of statistics that are summed over the graphs of a set."""


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
