"""Counted features of a private graph kernel, and bounds on their change by one edge."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.degrees import drop_high_degree, truncate
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts, walk_counts
from lightning_dpg.privacy.events import Event, LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.degrees import edges_per_graph_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    dropping_stretch,
    graphlet_sensitivity,
    printed_graphlet_sensitivity,
    printed_walk_sensitivity,
    truncated_sensitivity,
    truncation_stretch,
    walk_sensitivity,
)

WALKS = ("w", "prw")
GRAPHLET_SIZES = {f"gk-{how}{size}": size for how in "ca" for size in (3, 4, 5)}
FEATURES = ("nodes", "edges", *WALKS, *GRAPHLET_SIZES)


class Counting(NamedTuple):
    """Counted features of each graph, and the truncation of its edges.

    Attributes:
        features: Names of the counts, any of ``FEATURES``.
        length: Longest walks.
        max_degree: Public bound on the degrees; None if only nodes and edges are counted, or
            without truncation.
        truncation: Method that cuts a graph down to ``max_degree``.
    """

    features: Sequence[str]
    length: int
    max_degree: int | None
    truncation: Literal["canonical", "drop", "none"]

    @property
    def is_sampled(self) -> bool:
        """Whether a sample of the edges is counted for graphlets."""
        return any(feature.startswith("gk-a") for feature in self.features)

    @property
    def stretch(self) -> int:
        """Largest number of truncated edges that one edge changes; 0 without truncation."""
        if self.truncation == "none" or self.max_degree is None:
            return 0
        if self.truncation == "canonical":
            return truncation_stretch()
        return dropping_stretch(self.max_degree)


class Counted(NamedTuple):
    """Counts of one joint release.

    Attributes:
        key: Key of the release in the ledger.
        name: Name of the release in the ledger.
        columns: Names of the F columns.
        sensitivity: Largest L1 change by one edge of the set.
        proofs: Functions whose docstrings prove the sensitivity.
        printed: Change of one count by one edge according to the paper.
    """

    key: str
    name: str
    columns: tuple[str, ...]
    sensitivity: float
    proofs: tuple[Callable[..., float], ...]
    printed: int

    @property
    def proof(self) -> str:
        """Names of the proofs."""
        return ", ".join(proof.__name__ for proof in self.proofs)

    def read(self, event: Event, sensitivity: float, proof: str) -> LedgerEntry:
        """Entry of the release of these counts by a mechanism."""
        return LedgerEntry(
            key=self.key,
            name=self.name,
            relation=Relation.EDGE,
            event=event,
            sensitivity=sensitivity,
            proof=proof,
        )


def planned(counting: Counting) -> list[Counted]:
    """Releases of the settings, in the order of the features; all of this is public."""
    stretch, degree = counting.stretch, counting.max_degree or 1
    plan: list[Counted] = []
    proof: tuple[Callable[..., float], ...]
    change: float
    for feature in counting.features:
        if feature == "edges":
            proof, change = (edges_per_graph_sensitivity,), edges_per_graph_sensitivity(1)
            plan.append(Counted("edge_counts", "number of edges", ("edges",), change, proof, 1))
        elif feature in WALKS:
            for length in range(1, counting.length + 1):
                name = f"walks of length {length}"
                change = truncated_sensitivity(walk_sensitivity(length, degree), stretch)
                proof = (truncated_sensitivity, walk_sensitivity)
                printed = printed_walk_sensitivity(length, degree)
                plan.append(Counted(f"walks_{length}", name, (name,), change, proof, printed))
        elif feature in GRAPHLET_SIZES:
            size = GRAPHLET_SIZES[feature]
            columns = tuple(f"{size} nodes: {name}" for name in GRAPHLETS[size])
            change = truncated_sensitivity(graphlet_sensitivity(size, degree), stretch)
            proof = (truncated_sensitivity, graphlet_sensitivity)
            printed = printed_graphlet_sensitivity(size, degree)
            key, name = f"graphlets_{size}", f"graphlets of {size} nodes"
            plan.append(Counted(key, name, columns, change, proof, printed))
    return plan


def check_counting(counting: Counting) -> None:
    """Refuse settings that are unknown or contradict each other.

    Raises:
        Refusal: If a feature is unknown or twice there.
        MisconfigurationException: If two settings contradict each other.
    """
    features, degree = counting.features, counting.max_degree
    is_cut = counting.truncation != "none"
    if not features or len(set(features)) < len(features) or not set(features) <= set(FEATURES):
        raise Refusal(
            f"features must be different ones of {', '.join(FEATURES)}, got {list(features)}"
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
    if counts and is_cut and not (degree and degree > 0):
        raise MisconfigurationException(
            f"{counts[0]} needs max_degree, a public bound on the degrees that is known without "
            "looking at the graphs\nor truncation: none, without privacy (privacy.epsilon .inf)"
        )
    graphlets = [feature for feature in counts if feature in GRAPHLET_SIZES]
    if graphlets and is_cut and degree == 1:
        raise MisconfigurationException(
            f"{graphlets[0]} counts connected sets of three nodes or more, of which max_degree 1 leaves "
            "none\nset max_degree to 2 or more, or count edges"
        )


def check_truncation(counting: Counting, epsilon: float) -> None:
    """Refuse a finite epsilon if one edge can change the counts without bound.

    Raises:
        MisconfigurationException: If one edge can.
    """
    counts = [feature for feature in counting.features if feature not in ("nodes", "edges")]
    if counts and counting.truncation == "none" and math.isfinite(epsilon):
        raise MisconfigurationException(
            f"without truncation one edge can move {counts[0]} by any amount\n"
            "set truncation to canonical, or privacy.epsilon to .inf"
        )


def check_magnitude(counting: Counting, num_nodes: int) -> None:
    """Refuse counts that could exceed 64 bits, by public numbers and not by the counts.

    Args:
        counting: Counted features.
        num_nodes: Number of nodes of all graphs.

    Raises:
        MisconfigurationException: If counts could exceed 64 bits.
    """
    features, degree = counting.features, counting.max_degree
    walks = any(feature in WALKS for feature in features)
    sizes = [GRAPHLET_SIZES[feature] - 1 for feature in features if feature in GRAPHLET_SIZES]
    steps = max([counting.length if walks else 0, *sizes])
    if degree and num_nodes * degree**steps > 2**62:
        raise MisconfigurationException(
            f"graphs of {num_nodes} nodes with up to {degree} edges each can hold more than "
            f"2^62 walks of length {steps}\nlower max_degree or length"
        )


def truncated(counting: Counting, edges: Tensor, num_nodes: int) -> Tensor:
    """Edges of a set after truncation, shape ``(M', 2)`` (private)."""
    if counting.truncation == "none" or counting.max_degree is None:  # edge counts need no bound
        return edges
    cut = truncate if counting.truncation == "canonical" else drop_high_degree
    return cut(edges, num_nodes, counting.max_degree)


def counted(
    counting: Counting, edges: Tensor, graph_of: Tensor, num_graphs: int
) -> Iterator[Tensor]:
    """The counts of :func:`planned`, each of shape ``(G, F)`` (private).

    Args:
        counting: Counted features.
        edges: Edges of all graphs, shape ``(M, 2)``.
        graph_of: Number of the graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
    """
    cut = truncated(counting, edges, len(graph_of))
    for feature in counting.features:
        if feature == "edges":
            yield torch.bincount(graph_of[edges[:, 0]], minlength=num_graphs)[:, None]
        elif feature in WALKS:
            yield from walk_counts(cut, graph_of, num_graphs, counting.length)[:, None].unbind(2)
        elif feature in GRAPHLET_SIZES:
            yield graphlet_counts(cut, graph_of, num_graphs, GRAPHLET_SIZES[feature])


def shares(plan: Sequence[Counted], setting: Sequence[float] | None) -> list[float]:
    r"""Shares of the budget: the setting, or in proportion to :math:`\Delta^{2/3}`.

    The default minimizes the sum of the variances of the Laplace noise, :math:`\sum_i 2 (\Delta_i /
    \epsilon_i)^2`.

    Raises:
        MisconfigurationException: If the shares of the setting do not fit the plan.
    """
    if setting is None:
        weights = [one.sensitivity ** (2 / 3) for one in plan]
        return [weight / math.fsum(weights) for weight in weights]
    if len(setting) != len(plan) or min(setting) <= 0 or not math.isclose(math.fsum(setting), 1):
        raise MisconfigurationException(
            f"shares must be {len(plan)} positive numbers that add up to 1, got {list(setting)}\n"
            f"one for each of: {', '.join(one.name for one in plan)}"
        )
    return list(setting)
