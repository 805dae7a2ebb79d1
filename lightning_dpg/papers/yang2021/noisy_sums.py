"""Sums of public features over neighbors, released once with noise for later free reads."""

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.aggregation_perturbation import (
    aggregation_entries,
    noisy_aggregation,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource


class NoisySums(nn.Module):
    """Sums over neighbors, released once with noise; later reads are free.

    Args:
        hops: Number of released sums, each over the previous sums of the neighbors.
        feature_dim: Width of the features that are summed up.
        share: Share of the budget (of its zCDP parameter) for all sums.

    Attributes:
        rows: All hops side by side (released), shape ``(N, hops * feature_dim)``.
        noise_multiplier: Noise of each hop.
    """

    def __init__(self, hops: int, feature_dim: int, share: float) -> None:
        super().__init__()
        self.hops = hops
        self.share = share
        self.rows: Tensor
        self.noise_multiplier: Tensor
        self.register_buffer("rows", torch.empty(0, hops * feature_dim))
        self.register_buffer("noise_multiplier", torch.tensor(float("nan"), dtype=torch.float64))
        resize_on_loading(self, "rows")

    def planned(self, budget: Budget) -> list[LedgerEntry]:
        """Plan one release for each hop."""
        one_release = 0.0 if math.isinf(budget.epsilon) else calibrate_gaussian(budget)
        noise_multiplier = one_release * math.sqrt(self.hops / self.share)
        return aggregation_entries(self.hops, noise_multiplier, Relation.EDGE)

    def release(
        self,
        edges: Tensor,
        features: Tensor,
        reads: Sequence[LedgerEntry],
        *,
        ledger: PrivacyLedger,
        noise: NoiseSource,
    ) -> None:
        """Release the sums of public features of shape ``(N, d)`` over edges ``(M, 2)`` (private).

        Args:
            edges: Edges of shape ``(M, 2)`` (private).
            features: Public features of shape ``(N, d)``.
            reads: Read of each hop, see :meth:`planned`.
            ledger: Ledger that pays for each hop.
            noise: Secret source of the noise.
        """
        event = reads[0].event
        assert isinstance(event, Gaussian)
        self.noise_multiplier.fill_(event.noise_multiplier)
        sums_of = partial(neighbor_sums, edges)
        rows = noisy_aggregation(sums_of, features.cpu(), reads, ledger, noise)
        self.rows = rows.to(features.device)

    def scaled(self, rows: Tensor) -> Tensor:
        """Scale rows to entries of about 1; the scale is a function of the released rows."""
        return rows / self.rows.square().mean().sqrt()
