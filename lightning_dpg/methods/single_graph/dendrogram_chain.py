"""The Markov chain over dendrograms, and graphs from the selected dendrogram."""

import math

import numpy as np
import torch
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.chain_memory import memory_of_start
from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.graph.dendrogram import (
    MAX_NODES,
    Dendrogram,
    branch_edges,
    branch_pairs,
    dividing_branch,
    draw_branches,
)
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.mechanisms import pure_entry
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.selection import choose_by_chain
from lightning_dpg.privacy.sensitivity import log_likelihood_sensitivity

BRANCHES = "edges divided by each branch"
# Public seed of the dendrogram at the start of the chain.
_PUBLIC_SEED = 0
_STEPS_PER_NODE = 1000


def least_steps_per_node(num_nodes: int) -> int:
    r"""Steps for each node below which no guarantee is given: :math:`\max(100, N \ln N / 8)` (public).

    Without edges, all dendrograms are equally likely and all moves are made. In measurements, the
    correlation of branch sizes with those at the start fell by a factor of e in about :math:`N^2 /
    8` steps (N from 100 to 5,242), so that :math:`\ln N` times as many leave about 1 / N of it.
    This is a necessary number: the mixing time on a graph with edges is unknown.

    Args:
        num_nodes: Number of nodes N.
    """
    return max(100, math.ceil(num_nodes * math.log(max(num_nodes, 1)) / 8))


def _check_steps(num_nodes: int, steps_per_node: int) -> None:
    """Refuse a chain that is too short to have mixed.

    Raises:
        MisconfigurationException: If they are too few.
    """
    least = least_steps_per_node(num_nodes)
    if steps_per_node < least:
        raise MisconfigurationException(
            f"steps_per_node {steps_per_node} is too few for {num_nodes} nodes: the chain cannot have "
            f"forgotten its start before {least}\nset it to {least} or more ({least * num_nodes:,} "
            "steps in all, some 200,000 a second), or leave it out\nPrivGraph and BTER release "
            "communities without a chain"
        )


class DendrogramChain:
    """Chooses a dendrogram by the exponential mechanism, with a Markov chain.

    Args:
        num_nodes: Number of nodes N (public); None until it is known.
        steps_per_node: Steps for each node (public); None for the default.

    Attributes:
        trace: Log-likelihoods of the chain (private), with their steps.
    """

    def __init__(self, num_nodes: int | None, steps_per_node: int | None) -> None:
        if steps_per_node is not None and steps_per_node < 1:
            raise Refusal(f"steps_per_node must be positive, got {steps_per_node}")
        if num_nodes is not None and num_nodes > MAX_NODES:
            raise MisconfigurationException(
                f"HRG keeps a bit for each node in each branch, which is too much for {num_nodes} "
                f"nodes (at most {MAX_NODES})\ntake PrivGraph or BTER"
            )
        self._num_nodes, self._steps_per_node = num_nodes, steps_per_node
        self.trace: list[tuple[int, float]] = []

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        if self._num_nodes is None:
            raise MisconfigurationException(
                "num_nodes is needed: the number of (public) nodes of the graph"
            )
        return self._num_nodes

    @property
    def steps(self) -> int:
        """Steps of the chain."""
        per_node = self._steps_per_node
        if per_node is None:
            per_node = max(_STEPS_PER_NODE, least_steps_per_node(self.num_nodes))
        return per_node * self.num_nodes

    def check(self) -> None:
        """Refuse too short a chain."""
        if self._num_nodes is not None and self._steps_per_node is not None:
            _check_steps(self._num_nodes, self._steps_per_node)

    def condition(self) -> str:
        """Condition of the guarantee: the chain is stationary."""
        return (
            "the Markov chain over dendrograms has come to its stationary law within its "
            f"{self.steps:,} steps"
        )

    def memory(self) -> str:
        """Correlation with the start that remains on the graph without edges, in words (public)."""
        memory, usual = memory_of_start(self.num_nodes, self.steps, _PUBLIC_SEED)
        return (
            f"Without edges, which is public, {self.steps:,} steps of the chain over dendrograms "
            f"leave a correlation of {memory:.3f} with its start, where chains that have forgotten "
            f"it have up to {usual:.3f} in 19 of 20 cases."
        )

    def planned(self, epsilon: float) -> LedgerEntry:
        """Entry of :meth:`choose`."""
        moved, proof = log_likelihood_sensitivity(self.num_nodes), "log_likelihood_sensitivity"
        return pure_entry("dendrogram", "dendrogram", epsilon, moved, proof)

    def choose(
        self, edges: Tensor, ledger: PrivacyLedger, noise: NoiseSource, epsilon: float
    ) -> Tensor:
        """Release a dendrogram, shape ``(N, 3)``.

        Args:
            edges: Training records of shape ``(M, 2)`` (private).
            ledger: Ledger that pays for it.
            noise: Secret source of the chain.
            epsilon: Cost of the selection.
        """
        start = Dendrogram(edges.numpy(), self.num_nodes, np.random.default_rng(_PUBLIC_SEED))
        return choose_by_chain(
            start,
            self.steps,
            ledger,
            noise,
            key="dendrogram",
            name="dendrogram",
            epsilon=epsilon,
            sensitivity=log_likelihood_sensitivity(self.num_nodes),
            proof="log_likelihood_sensitivity",
            watch=lambda step, value: self.trace.append((step, value)),
        )

    def log(self, loggers: list[Logger]) -> None:
        """Log the progress of the chain (private)."""
        for step, value in self.trace:
            for logger in loggers:
                logger.log_metrics({"nonprivate/log_likelihood": value}, step=step)


def hrg_parts(epsilon: float, count_share: float, dendrogram_share: float) -> dict[str, Budget]:
    """Parts of an epsilon for the number of edges, the dendrogram and the branches."""
    rest = 1 - count_share - dendrogram_share
    return Budget(epsilon, 0.0).split(count=count_share, dendrogram=dendrogram_share, branches=rest)


def divided_edges(dendrogram: Tensor, edges: Tensor) -> Tensor:
    """Number of edges ``(M, 2)`` (private) that each branch divides: ``(N,)``."""
    return torch.from_numpy(branch_edges(dendrogram.numpy(), edges.numpy()))


def fitted_counts(dendrogram: Tensor, noisy: Tensor, num_edges: int) -> Tensor:
    """Round noisy branch counts to the nearest possible counts of a released sum: ``(N,)``."""
    pairs = branch_pairs(dendrogram.numpy())
    return torch.from_numpy(fitting_counts(noisy.double().numpy(), pairs, num_edges))


def placed_edges(dendrogram: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Place numbers of edges at random between the sides of their branches."""
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    return torch.from_numpy(draw_branches(dendrogram.cpu().numpy(), counts.cpu().numpy(), rng))


def edge_shares(dendrogram: Tensor, counts: Tensor, pairs: Tensor) -> Tensor:
    """Share of the pairs of a branch that are edges, for pairs of shape ``(P, 2)``: ``(P,)``."""
    tree = dendrogram.cpu().numpy()
    shares = counts.cpu().numpy() / np.maximum(branch_pairs(tree), 1)
    return torch.from_numpy(shares[dividing_branch(tree, pairs.cpu().numpy())])
