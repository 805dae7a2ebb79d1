"""Which settings of PrivCom go together."""

from typing import Any

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.edge_sampling import MAX_NODES


def checked_num_nodes(h: Any) -> int:
    """Number of nodes, if the arguments go together.

    Raises:
        ValueError: If one is out of range.
        MisconfigurationException: If they do not fit each other.
    """
    for name, choices in (
        ("release", ("noisy_oja", "rr_spectral")),
        ("relation", ("edge", "node")),
        ("mode", ("corrected", "paper")),
    ):
        if h[name] not in choices:
            raise ValueError(f"{name} must be {' or '.join(choices)}, got {h[name]!r}")
    for name in ("degree_share", "value_share"):
        if not 0 < h[name] < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {h[name]}")
    if h["iterations"] < 1 or h["hops"] < 0 or not h["clip"] > 0:
        raise ValueError(
            "iterations must be 1 or more, hops 0 or more and clip positive, got "
            f"{h['iterations']}, {h['hops']} and {h['clip']}"
        )
    size = h["num_nodes"]
    if size is None:
        raise MisconfigurationException(
            "num_nodes is needed: the number of (public) nodes of the graph"
        )
    if not 1 <= h["rank"] <= size:
        raise ValueError(f"rank must be from 1 to the {size} nodes, got {h['rank']}")
    if h["release"] == "rr_spectral":
        if h["mode"] == "paper" or h["relation"] == "node" or h["hops"]:
            raise MisconfigurationException(
                "release: rr_spectral is randomized response, which is for relation: edge, mode: "
                "corrected and hops: 0\nset them so, or release to noisy_oja"
            )
        if size > MAX_NODES:
            raise MisconfigurationException(
                f"release: rr_spectral reports on all pairs of nodes, which are too many for {size} "
                f"nodes (at most {MAX_NODES})\nset it to noisy_oja"
            )
    needs_bound = h["mode"] == "corrected" and (h["relation"] == "node" or h["hops"] > 0)
    if needs_bound and not (h["max_degree"] and h["max_degree"] > 0):
        raise MisconfigurationException(
            "relation: node and hops need max_degree, a public bound on the degrees that is known "
            "without looking at the graph"
        )
    return int(size)


def degree_assumption(edges: Tensor, bound: int) -> str:
    """The sentence that says what is assumed of degrees.

    Args:
        edges: Training records of shape ``(M, 2)`` (private).
        bound: Largest degree D (public).

    Raises:
        MisconfigurationException: If a node has more; that tells no more than that it has.
    """
    if int(torch.bincount(edges.flatten(), minlength=1).max()) > bound:
        raise MisconfigurationException(
            f"max_degree {bound} is assumed by the guarantee, and a node has more edges; how many "
            "is private\nset it to what is known without looking at this graph, or take relation: "
            "edge and hops: 0"
        )
    return (
        f"No node has more than {bound} edges, neither in this graph nor in its neighbours "
        "(restricted DP): this is assumed, not enforced, and whether a run was refused for it is "
        "not protected."
    )
