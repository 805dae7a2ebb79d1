"""Labels of nodes by the exponential mechanism, through a Markov chain that moves blocks of nodes."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.privacy.noise import NoiseSource

SWEEPS = "sweeps of the chain"
WITHOUT_CHAIN = "epsilon without the chain, by the guard"
"""Public facts of an entry: the length of the chain, and what all reads of the run cost without it."""

_WARM_SHARE = 0.7  # of the sweeps, in which the exponent grows to its full size


class LabelModel(Protocol):
    """Unnormalized law of the labels of all nodes, and their current values.

    Attributes:
        num_nodes: Number of nodes N.
        num_labels: Number of labels K.
        blocks: Nodes of each block; every node is in one.
        labels: Current label of each node, shape ``(N,)``.
    """

    num_nodes: int
    num_labels: int
    blocks: list[NDArray[np.int64]]
    labels: NDArray[np.int64]

    def reset(self, labels: NDArray[np.int64]) -> None:
        """Set all labels."""

    def propose(self, block: int, power: float) -> NDArray[np.float64]:
        """Law of a new label for each node of a block, given the labels outside of the block only.

        Args:
            block: Number of the block.
            power: Exponent in (0, 1] of the law.

        Returns:
            Cumulative weights, shape ``(size, K)``.
        """

    def log_ratio(self, new: NDArray[np.int64]) -> float:
        """Weight over proposal of new labels of the proposed block, less that of the current ones."""

    def move(self, new: NDArray[np.int64]) -> None:
        """Set the labels of the proposed block."""


def chain_facts(sweeps: int, guard: float) -> dict[str, float | int | str]:
    """Public facts of an entry of labels: its sweeps, and the epsilon of a guard before it."""
    facts: dict[str, float | int | str] = {SWEEPS: sweeps}
    return facts | ({WITHOUT_CHAIN: guard} if math.isfinite(guard) else {})


def sample_labels(sweeps: int) -> Callable[[LabelModel, NoiseSource], Tensor]:
    r"""Draw labels by the exponential mechanism, through a Markov chain.

    The stationary law is :math:`P(z) \propto e^{\epsilon u(z)} h(z)`, where the utility u is the number
    of edges between nodes of equal labels, and h a function of public and released values. It is
    epsilon-DP, see ``label_utility_sensitivity``.

    A step proposes labels for all nodes of a block, independently given the labels outside, and is
    taken with the probability of Metropolis and Hastings. It keeps the stationary law. The exponent of
    the law grows linearly in the first sweeps.

    The ledger books the cost of the stationary law. A chain of finitely many sweeps has another law at
    an unknown distance, whose loss can be larger: callers state this as a condition. The number of
    sweeps is public and data-independent. Decisions use floating-point numbers, with coins of 53
    bits.

    The law reads a model, whose edges are private, and moves its labels. The released value holds
    the labels of all nodes, shape ``(N,)``.

    Args:
        sweeps: Number of sweeps over all blocks.

    References:
        McSherry, Talwar, "Mechanism design via differential privacy", 2007.
        Hastings, "Monte Carlo sampling methods using Markov chains and their applications", 1970.
    """

    def draw(model: LabelModel, noise: NoiseSource) -> Tensor:
        model.reset(noise.integers(model.num_labels, model.num_nodes))
        for sweep in range(sweeps):
            power = min(1.0, (sweep + 1) / (_WARM_SHARE * sweeps))
            coins = _uniform(noise, model.num_nodes)
            # As many as nodes: the number of blocks depends on the edges, and what is drawn must not.
            decisions = _uniform(noise, model.num_nodes)[: len(model.blocks)]
            start = 0
            for block, decision in enumerate(decisions.tolist()):
                cumulative = model.propose(block, power)
                stop = start + len(cumulative)
                thresholds = coins[start:stop, None] * cumulative[:, -1:]
                new = np.minimum((cumulative < thresholds).sum(axis=1), model.num_labels - 1)
                if math.log(decision) <= model.log_ratio(new):
                    model.move(new)
                start = stop
        return torch.from_numpy(model.labels.copy())

    return draw


def _uniform(noise: NoiseSource, size: int) -> NDArray[np.float64]:
    """Uniform numbers in (0, 1], of 53 bits."""
    return (noise.integers(2**53, size) + 1).astype(np.float64) * 2.0**-53
