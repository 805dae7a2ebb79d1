"""A round of federated averaging: training graphs, their division among clients, updates.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data"
(FedAvg), 2017.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from lightning_dpg.errors import Refusal
from lightning_dpg.nn.node_encoders import NodeEncoder

Network = TypeVar("Network", bound=nn.Module)


def dirichlet_clients(
    labels: Tensor, num_clients: int, concentration: float, seed: int
) -> list[Tensor]:
    """Partition graphs among clients by label shares from a Dirichlet distribution.

    The partition depends on the labels and the seed only, which are both public.

    Args:
        labels: Label of each graph, shape ``(G,)``.
        num_clients: Number of clients.
        concentration: Positive; larger values make clients more alike.
        seed: Public seed.

    Returns:
        Ascending graph numbers of each client; a client may hold no graph.
    """
    if num_clients < 1 or not concentration > 0:
        raise Refusal(
            f"num_clients and concentration must be positive: {num_clients}, {concentration}"
        )
    rng = np.random.default_rng(seed)
    owners = torch.empty(len(labels), dtype=torch.long)
    for label in np.unique(labels.numpy()):
        members = np.flatnonzero(labels.numpy() == label)
        shares = rng.dirichlet([concentration] * num_clients)
        ends = np.round(np.cumsum(shares)[:-1] * len(members)).astype(int)
        for owner, part in enumerate(np.split(rng.permutation(members), ends)):
            owners[torch.from_numpy(part)] = owner
    return [torch.nonzero(owners == client)[:, 0] for client in range(num_clients)]


def client_update(
    model: Network, loss_fn: Callable[[Network], Tensor], *, epochs: int, learning_rate: float
) -> Tensor:
    """Train a copy of the model on a client's data and return the change of its weights.

    Each epoch is one step of Adam on all data of the client; Adam starts anew in each call.

    Args:
        model: Network with the weights of the server.
        loss_fn: Loss of a network on the client's data (private).
        epochs: Number of local steps.
        learning_rate: Learning rate of Adam.

    Returns:
        Change of all parameters, in one vector (private).
    """
    local = copy.deepcopy(model)
    parameters = list(local.parameters())
    start = parameters_to_vector(parameters).detach()
    optimizer = torch.optim.Adam(parameters, learning_rate)
    for _ in range(epochs):
        optimizer.zero_grad()
        torch.autograd.backward(loss_fn(local))
        optimizer.step()
    return parameters_to_vector(parameters).detach() - start


def clipped(update: Tensor, max_norm: float) -> Tensor:
    """Clip an update to norm ``max_norm``; return zeros if its norm is not finite."""
    norm = update.norm()
    if not norm.isfinite():
        return torch.zeros_like(update)
    return update * (max_norm / norm.clamp(min=max_norm))


class LocalTraining(NamedTuple):
    """Settings of the training of each client in a round (public)."""

    epochs: int
    """Local steps."""
    learning_rate: float
    """Learning rate of these."""
    max_norm: float | None
    """Norm that updates are clipped to; None leaves them as they are."""


class Client(NamedTuple):
    """The graphs of one client (private); their labels and its weight are public."""

    features: Tensor
    """Features of the nodes of its graphs, shape ``(N, d)``."""
    edge_index: Tensor
    """Both directions of their edges, shape ``(2, E)``."""
    graph_of: Tensor
    """Number of each node's graph among its own, shape ``(N,)``."""
    labels: Tensor
    """Labels of its graphs (public), shape ``(G,)``."""
    weight: float
    """Share of its graphs among those of all clients (public)."""


def draw_train_mask(labels: Tensor, fraction: float, seed: int) -> Tensor:
    """Draw the graphs that train the encoder, a fraction of each label: ``(G,)`` to ``(G,)``."""
    rng, chosen = np.random.default_rng(seed), torch.zeros(len(labels), dtype=torch.bool)
    for label in np.unique(labels.numpy()):
        members = np.flatnonzero(labels.numpy() == label)
        count = round(fraction * len(members))
        chosen[torch.from_numpy(rng.permutation(members)[:count])] = True
    return chosen


def partition_dirichlet(
    labels: Tensor, train_mask: Tensor, num_clients: int, concentration: float, seed: int
) -> list[Tensor]:
    """Divide the training graphs among clients (public); clients without graphs are left out.

    Args:
        labels: Label of each graph, shape ``(G,)``.
        train_mask: Graphs that train the encoder, shape ``(G,)``.
        num_clients: Number of clients.
        concentration: Concentration of ``dirichlet_clients``.
        seed: Public seed.
    """
    numbers = torch.nonzero(train_mask)[:, 0]
    parts = dirichlet_clients(labels[numbers], num_clients, concentration, seed)
    return [numbers[part] for part in parts if len(part)]


def build_clients(
    parts: Sequence[Tensor],
    features: Tensor,
    edges: Tensor,
    graph_of: Tensor,
    labels: Tensor,
    device: torch.device,
) -> list[Client]:
    """Give each client its graphs.

    Args:
        parts: Numbers of the graphs of each client.
        features: Features of the nodes of all graphs (private), shape ``(N, d)``.
        edges: Edges of all graphs (private), shape ``(M, 2)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        labels: Label of each graph (public), shape ``(G,)``.
        device: Device of the tensors.
    """
    clients = []
    for part in parts:
        mine = torch.zeros(len(labels), dtype=torch.bool)
        mine[part] = True
        nodes = mine[graph_of]
        inside = (nodes.cumsum(0) - 1)[edges[nodes[edges[:, 0]]]]
        clients.append(
            Client(
                features[nodes].to(device),
                torch.cat([inside, inside.flip(1)]).T.to(device),
                (mine.cumsum(0) - 1)[graph_of[nodes]].to(device),
                labels[mine].to(device),
                client_weight(part, parts),
            )
        )
    return clients


def client_weight(part: Tensor, parts: Sequence[Tensor]) -> float:
    """Share of a client's graphs among the graphs of all clients (public)."""
    return len(part) / sum(len(other) for other in parts)


def weighted_update(
    model: NodeEncoder, clients: Sequence[Client], training: LocalTraining
) -> Tensor:
    """Sum of the clients' updates, each times its weight (private).

    Args:
        model: Encoder with the weights of the server.
        clients: All clients, or those of one process; the sums of all processes add up.
        training: Settings of their training.

    Returns:
        One vector of all parameters.
    """
    # In single precision the rounding errors of a sum could exceed its sensitivity.
    size = sum(parameter.numel() for parameter in model.parameters())
    total = torch.zeros(size, dtype=torch.double)
    for client in clients:
        update = client_update(
            model,
            partial(_loss, client),
            epochs=training.epochs,
            learning_rate=training.learning_rate,
        )
        update = update.double().cpu()
        if training.max_norm is not None:
            update = clipped(update, training.max_norm)
        total += client.weight * update
    return total


def _loss(client: Client, model: NodeEncoder) -> Tensor:
    """Cross-entropy of the labels of a client's graphs (private)."""
    size = len(client.labels)
    logits = model.logits(client.features, client.edge_index, client.graph_of, size)
    return cross_entropy(logits, client.labels)
