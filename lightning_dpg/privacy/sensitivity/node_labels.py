"""Sensitivity of the number of edges between nodes of equal labels."""


def label_utility_sensitivity() -> int:
    r"""Change of the number of edges within groups, by an edge: 1, and never a decrease.

    The utility u(z) of labels z is the number of edges whose ends have equal labels. An edge more adds
    0 or 1 to each u(z).

    The exponential mechanism over labels with :math:`P(z) = w(z) / \sum_y w(y)`,
    :math:`w(z) = e^{\beta u(z)} h(z)` and h a function of public and released values is therefore
    :math:`\beta`-DP. An edge more multiplies w(z) by :math:`a(z) \in \{1, e^\beta\}`, and the sum of all
    by an average A of these factors, so P(z) is multiplied by a(z) / A, which lies in
    :math:`[e^{-\beta}, e^\beta]`. There is no factor 2, since all utilities change in the same
    direction. An edge less divides by the same number.

    All edges of a node are at most D edges in graphs of degrees up to D: its group privacy is
    :math:`D \beta`.

    Returns:
        1.

    References:
        McSherry, Talwar, "Mechanism design via differential privacy", 2007.
        Dong, Durfee, Rogers, "Optimal differential privacy composition for exponential mechanisms",
        2020, on the range of such a change.
    """
    return 1
