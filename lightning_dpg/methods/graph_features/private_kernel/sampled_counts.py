"""Graphlets counted in a sample of the edges, as ``gk-a*`` of ``PrivateGraphKernel``."""

import math
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from lightning_dpg.graph.graphlet_samples import rescale, sampled_graphlets
from lightning_dpg.graph.graphlets import graphlet_counts
from lightning_dpg.methods.graph_features.private_kernel.counts import (
    GRAPHLET_SIZES,
    Counted,
    shares,
    stretch,
    truncated,
)
from lightning_dpg.privacy.mechanisms import discrete_laplace
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    draw_sensitivity,
    drawn_epsilon,
    printed_amplification,
)

# Noise of each graph is a whole multiple of the smallest one over this, rounded up.
_RESOLUTION = 1024


def sampled(method: Any, data: Any, epsilon: float) -> Tensor:
    """Release noisy counts in a secret sample of the edges, shape ``(G, F)``.

    Args:
        method: A ``PrivateGraphKernel``.
        data: The set of graphs (private).
        epsilon: Cost of all releases together.
    """
    sizes = [GRAPHLET_SIZES[name] for name in method.hparams["features"] if name != "nodes"]
    release = _poisson if method.hparams["sampling"] == "poisson" else _drawn
    noisy, scales = [], []
    parts = shares(method.counts, method.hparams["shares"])
    for one, size, part in zip(method.counts, sizes, parts, strict=True):
        value, scale = release(method, data, one, size, part * epsilon)
        noisy.append(value)
        scales += [scale] * len(one.columns)
    method.noise_scales = torch.tensor(scales, dtype=torch.double)
    return torch.cat(noisy, dim=1).double()


def _poisson(
    method: Any, data: Any, one: Counted, size: int, epsilon: float
) -> tuple[Tensor, float]:
    """Keep each edge with probability q, then truncate and count, see ``amplified_epsilon``.

    Edges that are one private edge pay one by one, which is what pure epsilon adds up to.
    """
    h, times = method.hparams, method.max_occurrences
    inner = math.log1p(math.expm1(epsilon / times) / h["sample_rate"])
    kept = data.edges[method.noise.bernoulli(len(data.edges), h["sample_rate"])]
    kept = truncated(h, kept, len(data.graph_of))
    noisy = discrete_laplace(
        graphlet_counts(kept, data.graph_of, len(data.sizes), size),
        method.ledger,
        method.noise,
        key=one.key,
        name=one.name,
        epsilon=inner,
        sensitivity=one.sensitivity,
        cost=epsilon,
        proof=f"amplified_epsilon, {one.proof}",
    )
    return noisy, one.sensitivity / inner


def _drawn(method: Any, data: Any, one: Counted, size: int, epsilon: float) -> tuple[Tensor, float]:
    """Add up the graphlets at s edges of each truncated graph, see ``drawn_epsilon``.

    A graph of n nodes has n D / 2 slots for edges, which is public. The fewer there are, the likelier
    one edge is drawn, and the larger is the noise.
    """
    h, times = method.hparams, method.max_occurrences
    slots = (data.sizes * h["max_degree"] // 2).clamp(min=1)
    kept = truncated(h, data.edges, len(data.graph_of))
    sums = sampled_graphlets(kept, data.graph_of, len(slots), size, _draws(method, slots))
    inner = np.array([_inner_epsilon(h, size, slot, epsilon / times) for slot in slots.tolist()])
    multiples = np.ceil(_RESOLUTION * inner.max() / inner).astype(np.int64)
    sensitivity = draw_sensitivity(size, h["max_degree"])
    noisy = discrete_laplace(
        sums,
        method.ledger,
        method.noise,
        key=one.key,
        name=one.name,
        epsilon=float(inner.max()) * _RESOLUTION,
        sensitivity=sensitivity,
        scales=torch.from_numpy(multiples)[:, None].expand_as(sums).contiguous(),
        cost=epsilon,
        proof="drawn_epsilon, draw_sensitivity",
    )
    return noisy, sensitivity / float(np.median(inner))


def _draws(method: Any, slots: Tensor) -> Tensor:
    """Secret draws of slots with replacement, shape ``(G, s)``."""
    count = method.hparams["num_samples"]
    return torch.from_numpy(np.stack([method.noise.integers(s, count) for s in slots.tolist()]))


def _inner_epsilon(h: Any, size: int, num_slots: int, epsilon: float) -> float:
    """The largest draw_epsilon whose draws together cost no more than ``epsilon``."""

    def cost(draw_epsilon: float) -> float:
        degree, draws = h["max_degree"], h["num_samples"]
        return drawn_epsilon(draw_epsilon, draws, num_slots, size, degree, stretch(h))

    high = 1.0
    while cost(high) < epsilon:
        high *= 2
    root = brentq(lambda value: cost(value) - epsilon, 0.0, high, xtol=1e-12)
    return float(root) * (1 - 1e-9)


def estimates(method: Any, data: Any, epsilon: float) -> Tensor:
    """The paper's estimates without a guarantee, shape ``(G, F)``; noisy only with ``paper_epsilon``.

    The counts at s edges of each graph, times m / (s |E(H)|) with the exact number of edges m. That
    factor is missing from the scale of the noise, which is ``mode: paper``'s that of exact counts.

    Args:
        method: A ``PrivateGraphKernel``.
        data: The set of graphs (private).
        epsilon: Infinite.
    """
    h = method.hparams
    kept = truncated(h, data.edges, len(data.graph_of))
    num_edges = torch.bincount(data.graph_of[kept[:, 0]], minlength=len(data.sizes))
    draws = _draws(method, num_edges.clamp(min=1))
    columns = sum(len(one.columns) for one in method.counts)
    parts, claims = [], []
    sizes = [GRAPHLET_SIZES[name] for name in h["features"] if name != "nodes"]
    for one, size in zip(method.counts, sizes, strict=True):
        method.ledger.spend(method.unprotected(one.name, "m / s times the counts of a sample"))
        sums = sampled_graphlets(kept, data.graph_of, len(data.sizes), size, draws)
        value = rescale(sums, num_edges, size, h["num_samples"])
        if h["mode"] == "paper" and h["paper_epsilon"] is not None:
            value = discrete_laplace(
                value.round().long(),
                method.ledger,
                method.noise,
                key=f"{one.key}_noisy",
                name=f"{one.name}, noisy",
                epsilon=h["paper_epsilon"],
                sensitivity=columns * one.printed,
                proof="none: the paper's scale, a RS / epsilon",
            ).double()
            claims += [
                printed_amplification(
                    h["paper_epsilon"], h["num_samples"], m, size, h["max_degree"] or 1
                )
                for m in sorted({max(m, 1) for m in num_edges.tolist()})
            ]
        parts.append(value)
    method.paper_claim = max(claims, default=None)
    return torch.cat(parts, dim=1)
