"""Scores of noisy moments and gradients of public attributes; the attacker knows all other edges."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.single_graph.attribute_encoder.clipping import (
    clipped_edge_gradients,
    clipped_edge_sum,
)
from lightning_dpg.methods.single_graph.attribute_encoder.moments import as_vector, edge_moment
from lightning_dpg.nn.attribute_logits import degree_levels
from lightning_dpg.privacy.events import LedgerEntry

# Finite value for a release without noise.
_LEAST_STD = 1e-6


def attribute_moment_score(
    rows: Tensor, entry: LedgerEntry, noisy: Tensor, pairs: Tensor, known: Data
) -> Tensor:
    """Score each pair by the noisy moment of attributes.

    Subtract the moment of the known edges, and divide the rest among the canaries.

    Args:
        rows: Public rows of the nodes, shape ``(N, r)``.
        entry: Ledger entry of the moment.
        noisy: The noisy moment as a vector, shape ``(r (r + 1) / 2,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    rows, pairs = rows.cpu().double(), pairs.cpu()
    directions = torch.stack([as_vector(edge_moment(pair[None], rows)) for pair in pairs])
    known_part = as_vector(edge_moment(undirected_edges(known).cpu(), rows))
    rest = noisy.cpu().double() - known_part - directions.sum(0) / 2
    std = max(entry.sensitivity * entry.noise_multiplier, _LEAST_STD)
    return inclusion_estimate(rest, directions, std, 0.5)


def attribute_gradient_score(
    method: Any, entry: LedgerEntry, noisy: Tensor, pairs: Tensor, known: Data
) -> Tensor:
    """Score each pair by the noisy gradient of a step.

    Subtract the expected contribution of the other edges, and divide the rest among the canaries.

    Args:
        method: The method in its state at the step, with released degrees and public rows.
        entry: Ledger entry of the sum.
        noisy: Noisy sum of clipped gradients, shape ``(r * r + 1,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    levels, norm, rate = degree_levels(method.degrees), entry.sensitivity, entry.sample_rate
    edges, pairs = (ends.to(method.rows.device) for ends in (undirected_edges(known), pairs))
    directions = clipped_edge_gradients(method.model, method.rows[pairs], levels[pairs], norm)
    sums = clipped_edge_sum(method.model, method.rows[edges], levels[edges], norm)
    expected = rate * torch.cat([total.flatten() for total in sums.values()])
    rest = noisy.double() - expected - rate / 2 * directions.sum(0)
    # The number of other edges in the batch is unknown: their mean is one more direction.
    both = torch.cat([directions, expected[None]])
    std = max(entry.sensitivity * entry.noise_multiplier, _LEAST_STD)
    return rate * inclusion_estimate(rest, both, std, rate / 2)[: len(pairs)].cpu()
