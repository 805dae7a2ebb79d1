"""The public bound on degrees that a restricted guarantee assumes."""

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.methods.constraints import Constraint

MAX_DEGREE = Constraint(
    "a public bound on the degrees of 1 or more that is known without looking at the graph",
    lambda bound: bound >= 1,
)


def degree_assumption(edges: Tensor, bound: int) -> str:
    """Check the degrees, and return the assumption.

    Args:
        edges: Training records of shape ``(M, 2)`` (private).
        bound: Largest degree D (public).

    Raises:
        MisconfigurationException: If a degree is larger; the error reveals this fact only.
    """
    if int(torch.bincount(edges.flatten(), minlength=1).max()) > bound:
        raise MisconfigurationException(
            f"max_degree {bound} is assumed by the guarantee, and a node has more edges; how many "
            "is private\nset it to what is known without looking at this graph, or take PrivCom, "
            "which needs no bound"
        )
    return (
        f"that no node has more than {bound} edges, neither in this graph nor in its neighbors "
        "(restricted DP: assumed, not enforced, and whether a run was refused for it is not "
        "protected)"
    )


def degree_condition(bound: int) -> str:
    """Bound on the degrees, as the condition of a guarantee."""
    return f"no node has more than {bound} edges, in this graph and its neighbors"
