"""Graphlet counts in a sample of the edges, for ``gk-a*`` of private graph kernels."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from lightning_dpg.papers.dubhashi2015.counts import Counting, truncated
from lightning_dpg.papers.dubhashi2015.graphlet_samples import rescale, sampled_graphlets
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import integer_noise
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    drawn_epsilon,
    printed_amplification,
)

# The noise of each graph is a multiple of the smallest noise over this number, rounded up.
_RESOLUTION = 1024


class SampleLaw(NamedTuple):
    """Law of noisy counts of graphlets in a secret sample of the edges.

    Attributes:
        draw: From the edges of all graphs, shape ``(M, 2)`` (private), and a source of sample and
            noise to integers of shape ``(G, F)``.
        scale: Scale of the noise; if it differs between graphs, that of a graph of median size.
    """

    draw: Callable[[Tensor, NoiseSource], Tensor]
    scale: float


class Estimates(NamedTuple):
    """Unbiased estimates of the numbers of graphlets (private).

    Attributes:
        counts: One tensor of shape ``(G, F)`` for each size of graphlets.
        num_edges: Number of truncated edges of each graph, shape ``(G,)``.
    """

    counts: list[Tensor]
    num_edges: Tensor


def poisson_law(
    read: LedgerEntry,
    counting: Counting,
    graph_of: Tensor,
    num_graphs: int,
    *,
    size: int,
    sample_rate: float,
    group_size: int,
) -> SampleLaw:
    """Law that keeps each edge with probability q, truncates, counts and adds noise.

    The proof is that of ``amplified_epsilon``. If several edges of the set are one private edge,
    their pure epsilons add up.

    Args:
        read: The read: its cost, and its sensitivity in the sample.
        counting: Truncation of the graphs.
        graph_of: Number of the graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        size: Number of nodes of the graphlets.
        sample_rate: q.
        group_size: Largest number of edges of the set that are one private edge.
    """
    inner = math.log1p(math.expm1(read.event.pure_epsilon / group_size) / sample_rate)
    add_noise = integer_noise(read, epsilon=inner)

    def draw(edges: Tensor, noise: NoiseSource) -> Tensor:
        sample = edges[noise.bernoulli(len(edges), sample_rate)]
        sample = truncated(counting, sample, len(graph_of))
        return add_noise(graphlet_counts(sample, graph_of, num_graphs, size), noise)

    return SampleLaw(draw, read.sensitivity / inner)


def drawn_law(
    read: LedgerEntry,
    counting: Counting,
    graph_of: Tensor,
    sizes: Tensor,
    *,
    size: int,
    num_samples: int,
    group_size: int,
) -> SampleLaw:
    """Law that adds up the graphlets at s drawn edges of each truncated graph, with noise.

    The proof is that of ``drawn_epsilon``. A graph of n nodes has n D / 2 slots for edges, which is
    public. With fewer slots, a given edge is drawn more often, and the noise is larger.

    Args:
        read: The read: its cost, and its sensitivity in the sample.
        counting: Truncation of the graphs, with ``max_degree``.
        graph_of: Number of the graph of each node, shape ``(N,)``.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        size: Number of nodes of the graphlets.
        num_samples: Number of draws s.
        group_size: Largest number of edges of the set that are one private edge.
    """
    degree, epsilon = counting.max_degree or 1, read.event.pure_epsilon / group_size
    slots = (sizes * degree // 2).clamp(min=1)
    inner = np.array(
        [_draw_epsilon(counting, size, num_samples, slot, epsilon) for slot in slots.tolist()]
    )
    multiples = torch.from_numpy(np.ceil(_RESOLUTION * inner.max() / inner).astype(np.int64))
    add_noise = integer_noise(
        read,
        scales=multiples[:, None].expand(-1, len(GRAPHLETS[size])),
        epsilon=float(inner.max()) * _RESOLUTION,
    )

    def draw(edges: Tensor, noise: NoiseSource) -> Tensor:
        cut, draws = truncated(counting, edges, len(graph_of)), _draws(slots, num_samples, noise)
        return add_noise(sampled_graphlets(cut, graph_of, len(slots), size, draws), noise)

    return SampleLaw(draw, read.sensitivity / float(np.median(inner)))


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
    draws = _draws(num_edges.clamp(min=1), num_samples, noise)
    counts = [
        rescale(
            sampled_graphlets(cut, graph_of, num_graphs, size, draws),
            num_edges,
            size,
            num_samples,
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


def _draws(slots: Tensor, count: int, noise: NoiseSource) -> Tensor:
    """Draw slots secretly with replacement, shape ``(G, s)``."""
    return torch.from_numpy(np.stack([noise.integers(s, count) for s in slots.tolist()]))


def _draw_epsilon(
    counting: Counting, size: int, num_samples: int, num_slots: int, epsilon: float
) -> float:
    """Largest draw_epsilon at which all draws together cost at most ``epsilon``."""
    degree, stretch = counting.max_degree or 1, counting.stretch

    def cost(draw_epsilon: float) -> float:
        return drawn_epsilon(draw_epsilon, num_samples, num_slots, size, degree, stretch)

    high = 1.0
    while cost(high) < epsilon:
        high *= 2
    root = brentq(lambda value: cost(value) - epsilon, 0.0, high, xtol=1e-12)
    return float(root) * (1 - 1e-9)
