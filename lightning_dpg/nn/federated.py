"""Federated learning as plain functions: who holds which graphs, and what a client sends.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data" (FedAvg),
2017; Li et al., "Federated optimization in heterogeneous networks" (FedProx), 2020.
"""

import copy
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

Network = TypeVar("Network", bound=nn.Module)


def dirichlet_clients(
    labels: Tensor, num_clients: int, concentration: float, seed: int
) -> list[Tensor]:
    """Deal graphs to clients, whose shares of each label are drawn from a Dirichlet distribution.

    Nothing but labels and seed, both public, decides who holds what.

    Args:
        labels: Label of each graph, shape ``(G,)``.
        num_clients: Number of clients.
        concentration: Positive; the larger, the more alike the clients are.
        seed: Public seed.

    Returns:
        Ascending numbers of the graphs of each client, some of which may hold none.
    """
    if num_clients < 1 or not concentration > 0:
        raise ValueError(
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
    model: Network,
    loss_fn: Callable[[Network], Tensor],
    *,
    epochs: int,
    learning_rate: float,
    proximal: float = 0.0,
) -> Tensor:
    r"""What a client's weights have moved by after its own training; the model stays as it is.

    Each epoch is one step of Adam, newly started, on all that the client holds. With
    :math:`\mu > 0` the loss has the term :math:`\mu / 2 \|w - w_0\|^2` of FedProx.

    Args:
        model: Network with the weights :math:`w_0` of the server.
        loss_fn: Loss of a network on the client's data (private).
        epochs: Number of local steps.
        learning_rate: Their learning rate.
        proximal: The weight mu.

    Returns:
        Difference of all parameters, in one vector (private).
    """
    local = copy.deepcopy(model)
    parameters = list(local.parameters())
    start = parameters_to_vector(parameters).detach()
    optimizer = torch.optim.Adam(parameters, learning_rate)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = loss_fn(local)
        if proximal:
            moved = parameters_to_vector(parameters) - start
            loss = loss + proximal / 2 * moved.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return parameters_to_vector(parameters).detach() - start


def clipped(update: Tensor, max_norm: float) -> Tensor:
    """The update, shortened to ``max_norm`` if it is longer; none if it is not finite."""
    norm = update.norm()
    if not norm.isfinite():
        return torch.zeros_like(update)
    return update * (max_norm / norm.clamp(min=max_norm))
