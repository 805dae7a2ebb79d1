"""Times of transfers: curves of days and hours, gaps within pairs, new pairs."""

import numpy as np
import torch
from torch import Tensor, nn

from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.transfer_counts import TransferCountsSource, Window
from lightning_dpg.graph.transfer_draws import (
    Curves,
    Stamps,
    draw_stamps,
    smoothed_days,
    smoothed_hours,
)
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attributed.unit import TransferFacts
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.transfers import (
    event_count_sensitivity,
    relation_contact_sensitivity,
    relation_gap_sensitivity,
    transfer_contact_sensitivity,
    transfer_gap_sensitivity,
)

_SHARES = {"days": 0.25, "hours": 0.15, "gaps": 0.35, "new_pairs": 0.25}


class Times(nn.Module):
    """Released curves of times.

    Attributes:
        days: Noisy transfers by day, shape ``(D,)``.
        hours: Noisy transfers by hour of the week, shape ``(168,)``.
        gaps: Noisy gaps by reply and bin, shape ``(R, B)``; R is 1 where pairs have a direction.
        new_pairs: Noisy pairs by the day of their first transfer, shape ``(D,)``.
        scales: Scales of the noise in these, shape ``(4,)``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.days: Tensor
        self.hours: Tensor
        self.gaps: Tensor
        self.new_pairs: Tensor
        self.scales: Tensor
        for name in _SHARES:
            self.register_buffer(name, torch.empty(0, dtype=torch.double))
        self.register_buffer("scales", torch.zeros(len(_SHARES), dtype=torch.double))
        resize_own_buffers(self)

    @staticmethod
    def entries(facts: TransferFacts, epsilon: float) -> list[LedgerEntry]:
        """Plan all reads, which spend epsilon."""
        is_all = facts.most is None
        gaps = (transfer_gap_sensitivity,) if is_all else (relation_gap_sensitivity, facts.most)
        contact = transfer_contact_sensitivity if is_all else relation_contact_sensitivity
        each = (event_count_sensitivity, facts.changes)
        reads = {
            "days": ("transfers by day", *each),
            "hours": ("transfers by hour of the week", *each),
            "gaps": ("gaps between transfers of a pair", *gaps),
            "new_pairs": ("pairs by the day of their first transfer", contact),
        }
        return [
            facts.entry(key, name, _SHARES[key] * epsilon, *proof)
            for key, (name, *proof) in reads.items()
        ]

    def release(
        self, method: OneShotSynthesizer, source: TransferCountsSource, reads: Reads
    ) -> None:
        """Release all curves.

        Args:
            method: The method, which pays.
            source: Counts of the transfers (private).
            reads: Planned reads.
        """
        gaps = source.gaps()
        exact = {
            "days": source.days(),
            "hours": source.hours(),
            "gaps": gaps if method.kind == "undirected" else gaps[:1],
            "new_pairs": source.new_pairs(),
        }
        for key, counts in exact.items():
            setattr(self, key, method.pay(reads[key], torch.from_numpy(counts)).double())
        scales = [reads[key].scale for key in exact]
        self.scales = torch.tensor(scales, dtype=torch.double)

    def totals(self) -> list[tuple[float, float]]:
        """Return two released numbers of counted transfers, with their variances."""
        scales = self.scales.tolist()
        return [
            (float(counts.sum()), 2 * scale**2 * counts.numel())
            for counts, scale in ((self.days, scales[0]), (self.hours, scales[1]))
        ]

    def draw(self, numbers: Integers, window: Window, rng: np.random.Generator) -> Stamps:
        """Draw the times of pairs with that many transfers each."""
        days, hours, gaps, new_pairs = (getattr(self, name).cpu().numpy() for name in _SHARES)
        scales = dict(zip(_SHARES, self.scales.tolist(), strict=True))
        weekday = window.first_weekday
        curves = Curves(
            smoothed_days(days, scales["days"], weekday),
            smoothed_hours(hours, scales["hours"]),
            gaps,
            smoothed_days(new_pairs, scales["new_pairs"], weekday),
        )
        return draw_stamps(numbers, curves, window, rng)
