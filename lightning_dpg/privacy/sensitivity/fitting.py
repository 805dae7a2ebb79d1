"""Sensitivities of what a model is fitted by: clipped gradients, client updates and likelihoods."""

import math


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


def log_likelihood_sensitivity(num_nodes: int) -> float:
    r"""Largest change of a dendrogram's log-likelihood by an edge: :math:`m \ln m - (m-1) \ln (m-1)`.

    The log-likelihood is a sum over branches, of :math:`f(e) = e \ln (e / m) + (m - e) \ln (1 - e /
    m)` for one that divides nodes with m pairs between its two sides and e edges among these. A pair
    of nodes is divided by one branch alone. Hence an edge changes one e by 1. f is convex and the
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
