"""Federated learning: partition of graphs among clients, and the update of one client.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data"
(FedAvg), 2017; Li et al., "Federated optimization in heterogeneous networks" (FedProx), 2020.
"""

import copy
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from lightning_dpg.errors import Refusal

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
    model: Network,
    loss_fn: Callable[[Network], Tensor],
    *,
    epochs: int,
    learning_rate: float,
    proximal: float = 0.0,
) -> Tensor:
    r"""Train a copy of the model on a client's data and return the change of its weights.

    Each epoch is one step of Adam on all data of the client; Adam starts anew in each call. With
    :math:`\mu > 0` the loss has the term :math:`\mu / 2 \|w - w_0\|^2` of FedProx.

    Args:
        model: Network with the weights :math:`w_0` of the server.
        loss_fn: Loss of a network on the client's data (private).
        epochs: Number of local steps.
        learning_rate: Learning rate of Adam.
        proximal: Weight :math:`\mu` of the proximal term.

    Returns:
        Change of all parameters, in one vector (private).
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
        torch.autograd.backward(loss)
        optimizer.step()
    return parameters_to_vector(parameters).detach() - start


def clipped(update: Tensor, max_norm: float) -> Tensor:
    """Clip an update to norm ``max_norm``; return zeros if its norm is not finite."""
    norm = update.norm()
    if not norm.isfinite():
        return torch.zeros_like(update)
    return update * (max_norm / norm.clamp(min=max_norm))
