"""Scores of pairs of nodes by predicted classes: do predictions reveal links?"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Share by which the attributes of a node grow in a question to a model.
_GROWTH = 1e-2


class Predictions(NamedTuple):
    """What an attacker has of a release of classes.

    Attributes:
        posteriors: Released probabilities of the classes of the nodes, shape ``(N, C)``.
        predict: Function from the numbers of some nodes, shape ``(P,)``, and attributes for them, shape
            ``(P, F)``, to probabilities of their classes, shape ``(P, C)``.
    """

    posteriors: Tensor
    predict: Callable[[Tensor, Tensor], Tensor]


def similarity(posteriors: Tensor, pairs: Tensor) -> Tensor:
    """Score pairs of shape ``(P, 2)`` by the correlation of the classes of both nodes, ``(P,)``.

    Linked nodes have similar predictions, from their edges or from their attributes.

    * He, Jia, Backes, Gong, Zhang, "Stealing Links from Graph Neural Networks", 2021, attack 0 with the
      correlation distance.
    """
    rows = posteriors.double().cpu()
    rows = normalize(rows - rows.mean(1, keepdim=True))
    return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(1)


def influence(predictions: Predictions, attributes: Tensor, pairs: Tensor) -> Tensor:
    """Score pairs of shape ``(P, 2)`` by the influence of the first node on the second one, ``(P,)``.

    The attributes of the first node grow by a hundredth. The influence is the length of the change of
    the probabilities of the second one, over the growth. Where a model sums over neighbors to
    predict, it is large for neighbors. Where it predicts each node from its own attributes, it is 0.

    * Wu, Long, Zhang, Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via
      Influence Analysis", 2022, section IV.

    Args:
        predictions: The model, as an attacker asks it.
        attributes: Public attributes of all nodes, shape ``(N, F)``.
        pairs: Pairs of nodes.
    """
    scores = torch.zeros(len(pairs), dtype=torch.double)
    order = pairs[:, 0].argsort(stable=True)
    firsts, counts = torch.unique_consecutive(pairs[order, 0], return_counts=True)
    for first, places in zip(firsts, torch.split(order, counts.tolist()), strict=True):
        nodes = torch.cat([first[None], pairs[places, 1]])
        rows = attributes[nodes]
        before = predictions.predict(nodes, rows)
        grown = torch.cat([rows[:1] * (1 + _GROWTH), rows[1:]])
        change = predictions.predict(nodes, grown) - before
        scores[places] = change[1:].double().norm(dim=1) / _GROWTH
    return scores
