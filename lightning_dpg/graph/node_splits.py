"""Public splits of the nodes that have a class."""

from typing import NamedTuple

import torch
from torch import Tensor

_PER_CLASS, _VALIDATION, _TEST = 20, 500, 1000
_VALIDATION_SHARE = 0.4  # of the nodes that are not for training: 10 and 15 % beside 75 %


class Split(NamedTuple):
    """Numbers of the nodes of the three parts."""

    train: Tensor
    """Nodes whose classes a network learns from."""
    validation: Tensor
    """Nodes whose classes choose the step at which the training stops."""
    test: Tensor
    """Nodes whose classes are predicted."""


def split_nodes(classes: Tensor, seed: int, train_fraction: float | None = None) -> Split:
    """Split the nodes that have a class by a public coin.

    By default 20 nodes of each class are for training, 500 others for validation and 1,000 for the
    test, as in Kipf and Welling. A small graph has fewer: at most a third of a class for training,
    at least one node, and a third of the others for validation.

    Args:
        classes: Class of each node, shape ``(N,)``, -1 where there is none.
        seed: Public seed.
        train_fraction: Share of the nodes of each class for training, at least one node; two fifths
            of the others are for validation, and the rest for the test: .75 makes 75, 10 and 15 %.
    """
    order = _shuffled(classes, seed)
    parts = [order[classes[order] == label] for label in torch.unique(classes[order])]
    if train_fraction is None:
        counts = [max(1, min(_PER_CLASS, len(part) // 3)) for part in parts]
    else:
        counts = [max(1, round(train_fraction * len(part))) for part in parts]
    train = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
    return split_others(classes, train, seed, train_fraction)


def split_others(
    classes: Tensor, train: Tensor, seed: int, train_fraction: float | None = None
) -> Split:
    """Split the nodes that are not for training as :func:`split_nodes` does.

    Args:
        classes: Class of each node, shape ``(N,)``, -1 where there is none.
        train: Nodes for training, shape ``(K,)``.
        seed: Public seed.
        train_fraction: Where it is given, all other nodes are for validation or for the test.
    """
    order = _shuffled(classes, seed)
    others = order[~torch.isin(order, train)]
    if train_fraction is not None:
        return _split_rest(train, others)
    count = min(_VALIDATION, len(others) // 3)
    return Split(train, others[:count], others[count : count + _TEST])


def split_at_random(nodes: Tensor, seed: int, train_fraction: float) -> Split:
    """Split nodes by a public coin, without a look at their classes, which may be private.

    Args:
        nodes: Numbers of the nodes, shape ``(K,)``.
        seed: Public seed.
        train_fraction: Share of the nodes for training, at least one node; of the others as in
            :func:`split_nodes`.
    """
    order = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    count = max(1, round(train_fraction * len(nodes)))
    return _split_rest(order[:count], order[count:])


def _split_rest(train: Tensor, others: Tensor) -> Split:
    """Divide the nodes that are not for training."""
    count = round(_VALIDATION_SHARE * len(others))
    return Split(train, others[:count], others[count:])


def _shuffled(classes: Tensor, seed: int) -> Tensor:
    """Nodes that have a class, in the order of a public coin."""
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    return order[classes[order] >= 0]
