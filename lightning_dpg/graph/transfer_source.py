"""Counts and sums that a method asks of transfers, wherever their rows are."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Protocol, runtime_checkable

Integers = NDArray[np.int64]


class EndClasses(NamedTuple):
    """Classes of payers and payees: public, or functions of earlier releases.

    Attributes:
        of_end: Class of each end, shape ``(num_ends,)``; those of payers and payees are numbered apart
            where the graph has two sides.
        sizes: Number of classes of payers and of payees.
    """

    of_end: Integers
    sizes: tuple[int, int]

    @property
    def num_cells(self) -> int:
        """Number of pairs of classes."""
        return self.sizes[0] * self.sizes[1]

    def cells(self, ends: Integers) -> Integers:
        """Return the pair of classes of payer and payee: shape ``(T, 2)`` to ``(T,)``."""
        classes = self.of_end[ends]
        found: Integers = classes[:, 0] * self.sizes[1] + classes[:, 1]
        return found


class TransferCountsSource(Protocol):
    """Exact counts of the transfers that count (private), wherever the rows are.

    Which ones count is said by :func:`lightning_dpg.graph.transfer_counts.counted_transfers`. The bins
    are those of this module. Sensitivities are those of the counts and sums; a source adds no noise and
    books nothing.
    """

    def numbers(self) -> Integers:
        """Pairs by the number of their transfers, shape ``(B,)``."""

    def amounts(self, classes: EndClasses) -> Integers:
        """Transfers by the classes of payer and payee and the bin of the amount, ``(cells, B)``."""

    def sums(self, classes: EndClasses) -> Integers:
        """Sums of amounts in units by the classes of payer and payee, shape ``(cells,)``."""

    def strengths(self, nodes: slice) -> Integers:
        """Some nodes (public) by the class of degree and the bin of the sum of amounts, ``(K, B)``."""

    def days(self) -> Integers:
        """Transfers by day of the window, shape ``(days,)``."""

    def hours(self) -> Integers:
        """Transfers by hour of the week, shape ``(168,)``."""

    def gaps(self) -> Integers:
        """Gaps between transfers of a pair by whether the payer changes, and bin, shape ``(2, B)``."""

    def new_pairs(self) -> Integers:
        """Pairs by the day of their first transfer, shape ``(days,)``."""


@runtime_checkable
class CountsTransfers(Protocol):
    """Transfers that are counted without being handed over."""

    def counts(self, most: int | None) -> TransferCountsSource:
        """Return the counts of the transfers that count (private).

        Args:
            most: Number k of transfers of a pair that count, its first ones; None counts all. If 1, and
                without times, a pair counts as one transfer of the sum of its amounts.
        """
