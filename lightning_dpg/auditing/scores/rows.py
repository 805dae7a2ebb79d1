"""Canary scores for methods trained on noisy rows (white-box).

The attacker knows every non-canary edge.
"""

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import normalize
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.papers.yang2021.networks import CONTEXT_DIM, reparameterize
from lightning_dpg.privacy.dpsgd import clip_factor
from lightning_dpg.privacy.ledger import LedgerEntry

# A sample represents a larger number of edges.
_MOST_EDGES = 512
# Number of draws of latent vectors, which the attacker does not know.
_DRAWS = 4


def sums_score(
    summed: Tensor, noisy: Tensor, entry: LedgerEntry, pairs: Tensor, known_graph: Data
) -> Tensor:
    r"""Score each pair by noisy sums over neighbors, :math:`R = A X + N`.

    An edge {i, j} adds :math:`x_j` to row i and :math:`x_i` to row j. Where no node is in two pairs,
    the scores are the log-likelihood ratios of normal noise.

    Args:
        summed: Summed rows, public or released, shape ``(N, d)``; scaled to norm 1 here.
        noisy: The release R of shape ``(N, d)``.
        entry: Ledger entry of the sums.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph of all other edges.

    Returns:
        Scores of shape ``(P,)``.
    """
    rows = normalize(summed.double().cpu())
    rest = noisy.double().cpu() - neighbor_sums(undirected_edges(known_graph), rows)
    rest -= neighbor_sums(pairs, rows) / 2
    std = max(entry.scale, 1e-6)
    return (rest[pairs] * rows[pairs.flip(1)]).sum((1, 2)) / std**2


def edge_gradient_score(
    networks: nn.ModuleDict,
    rows: Tensor,
    noisy: Tensor,
    entry: LedgerEntry,
    pairs: Tensor,
    known_graph: Data,
) -> Tensor:
    """Score each pair by the noisy gradient of a step.

    Subtract the expected contribution of the known edges, and divide the rest among the canaries.

    Args:
        networks: ``encoder`` and ``decoder``, in their state at the step.
        rows: Input row of the encoder for each node (released), the context of its graph last,
            shape ``(N, d)``.
        noisy: Noisy sum of clipped gradients of the networks, in their order, shape ``(K,)``.
        entry: Ledger entry of the gradient.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    edges, rate, norm = undirected_edges(known_graph), entry.event.sample_rate, entry.sensitivity
    part = edges[:: -(-len(edges) // _MOST_EDGES) or 1]
    directions = mean_clipped_gradients(networks, rows[pairs], norm)
    others = mean_clipped_gradients(networks, rows[part], norm)
    weight = len(edges) / max(len(part), 1)
    rest = noisy - rate / 2 * directions.sum(0) - rate * weight * others.sum(0)
    # The batch of the other edges is unknown as well; their coins have another variance.
    others *= math.sqrt(weight * (1 - rate) / (0.5 - rate / 4))
    both = torch.cat([directions, others])
    estimate = inclusion_estimate(rest, both, entry.scale, rate / 2)
    return rate * estimate[: len(pairs)]


def mean_clipped_gradients(networks: nn.ModuleDict, rows: Tensor, max_grad_norm: float) -> Tensor:
    """Average :func:`clipped_gradients` over some draws of the latent vectors."""
    width = next(networks["decoder"].parameters()).shape[1] - CONTEXT_DIM
    source = torch.Generator().manual_seed(0)
    normal = torch.randn(_DRAWS, len(rows), 2, width, generator=source).to(rows)
    draws = [clipped_gradients(networks, rows, draw, max_grad_norm) for draw in normal]
    return torch.stack(draws).mean(0)


def clipped_gradients(
    networks: nn.ModuleDict, rows: Tensor, normal: Tensor, max_grad_norm: float
) -> Tensor:
    """Return clipped gradients of the negated log odds of pairs.

    Args:
        networks: ``encoder`` and ``decoder``.
        rows: Rows of the pairs' ends, shape ``(P, 2, d)``.
        normal: Standard normal variates for the latent vectors, shape ``(P, 2, k)``.
        max_grad_norm: Clipping norm C.

    Returns:
        One row for each pair, shape ``(P, K)``.
    """

    def loss(parameters: dict[str, dict[str, Tensor]], ends: Tensor, normal: Tensor) -> Tensor:
        mean, log_variance = functional_call(networks["encoder"], parameters["encoder"], (ends,))
        latent = reparameterize(mean, log_variance, normal)
        latent = torch.cat([latent, ends[..., -CONTEXT_DIM:]], -1)
        first, second = functional_call(networks["decoder"], parameters["decoder"], (latent,))
        return -(first @ second)

    values = {
        name: {key: value.detach() for key, value in network.named_parameters()}
        for name, network in networks.items()
    }
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(values, rows, normal)
    flat = torch.cat([g.flatten(1) for name in networks for g in gradients[name].values()], dim=1)
    return flat * clip_factor(flat.square().sum(1), max_grad_norm)[:, None]
