"""Sensitivity of counts of wedges, closed wedges, and wedges by the labels of their ends."""


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
