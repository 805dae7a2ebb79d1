"""Sensitivity of the likelihood of a hierarchical random graph."""

import math


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
