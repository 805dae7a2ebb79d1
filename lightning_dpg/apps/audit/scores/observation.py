"""Observation of a white-box attacker at the moment of a release."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.apps.audit.bounds import inclusion_estimate
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.privacy.events import LedgerEntry


def scored_part(method: Any) -> Any:
    """Return the part of a method whose released tensors the scores know: that of the edges."""
    return method.structure if isinstance(method, Attributed) else method


# Weight of a release without noise, instead of infinity.
_CERTAIN = 100.0
# Standard deviation of a release without noise, instead of 0.
_LEAST_STD = 1e-6


class Observation(NamedTuple):
    """One noisy value, and the attacker's knowledge at its release.

    Attributes:
        method: The method, with its public settings, its released tensors, and its networks in
            their state at the step.
        entry: The ledger entry that paid for the value.
        noisy: The released value.
        earlier: Earlier noisy values, the last one of each key.
        data: The data module; a score reads its public facts only.
        pairs: Canaries of shape ``(P, 2)``, or of D edges each, shape ``(P, D, 2)``; a fair coin has
            decided on each.
        known_graph: Graph of all other edges, which the attacker knows.
    """

    method: Any
    entry: LedgerEntry
    noisy: Tensor
    earlier: Mapping[str, Tensor]
    data: Any
    pairs: Tensor
    known_graph: Data

    @property
    def known_edges(self) -> Tensor:
        """All other edges, shape ``(M, 2)``, on the CPU."""
        return undirected_edges(self.known_graph).cpu()

    @property
    def rate(self) -> float:
        """Decay of discrete Laplace noise per unit."""
        return weight(self.entry.event.pure_epsilon) / self.entry.sensitivity

    @property
    def std(self) -> float:
        """Standard deviation of normal noise."""
        return max(self.entry.scale, _LEAST_STD)

    def by_changes(self, before: Tensor, changes: Tensor) -> Tensor:
        """Score canaries that add known vectors to a noisy sum, by the best linear estimate of coins.

        Args:
            before: Sum of the known edges, of any shape of K numbers.
            changes: Change by each canary, shape ``(P, K)``.

        Returns:
            Approximate log-likelihood ratios of shape ``(P,)``.
        """
        changes = changes.double().cpu()
        rest = self.noisy.double().cpu().flatten() - before.double().cpu().flatten()
        return inclusion_estimate(rest - changes.sum(0) / 2, changes, self.std, 0.5)

    def by_gradients(
        self, noisy: Tensor, directions: Tensor, expected: Tensor, others: Tensor
    ) -> Tensor:
        """Score canaries by the noisy sum of clipped gradients of a batch, which holds each by chance.

        Args:
            noisy: The sum, shape ``(K,)``.
            directions: Gradient of each canary, shape ``(P, K)``.
            expected: Expected sum of the other edges, shape ``(K,)``.
            others: Further directions whose share of the batch is not known, shape ``(Q, K)``.

        Returns:
            Approximate log-likelihood ratios of shape ``(P,)``.
        """
        rate = self.entry.event.sample_rate
        rest = noisy - expected - rate / 2 * directions.sum(0)
        both = torch.cat([directions, others])
        estimate = inclusion_estimate(rest, both, self.std, rate / 2)
        return rate * estimate[: len(directions)]


def weight(epsilon: float) -> float:
    """Return epsilon, or a large finite number if it is infinite: infinity times 0 is nan."""
    return min(epsilon, _CERTAIN)
