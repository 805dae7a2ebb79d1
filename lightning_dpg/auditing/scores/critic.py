"""Scores of the noisy gradients of a private critic."""

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import clip_factor, ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import LedgerEntry

# A sample represents a larger number of edges.
_MOST_EDGES = 2048


def critic_gradient_score(
    critic: WalkCritic, noisy: Tensor, entry: LedgerEntry, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by the noisy gradient of a step.

    Subtract the expected contribution of the other edges, and divide the rest among the canaries.

    Args:
        critic: The critic in its state at the step.
        noisy: Noisy sum of clipped gradients; the part of a trained table is last.
        entry: Ledger entry of the sum.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    edges, std = undirected_edges(known_graph), entry.scale
    directions = _clipped_gradients(critic, pairs, entry.sensitivity)
    rest = noisy[: directions.shape[1]].clone()  # omit the rows of a table, which few records share
    rest -= entry.event.sample_rate / 2 * directions.sum(0)
    part = edges[:: -(-len(edges) // _MOST_EDGES) or 1]
    both = critic.embed(torch.cat([part, part.flip(1)]))
    sums = ghost_clipped_gradient_sum(critic, lambda x: -critic(x), both, entry.sensitivity)
    by_name = torch.cat([sums[name].flatten() for name in _names(critic)])
    expected = entry.event.sample_rate * by_name * len(edges) / max(len(both), 1)
    # The number of other edges in the batch is unknown: their mean is one more direction.
    both_kinds = torch.cat([directions, expected[None]])
    estimate = inclusion_estimate(rest - expected, both_kinds, std, entry.event.sample_rate / 2)
    return entry.event.sample_rate * estimate[: len(pairs)]


def _clipped_gradients(critic: WalkCritic, pairs: Tensor, max_grad_norm: float) -> Tensor:
    """Return clipped gradients of the negated score, means over orientations, shape ``(P, K)``."""
    values = {name: critic.get_parameter(name).detach() for name in _names(critic)}

    def loss(parameters: dict[str, Tensor], embedded: Tensor) -> Tensor:
        return -functional_call(critic, parameters, (embedded,))

    def clipped(tokens: Tensor) -> Tensor:
        embedded = critic.embed(tokens).detach()
        gradients = vmap(grad(loss), in_dims=(None, 0))(values, embedded)
        flat = torch.cat([gradient.flatten(1) for gradient in gradients.values()], 1)
        return flat * clip_factor(flat.square().sum(1), max_grad_norm)[:, None]

    return (clipped(pairs) + clipped(pairs.flip(1))) / 2


def _names(critic: WalkCritic) -> list[str]:
    return [name for name, _ in critic.named_parameters() if name != "table"]
