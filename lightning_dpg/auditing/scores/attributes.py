"""Scores of noisy moments and gradients of public attributes; the attacker knows all other edges."""

import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch.optim import Adam
from torch.optim.lr_scheduler import LinearLR
from torch.optim.swa_utils import AveragedModel
from torch_geometric.data import Data

from lightning_dpg.auditing.bounds import inclusion_estimate
from lightning_dpg.graph.edge_statistics import as_vector, edge_moment
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.single_graph.attribute_encoder import (
    LAST_RATE,
    AttributeEncoder,
    clipped_edge_gradients,
    clipped_edge_sum,
)
from lightning_dpg.nn.attribute_logits import AttributeLogits, degree_levels
from lightning_dpg.privacy.events import LedgerEntry

# Finite value for a release without noise.
_LEAST_STD = 1e-6
# Runs of the attacker's own, with coins of its own.
_SHADOW_RUNS = 8


def attribute_moment_score(
    rows: Tensor, entry: LedgerEntry, noisy: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by the noisy moment of attributes.

    Subtract the moment of the known edges, and divide the rest among the canaries.

    Args:
        rows: Public rows of the nodes, shape ``(N, r)``.
        entry: Ledger entry of the moment.
        noisy: The noisy moment as a vector, shape ``(r (r + 1) / 2,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    rows, pairs = rows.cpu().double(), pairs.cpu()
    directions = torch.stack([as_vector(edge_moment(pair[None], rows)) for pair in pairs])
    known_part = as_vector(edge_moment(undirected_edges(known_graph).cpu(), rows))
    rest = noisy.cpu().double() - known_part - directions.sum(0) / 2
    std = max(entry.scale, _LEAST_STD)
    return inclusion_estimate(rest, directions, std, 0.5)


def attribute_gradient_score(
    method: AttributeEncoder, entry: LedgerEntry, noisy: Tensor, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by the noisy gradient of a step.

    Subtract the expected contribution of the other edges, and divide the rest among the canaries.

    Args:
        method: The method in its state at the step, with released degrees and public rows.
        entry: Ledger entry of the sum.
        noisy: Noisy sum of clipped gradients, shape ``(r * r + 1,)``.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph of all other edges.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    levels, norm, rate = degree_levels(method.degrees), entry.sensitivity, entry.event.sample_rate
    edges, pairs = (ends.to(method.rows.device) for ends in (undirected_edges(known_graph), pairs))
    directions = clipped_edge_gradients(method.model, method.rows[pairs], levels[pairs], norm)
    sums = clipped_edge_sum(method.model, method.rows[edges], levels[edges], norm)
    expected = rate * torch.cat([total.flatten() for total in sums.values()])
    rest = noisy.double() - expected - rate / 2 * directions.sum(0)
    # The number of other edges in the batch is unknown: their mean is one more direction.
    both = torch.cat([directions, expected[None]])
    std = max(entry.scale, _LEAST_STD)
    return rate * inclusion_estimate(rest, both, std, rate / 2)[: len(pairs)].cpu()


def attribute_weights_score(
    method: AttributeEncoder,
    entry: LedgerEntry,
    pairs: Tensor,
    known_graph: Data,
    shadow_runs: int = _SHADOW_RUNS,
) -> Tensor:
    """Score each pair by the released means of the weights.

    The attacker trains several times on the known edges and on canaries of its own coins, with the
    released degrees and the claimed noise. The score compares the log odds of a pair with those of
    these runs. An edge moves the weights along its gradient, which is that of its log odds up to a
    factor: the difference of the log odds is the displacement of the weights along the gradient.

    * Carlini et al., "Membership inference attacks from first principles", 2022, for the likelihood
      ratio with a variance that all pairs share.

    Args:
        method: The method after its fit.
        entry: Ledger entry of the steps.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known_graph: Graph of all other edges.
        shadow_runs: Number of the attacker's runs.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    source, edges = torch.Generator().manual_seed(0), undirected_edges(known_graph).cpu()
    rows, levels, pairs = method.rows.cpu(), degree_levels(method.degrees).cpu(), pairs.cpu()
    coins = torch.rand(shadow_runs, len(pairs), generator=source) < 0.5
    tables = [
        _shadow_run(method, entry, rows, levels, torch.cat([edges, pairs[coin]]), source)
        for coin in coins
    ]
    with torch.no_grad():
        logits = torch.stack([one(rows[pairs], levels[pairs]) for one in tables]).double()
        released = method.averaged.cpu()(rows[pairs], levels[pairs]).double()
    mean, centered = logits.mean(0), coins.double() - coins.double().mean(0)
    shift = ((logits - mean) * centered).sum() / centered.square().sum().clamp(min=1.0)
    rest = logits - mean - shift * centered
    # The means of the runs have lost a degree of freedom, and have a variance of their own.
    variance = rest.square().mean() * (shadow_runs + 1) / (shadow_runs - 1)
    return shift.clamp(min=0.0) * (released - mean) / variance.clamp(min=_LEAST_STD**2)


def _shadow_run(
    method: AttributeEncoder,
    entry: LedgerEntry,
    rows: Tensor,
    levels: Tensor,
    edges: Tensor,
    source: torch.Generator,
) -> AveragedModel:
    """Train once as the method does, on edges of shape ``(M, 2)`` with ordinary random numbers."""
    settings, rate = method.hparams, entry.event.sample_rate
    model = AttributeLogits(rows.shape[1])
    averaged = AveragedModel(model)
    optimizer = Adam(model.parameters(), settings["learning_rate"])
    scheduler = LinearLR(optimizer, 1.0, LAST_RATE, settings["iterations"])
    std, expected = entry.scale, rate * max(1, int(method.num_edges))
    for step in range(1, settings["iterations"] + 1):
        sample = edges[torch.rand(len(edges), generator=source) < rate]
        sums = clipped_edge_sum(model, rows[sample], levels[sample], entry.sensitivity)
        size = (settings["public_pairs"], 2)
        uniform = torch.randint(len(rows), size, generator=source)
        parameters, loss = (
            dict(model.named_parameters()),
            softplus(model(rows[uniform], levels[uniform])),
        )
        gradients = torch.autograd.grad(loss.mean(), list(parameters.values()))
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
            noise = std * torch.randn(parameter.shape, generator=source)
            parameter.grad = gradient + (sums[name] + noise).float() / expected
        optimizer.step()
        scheduler.step()
        if 2 * step > settings["iterations"]:
            averaged.update_parameters(model)
    return averaged
