r"""Declared sensitivities of block models by all edges of a node; each docstring is the proof.

The relation is ``node``: G' is G without the k edges of one node, which stays, and k is at most D.
Both graphs are the ends of a chain of k steps that remove one of these edges each. The statements for
one edge hold for *all* graphs, so the graphs of the chain need no bound; their degrees are not
larger than those of G in any case. What changes by at most c with a step changes by at most D c along
the chain.

Flips of a guard before the reads change nothing of this. With equal flips the two results differ in
the same k pairs, in whichever direction, which is again a chain of k steps; averages over equal flips
keep the bounds. A guard at g alone is D g-DP, by k of its bits, and so is all that is read behind it:
see :func:`node_pair_bit_sensitivity`.

Edges of a node that are exchanged for others are k removed and k' added ones, up to 2D steps: two
changes of this relation. A single edge is one step, at 1 / D of the cost.
"""


def node_label_utility_sensitivity(max_degree: int) -> int:
    r"""Change of the number of edges within groups, by all edges of a node: D.

    A step multiplies the probability of labels under :math:`P(z) \propto e^{\beta u(z)} h(z)` by a
    factor in :math:`[e^{-\beta}, e^\beta]`, see :func:`label_utility_sensitivity`, for an edge that
    comes and for one that goes. D steps multiply it by one in :math:`[e^{-D \beta}, e^{D \beta}]`,
    so labels drawn at :math:`\beta = \epsilon / D` are :math:`\epsilon`-DP.

    Args:
        max_degree: Public, assumed bound D on the degrees.

    Returns:
        D.
    """
    return max_degree


def node_pair_bit_sensitivity(max_degree: int) -> int:
    """Number of node pairs whose bits change when all edges of a node come or go: D.

    A step changes the bit of one pair, see :func:`pair_bit_sensitivity`. Randomized response that
    reports each bit at an epsilon of g is thus D g-DP.

    Args:
        max_degree: Public, assumed bound D on the degrees.

    Returns:
        D.
    """
    return max_degree


def node_partition_sensitivity(max_degree: int) -> int:
    """L1 sensitivity of the numbers of edges by groups of their ends, by all edges of a node: D.

    A step changes one of these numbers by 1, see :func:`edge_partition_sensitivity`.

    Args:
        max_degree: Public, assumed bound D on the degrees.

    Returns:
        D.
    """
    return max_degree
