"""What is known of the classes of some nodes: the classes themselves, or noisy reports of them."""

from typing import NamedTuple

import torch
from torch import Tensor


class ClassEvidence(NamedTuple):
    """Facts about the classes of K of the N nodes.

    Attributes:
        nodes: Numbers of these nodes, each once, shape ``(K,)``.
        log_likelihoods: Log probability of what is known of a node, given each class, shape
            ``(K, C)``. Of a known class it is 0, and minus infinity of all others.
    """

    nodes: Tensor
    log_likelihoods: Tensor

    @property
    def likeliest(self) -> Tensor:
        """The class that each fact speaks for: known or reported, shape ``(K,)``."""
        return self.log_likelihoods.argmax(1)

    def some(self, chosen: Tensor) -> "ClassEvidence":
        """Return the facts about some of the K nodes, by a mask of shape ``(K,)``."""
        return ClassEvidence(self.nodes[chosen], self.log_likelihoods[chosen])

    def added_to(self, logs: Tensor) -> Tensor:
        """Add the facts to log probabilities of the classes of all nodes, shape ``(N, C)``.

        The result has no norm: by Bayes' rule, ``softmax`` makes the probabilities of it.
        """
        total = logs.clone()
        total[self.nodes] += self.log_likelihoods
        return total


def known_classes(nodes: Tensor, places: Tensor, count: int) -> ClassEvidence:
    """Build the evidence of known classes.

    Args:
        nodes: Nodes with known classes, shape ``(K,)``.
        places: Their classes, from 0 to ``count - 1``, shape ``(K,)``.
        count: Number C of classes.
    """
    return ClassEvidence(nodes, torch.eye(count, dtype=torch.double).log()[places])
