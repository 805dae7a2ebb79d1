"""Counted features of a private graph kernel, and bounds on their change by one edge."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.degrees import truncate
from lightning_dpg.papers.dubhashi2015.graphlet_samples import rescale, sampled_graphlets
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts, walk_counts
from lightning_dpg.privacy.events import Event, LedgerEntry, Relation
from lightning_dpg.privacy.mechanisms import integer_noise
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import edges_per_graph_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    graphlet_sensitivity,
    printed_amplification,
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
    truncation: Literal["canonical", "none"]

    @property
    def is_sampled(self) -> bool:
        """Whether a sample of the edges is counted for graphlets."""
        return any(feature.startswith("gk-a") for feature in self.features)

    @property
    def stretch(self) -> int:
        """Largest number of truncated edges that one edge changes; 0 without truncation."""
        if self.truncation == "none" or self.max_degree is None:
            return 0
        return truncation_stretch()


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
    return truncate(edges, num_nodes, counting.max_degree)


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


class Estimates(NamedTuple):
    """Unbiased estimates of the numbers of graphlets (private).

    Attributes:
        counts: One tensor of shape ``(G, F)`` for each size of graphlets.
        num_edges: Number of truncated edges of each graph, shape ``(G,)``.
    """

    counts: list[Tensor]
    num_edges: Tensor


def epsilon_in_sample(read: LedgerEntry, sample_rate: float, group_size: int) -> float:
    """Epsilon of the noise in a Poisson sample, by which all of it costs what a read says.

    The proof is that of ``amplified_epsilon``. If several edges of the set are one private edge,
    their pure epsilons add up.

    Args:
        read: The read, with its cost.
        sample_rate: Probability q that an edge is in the sample.
        group_size: Largest number of edges of the set that are one private edge.
    """
    return math.log1p(math.expm1(read.event.pure_epsilon / group_size) / sample_rate)


def poisson_law(
    read: LedgerEntry,
    counting: Counting,
    graph_of: Tensor,
    num_graphs: int,
    *,
    size: int,
    sample_rate: float,
    epsilon: float,
) -> Callable[[Tensor, NoiseSource], Tensor]:
    """Law of graphlets in a secret sample: keep each edge with probability q, truncate, add noise.

    Args:
        read: The read, with its sensitivity in the sample.
        counting: Truncation of the graphs.
        graph_of: Number of the graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        size: Number of nodes of the graphlets.
        sample_rate: q.
        epsilon: Epsilon of the noise, see :func:`epsilon_in_sample`.

    Returns:
        Function of the edges of all graphs, shape ``(M, 2)`` (private), and a source of sample and
        noise, with integers of shape ``(G, F)``.
    """
    add_noise = integer_noise(read, epsilon=epsilon)

    def draw(edges: Tensor, noise: NoiseSource) -> Tensor:
        sample = edges[noise.bernoulli(len(edges), sample_rate)]
        sample = truncated(counting, sample, len(graph_of))
        return add_noise(graphlet_counts(sample, graph_of, num_graphs, size), noise)

    return draw


def estimates(
    edges: Tensor,
    graph_of: Tensor,
    num_graphs: int,
    counting: Counting,
    noise: NoiseSource,
    *,
    sizes: Sequence[int],
    num_samples: int,
) -> Estimates:
    """Compute the paper's estimates: counts at s edges per graph, times m / (s |E(H)|) (private).

    The paper's noise does not cover the factor m, the exact number of edges.

    Args:
        edges: Edges of all graphs, shape ``(M, 2)`` (private).
        graph_of: Number of the graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        counting: Truncation of the graphs.
        noise: Secret source of the draws.
        sizes: Numbers of nodes of the graphlets.
        num_samples: Number of draws s.
    """
    cut = truncated(counting, edges, len(graph_of))
    num_edges = torch.bincount(graph_of[cut[:, 0]], minlength=num_graphs)
    slots = num_edges.clamp(min=1).tolist()
    draws = torch.from_numpy(np.stack([noise.integers(m, num_samples) for m in slots]))
    counts = [
        rescale(
            sampled_graphlets(cut, graph_of, num_graphs, size, draws), num_edges, size, num_samples
        )
        for size in sizes
    ]
    return Estimates(counts, num_edges)


def printed_epsilon(
    num_edges: Tensor, *, sizes: Sequence[int], max_degree: int, num_samples: int, epsilon: float
) -> float:
    """Largest epsilon of the paper for its noisy estimates of all graphs (private).

    Args:
        num_edges: Number of truncated edges of each graph, shape ``(G,)`` (private).
        sizes: Numbers of nodes of the graphlets.
        max_degree: Bound on the degrees.
        num_samples: Number of draws.
        epsilon: Claimed epsilon of the noise without sampling.
    """
    numbers = sorted({max(m, 1) for m in num_edges.tolist()})
    return max(
        printed_amplification(epsilon, num_samples, m, size, max_degree)
        for size in sizes
        for m in numbers
    )
