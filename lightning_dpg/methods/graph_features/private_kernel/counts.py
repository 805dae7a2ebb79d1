"""What a private graph kernel counts in each graph of a set, and how far one edge moves the counts."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.graphlets import GRAPHLETS, graphlet_counts
from lightning_dpg.graph.truncation import drop_high_degree, truncate
from lightning_dpg.graph.walk_counts import walk_counts
from lightning_dpg.privacy.sensitivity import edges_per_graph_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    dropping_stretch,
    graphlet_sensitivity,
    printed_graphlet_sensitivity,
    printed_walk_sensitivity,
    truncation_stretch,
    walk_sensitivity,
)

WALKS = ("w", "prw")
GRAPHLET_SIZES = {f"gk-{how}{size}": size for how in "ca" for size in (3, 4, 5)}
FEATURES = ("nodes", "edges", *WALKS, *GRAPHLET_SIZES)


class Counted(NamedTuple):
    """Counts that are released together.

    Attributes:
        key: Key of the release in the ledger.
        name: Name of the release in the ledger.
        columns: Names of the F columns.
        sensitivity: Largest L1 change by one edge of the set.
        proof: Where that is proved.
        printed: Change of one count by one edge that the paper prints.
    """

    key: str
    name: str
    columns: tuple[str, ...]
    sensitivity: int
    proof: str
    printed: int


def planned(h: Any) -> list[Counted]:
    """What the settings ask for, in the order of the features; a function of what is public.

    Args:
        h: Hyperparameters of ``PrivateGraphKernel``.
    """
    moved_edges, degree = stretch(h), h["max_degree"] or 1
    plan = []
    for feature in h["features"]:
        if feature == "edges":
            proof = "edges_per_graph_sensitivity"
            moved = edges_per_graph_sensitivity(1)
            plan.append(Counted("edge_counts", "number of edges", ("edges",), moved, proof, 1))
        elif feature in WALKS:
            for length in range(1, h["length"] + 1):
                name = f"walks of length {length}"
                moved = moved_edges * walk_sensitivity(length, degree)
                proof = "truncated_sensitivity, walk_sensitivity"
                printed = printed_walk_sensitivity(length, degree)
                plan.append(Counted(f"walks_{length}", name, (name,), moved, proof, printed))
        elif feature in GRAPHLET_SIZES:
            size = GRAPHLET_SIZES[feature]
            columns = tuple(f"{size} nodes: {name}" for name in GRAPHLETS[size])
            moved = moved_edges * graphlet_sensitivity(size, degree)
            proof = "truncated_sensitivity, graphlet_sensitivity"
            printed = printed_graphlet_sensitivity(size, degree)
            key, name = f"graphlets_{size}", f"graphlets of {size} nodes"
            plan.append(Counted(key, name, columns, moved, proof, printed))
    return plan


def check_settings(h: Any, epsilon: float = math.inf) -> None:
    """Refuse settings that are unknown or do not go together.

    Args:
        h: Hyperparameters of ``PrivateGraphKernel``.
        epsilon: The budget, as far as it is known.

    Raises:
        ValueError: If one is out of range.
        MisconfigurationException: If they do not fit each other, or the budget.
    """
    features = h["features"]
    unknown = [feature for feature in features if feature not in FEATURES]
    if unknown or not features or len(set(features)) < len(features):
        raise ValueError(
            f"features must be different ones of {', '.join(FEATURES)}, got {features}"
        )
    for name, choices in (
        ("truncation", ("canonical", "drop", "none")),
        ("mechanism", ("laplace", "gaussian")),
        ("sampling", ("poisson", "edges")),
        ("mode", ("corrected", "paper")),
    ):
        if h[name] not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {h[name]!r}")
    if h["length"] < 1 or h["num_samples"] < 1 or not 0 < h["sample_rate"] <= 1:
        raise ValueError(
            "length and num_samples must be 1 or more and sample_rate in (0, 1], got "
            f"{h['length']}, {h['num_samples']} and {h['sample_rate']}"
        )
    counts = [feature for feature in features if feature not in ("nodes", "edges")]
    sampled = [feature for feature in counts if feature.startswith("gk-a")]
    if "prw" in features and len(features) > 1:
        raise MisconfigurationException(
            "prw is a kernel of its own: make it the only one of features, or take w"
        )
    if sampled and set(features) - {"nodes"} != set(sampled):
        raise MisconfigurationException(
            f"{', '.join(sampled)} are counted in a sample, and the other features are not: leave "
            "either out, but for nodes"
        )
    if counts and h["truncation"] != "none" and not (h["max_degree"] and h["max_degree"] > 0):
        raise MisconfigurationException(
            f"{counts[0]} needs max_degree, a public bound on the degrees that is known without "
            "looking at the graphs\nor truncation: none, without privacy (privacy.epsilon .inf)"
        )
    graphlets = [feature for feature in counts if feature in GRAPHLET_SIZES]
    if graphlets and h["truncation"] != "none" and h["max_degree"] == 1:
        raise MisconfigurationException(
            f"{graphlets[0]} counts connected sets of three nodes or more, of which max_degree 1 leaves "
            "none\nset max_degree to 2 or more, or count edges"
        )
    if counts and h["truncation"] == "none" and math.isfinite(epsilon):
        raise MisconfigurationException(
            f"without truncation one edge can move {counts[0]} by any amount\n"
            "set truncation to canonical, or privacy.epsilon to .inf"
        )
    if h["mode"] == "paper" and (h["mechanism"] != "laplace" or h["truncation"] == "drop"):
        raise MisconfigurationException(
            "mode: paper has mechanism: laplace and truncation: canonical: set them so"
        )
    if sampled and math.isfinite(epsilon) and (h["mode"] == "paper" or h["mechanism"] != "laplace"):
        raise MisconfigurationException(
            f"{sampled[0]}: only mode: corrected with mechanism: laplace has a guarantee\n"
            "set them so, or privacy.epsilon to .inf"
        )


def check_magnitude(h: Any, num_nodes: int) -> None:
    """Refuse counts that could need more than 64 bits, by what is public and not by the counts.

    Args:
        h: Hyperparameters of ``PrivateGraphKernel``.
        num_nodes: Number of nodes of all graphs.

    Raises:
        MisconfigurationException: If they could.
    """
    walks = any(feature in WALKS for feature in h["features"])
    sizes = [GRAPHLET_SIZES[feature] - 1 for feature in h["features"] if feature in GRAPHLET_SIZES]
    steps = max([h["length"] if walks else 0, *sizes])
    if h["max_degree"] and num_nodes * h["max_degree"] ** steps > 2**62:
        raise MisconfigurationException(
            f"graphs of {num_nodes} nodes with up to {h['max_degree']} edges each can hold more than "
            f"2^62 walks of length {steps}\nlower max_degree or length"
        )


def truncated(h: Any, edges: Tensor, num_nodes: int) -> Tensor:
    """Edges of a set that are counted in, shape ``(M', 2)`` (private)."""
    if h["truncation"] == "none" or h["max_degree"] is None:  # which only "edges" goes without
        return edges
    cut = truncate if h["truncation"] == "canonical" else drop_high_degree
    return cut(edges, num_nodes, h["max_degree"])


def counted(h: Any, edges: Tensor, graph_of: Tensor, num_graphs: int) -> Iterator[Tensor]:
    """The counts of :func:`planned`, each of shape ``(G, F)`` (private).

    Args:
        h: Hyperparameters of ``PrivateGraphKernel``.
        edges: Edges of all graphs, shape ``(M, 2)``.
        graph_of: Number of the graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
    """
    kept = truncated(h, edges, len(graph_of))
    for feature in h["features"]:
        if feature == "edges":
            yield torch.bincount(graph_of[edges[:, 0]], minlength=num_graphs)[:, None]
        elif feature in WALKS:
            yield from walk_counts(kept, graph_of, num_graphs, h["length"])[:, None].unbind(2)
        elif feature in GRAPHLET_SIZES:
            yield graphlet_counts(kept, graph_of, num_graphs, GRAPHLET_SIZES[feature])


def shares(plan: Sequence[Counted], given: Sequence[float] | None) -> list[float]:
    r"""Parts of the budget: as given, or in proportion to :math:`\Delta^{2/3}`.

    The latter makes the sum of the variances of the Laplace noise, :math:`\sum_i 2 (\Delta_i /
    \epsilon_i)^2`, as small as it can be.

    Raises:
        MisconfigurationException: If the given ones do not fit the plan.
    """
    if given is None:
        weights = [one.sensitivity ** (2 / 3) for one in plan]
        return [weight / math.fsum(weights) for weight in weights]
    if len(given) != len(plan) or min(given) <= 0 or not math.isclose(math.fsum(given), 1):
        raise MisconfigurationException(
            f"shares must be {len(plan)} positive numbers that add up to 1, got {list(given)}\n"
            f"one for each of: {', '.join(one.name for one in plan)}"
        )
    return list(given)


def stretch(h: Any) -> int:
    """How many truncated edges one edge of a set may change; 0 without truncation."""
    if h["truncation"] == "none" or h["max_degree"] is None:
        return 0
    if h["truncation"] == "canonical":
        return truncation_stretch()
    return dropping_stretch(h["max_degree"])
