"""The rounds of federated averaging: which graphs teach, who holds them, and what a round sends."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightning_dpg.nn.federated import client_update, clipped, dirichlet_clients
from lightning_dpg.nn.node_encoders import NodeEncoder


class Client(NamedTuple):
    """What one client holds (private, but for its weight)."""

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


def teaching_graphs(labels: Tensor, share: float, seed: int) -> Tensor:
    """Which graphs teach the encoder: a share of each label, drawn at random; ``(G,)`` to ``(G,)``."""
    rng, chosen = np.random.default_rng(seed), torch.zeros(len(labels), dtype=torch.bool)
    for label in np.unique(labels.numpy()):
        members = np.flatnonzero(labels.numpy() == label)
        count = round(share * len(members))
        chosen[torch.from_numpy(rng.permutation(members)[:count])] = True
    return chosen


def dealt(
    labels: Tensor, teaching: Tensor, num_clients: int, concentration: float, seed: int
) -> list[Tensor]:
    """Numbers of the graphs of each client (public); clients without any are left out.

    Args:
        labels: Label of each graph, shape ``(G,)``.
        teaching: Which graphs teach, shape ``(G,)``.
        num_clients: Number of clients.
        concentration: See ``dirichlet_clients``.
        seed: Public seed.
    """
    numbers = torch.nonzero(teaching)[:, 0]
    parts = dirichlet_clients(labels[numbers], num_clients, concentration, seed)
    return [numbers[part] for part in parts if len(part)]


def holdings(
    parts: Sequence[Tensor],
    features: Tensor,
    edges: Tensor,
    graph_of: Tensor,
    labels: Tensor,
    device: torch.device,
) -> list[Client]:
    """What each client holds.

    Args:
        parts: Numbers of the graphs of each client.
        features: Features of the nodes of all graphs (private), shape ``(N, d)``.
        edges: Edges of all graphs (private), shape ``(M, 2)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        labels: Label of each graph (public), shape ``(G,)``.
        device: Where to put it.
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
                share_of(part, parts),
            )
        )
    return clients


def share_of(part: Tensor, parts: Sequence[Tensor]) -> float:
    """Share of a client's graphs among those of all (public)."""
    return len(part) / sum(len(other) for other in parts)


def weighted_update(
    model: NodeEncoder,
    clients: Sequence[Client],
    *,
    epochs: int,
    learning_rate: float,
    proximal: float,
    max_norm: float | None,
) -> Tensor:
    """Sum of the clients' updates, each times its weight (private).

    Args:
        model: Encoder with the weights of the server.
        clients: All clients, or those of one process; the sums of all processes add up.
        epochs: Local steps of each.
        learning_rate: Of these.
        proximal: See ``client_update``.
        max_norm: What updates are clipped to; None leaves them as they are.

    Returns:
        One vector of all parameters.
    """
    # In single precision a sum moves by more than its sensitivity, if only by its last digits.
    size = sum(parameter.numel() for parameter in model.parameters())
    total = torch.zeros(size, dtype=torch.double)
    for client in clients:
        update = client_update(
            model,
            partial(_loss, client),
            epochs=epochs,
            learning_rate=learning_rate,
            proximal=proximal,
        )
        update = update.double().cpu()
        if max_norm is not None:
            update = clipped(update, max_norm)
        total += client.weight * update
    return total


def _loss(client: Client, model: NodeEncoder) -> Tensor:
    """Cross-entropy of the labels of a client's graphs (private)."""
    size = len(client.labels)
    logits = model.logits(client.features, client.edge_index, client.graph_of, size)
    return cross_entropy(logits, client.labels)
