"""Sensitivity of sums of clipped gradients and of client updates."""


def edge_gradient_sensitivity(max_grad_norm: float) -> float:
    r"""L2 sensitivity of a sum of clipped per-edge gradients under adding or removing an edge.

    An undirected edge is exactly one record (i, j) with i < j, drawn into the batch or not, and the
    sum is :math:`\sum_e \mathrm{clip}_C(g_e)` with :math:`g_e` a function of the record e and of
    what is public or released: the weights, random numbers, fakes that read no record. There
    are no batch statistics and no division by the realized batch size. Neighboring graphs
    differ in one record, hence with the same draw of the others in at most one summand, whose norm
    is at most C. Stored in both orientations an edge would be two records and move the sum by
    2C; datamodules refuse that.

    Args:
        max_grad_norm: Clipping norm C over all parameters together.

    Returns:
        C.
    """
    return max_grad_norm


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
