"""Scores of noisy gradients, updates and moments of attributes; the attacker knows all other edges."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import softplus
from torch.optim import Adam
from torch.optim.lr_scheduler import LinearLR
from torch.optim.swa_utils import AveragedModel

from lightning_dpg.apps.audit.scores.counts import alone
from lightning_dpg.apps.audit.scores.observation import Observation
from lightning_dpg.graph.edge_statistics import as_vector, edge_moment
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.single_graph.attribute_encoder import (
    LAST_RATE,
    AttributeEncoder,
    clipped_edge_gradients,
    clipped_edge_sum,
)
from lightning_dpg.nn.attribute_logits import AttributeLogits, degree_levels
from lightning_dpg.papers.jin2022.base import node_inputs
from lightning_dpg.papers.jin2022.clients import build_clients, weighted_update
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import clip_factor, ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import LedgerEntry

# A sample represents a larger number of edges.
_MOST_EDGES = 2048


def critic_gradient_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy gradient of a step, a sum of clipped gradients.

    Subtract the expected contribution of the other edges, and divide the rest among the canaries.
    The part of a trained table is last in the gradient.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    critic, entry = observation.method.critic, observation.entry
    edges = undirected_edges(observation.known_graph)
    directions = _clipped_gradients(critic, observation.pairs, entry.sensitivity)
    noisy = observation.noisy[: directions.shape[1]]  # few records share the rows of a table
    part = edges[:: -(-len(edges) // _MOST_EDGES) or 1]
    both = critic.embed(torch.cat([part, part.flip(1)]))
    sums = ghost_clipped_gradient_sum(critic, lambda x: -critic(x), both, entry.sensitivity)
    by_name = torch.cat([sums[name].flatten() for name in _names(critic)])
    expected = entry.event.sample_rate * by_name * len(edges) / max(len(both), 1)
    # The number of other edges in the batch is unknown: their mean is one more direction.
    return observation.by_gradients(noisy, directions, expected, expected[None])


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


def client_updates_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy sum of all clients' updates, shape ``(K,)``."""
    method, data = observation.method, observation.data
    parts, training = method.client_parts(), method.local_training()
    owners = torch.full((len(method.sizes),), -1)
    for number, part in enumerate(parts):
        owners[part] = number

    def updates(edges: Tensor) -> Tensor:
        """Return clipped updates of the clients with the given edges, each times its weight."""
        inputs, labels = node_inputs(data, edges), method.labels.cpu()
        clients = build_clients(parts, inputs, edges, data.graph_of, labels, method.device)
        return torch.stack(
            [weighted_update(method.network, [client], training) for client in clients]
        )

    held_by = owners[data.graph_of[observation.pairs[:, 0].cpu()]]
    return updates_score(observation, updates, held_by)


def updates_score(
    observation: Observation, updates: Callable[[Tensor], Tensor], client_of: Tensor
) -> Tensor:
    """Approximate log-likelihood ratios of canaries, given a sum of clients' updates.

    Subtract the updates by the known edges, and divide the rest among the changes by each canary as
    the only further edge.

    Args:
        observation: Noisy sum of all updates, shape ``(K,)``.
        updates: From edges of shape ``(M, 2)`` to the updates of all clients, each times its weight
            and clipped, with the weights of the server before the round, shape ``(C, K)``.
        client_of: Number of the client that holds each pair, or -1, shape ``(P,)``.

    Returns:
        Scores of shape ``(P,)``; 0 for pairs that no client holds.
    """
    pairs, edges = observation.pairs.cpu(), observation.known_edges
    held = torch.nonzero(client_of >= 0)[:, 0]
    changes = alone(lambda extra: updates(torch.cat([edges, extra])), pairs[held], client_of[held])
    scores = torch.zeros(len(pairs), dtype=torch.double)
    scores[held] = observation.by_changes(updates(edges).sum(0), changes)
    return scores


_LEAST_VARIANCE = 1e-12
# Runs of the attacker's own, with coins of its own.
_SHADOW_RUNS = 8


def attribute_moment_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy moment of attributes, a vector of shape ``(r (r + 1) / 2,)``.

    Subtract the moment of the known edges, and divide the rest among the canaries.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    is_classifier = isinstance(observation.method, NodeClassifier)
    rows = moment_rows(observation) if is_classifier else observation.method.scores.rows
    rows, pairs = rows.cpu().double(), observation.pairs.cpu()
    directions = torch.stack([as_vector(edge_moment(pair[None], rows)) for pair in pairs])
    known_part = as_vector(edge_moment(observation.known_edges, rows))
    return observation.by_changes(known_part, directions)


def moment_rows(observation: Observation) -> Tensor:
    """Rows of a method that releases moments of them, as they are at this release."""
    rows: Tensor = observation.method.moments.rows(observation.data.records.attributes.cpu())
    return rows


def attribute_gradient_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy gradient of a step, a sum of shape ``(r * r + 1,)``.

    Subtract the expected contribution of the other edges, and divide the rest among the canaries.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    method, entry, noisy = observation.method, observation.entry, observation.noisy
    levels, norm, rate = degree_levels(method.degrees), entry.sensitivity, entry.event.sample_rate
    both_kinds = undirected_edges(observation.known_graph), observation.pairs
    edges, pairs = (ends.to(method.rows.device) for ends in both_kinds)
    directions = clipped_edge_gradients(method.model, method.rows[pairs], levels[pairs], norm)
    sums = clipped_edge_sum(method.model, method.rows[edges], levels[edges], norm)
    expected = rate * torch.cat([total.flatten() for total in sums.values()])
    # The number of other edges in the batch is unknown: their mean is one more direction.
    return observation.by_gradients(noisy.double(), directions, expected, expected[None]).cpu()


def attribute_weights_score(observation: Observation) -> Tensor:
    """Score each pair by the released means of the weights.

    The attacker trains several times on the known edges and on canaries of its own coins, with the
    released degrees and the claimed noise. The score compares the log odds of a pair with those of
    these runs. An edge moves the weights along its gradient, which is that of its log odds up to a
    factor: the difference of the log odds is the displacement of the weights along the gradient.

    * Carlini et al., "Membership inference attacks from first principles", 2022, for the likelihood
      ratio with a variance that all pairs share.

    Args:
        observation: The method after its fit, and the entry of the steps; the value is not read.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    source, edges = torch.Generator().manual_seed(0), observation.known_edges
    method, entry, pairs = observation.method, observation.entry, observation.pairs.cpu()
    rows, levels = method.rows.cpu(), degree_levels(method.degrees).cpu()
    coins = torch.rand(_SHADOW_RUNS, len(pairs), generator=source) < 0.5
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
    variance = rest.square().mean() * (_SHADOW_RUNS + 1) / (_SHADOW_RUNS - 1)
    return shift.clamp(min=0.0) * (released - mean) / variance.clamp(min=_LEAST_VARIANCE)


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
