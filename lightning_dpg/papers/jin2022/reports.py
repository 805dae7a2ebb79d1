"""Node rows reported by the multi-bit encoder: local differential privacy of each graph."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.reports import best_reports_per_row, multi_bit, reports_entry, unbiased

REPORTS_KEY = "embedding_reports"
"""Key of the reports in the ledger."""

BOUNDS = (0.0, 1.0)
"""Of the entries of a softmax."""


class Reports(NamedTuple):
    """Settings of the reports of the rows of all graphs (public).

    Attributes:
        sizes: Number of rows of each graph, shape ``(G,)``.
        epsilons: Cost for each graph, shape ``(G,)``.
        per_row: Entries m reported of each row.
    """

    sizes: Tensor
    epsilons: Tensor
    per_row: int

    @classmethod
    def chosen(
        cls, sizes: Tensor, epsilons: Tensor, per_row: int | None, *, num_rows: int, width: int
    ) -> "Reports":
        """Choose the number of reported entries per row: the setting, or near the optimum.

        Args:
            sizes: Number of rows of each graph, shape ``(G,)``.
            epsilons: Cost for each graph, shape ``(G,)``.
            per_row: The setting; None selects the optimum.
            num_rows: Number of rows that share the epsilon of a graph.
            width: Entries of a row.
        """
        if per_row is None:
            per_row = best_reports_per_row(float(epsilons.min()), num_rows, width)
        return cls(sizes, epsilons, per_row)

    @property
    def entry(self) -> LedgerEntry:
        """Read of all reports."""
        name, largest = "reports of embeddings", float(self.epsilons.max())
        return reports_entry(REPORTS_KEY, name, largest, self.sizes, self.per_row)

    @property
    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph, shape ``(G,)``."""
        return self.epsilons / (self.per_row * self.sizes)

    def law(
        self, read: LedgerEntry, shape: Sequence[int]
    ) -> Callable[[Tensor, NoiseSource], Tensor]:
        """Law of the signs of a few entries of each row, with 0 for unreported entries.

        Args:
            read: Read of all reports.
            shape: Shape ``(N, h)`` of the rows.
        """
        return multi_bit(
            read,
            shape,
            self.sizes,
            epsilon=self.epsilons,
            reports_per_row=self.per_row,
            bounds=BOUNDS,
        )

    def estimates(self, signs: Tensor) -> Tensor:
        """Unbiased estimates of all rows from the released signs, shape ``(N, h)``."""
        return unbiased(
            signs,
            self.sizes,
            epsilon=self.epsilons,
            reports_per_row=self.per_row,
            bounds=BOUNDS,
        )


def equal_epsilons(epsilon: float, sizes: Tensor) -> Tensor:
    """Equal epsilons for the reports of all graphs, shape ``(G,)``."""
    return torch.full((len(sizes),), epsilon, dtype=torch.double, device=sizes.device)
