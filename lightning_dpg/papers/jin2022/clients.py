"""A round of federated averaging: training graphs, their division among clients, updates."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightning_dpg.nn.node_encoders import NodeEncoder
from lightning_dpg.papers.jin2022.federated import client_update, clipped, dirichlet_clients


class LocalTraining(NamedTuple):
    """Settings of the training of each client in a round (public)."""

    epochs: int
    """Local steps."""
    learning_rate: float
    """Learning rate of these."""
    proximal: float
    """Weight of the term of FedProx, see ``client_update``."""
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
    model: NodeEncoder,
    clients: Sequence[Client],
    training: LocalTraining,
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
            proximal=training.proximal,
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
