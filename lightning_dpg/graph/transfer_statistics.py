"""Counts of transfers that are in memory, see ``TransferCountsSource``."""

from dataclasses import dataclass

import torch

from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.transfer_counts import (
    Counted,
    Integers,
    Window,
    count_amounts,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    count_numbers,
    count_strengths,
    strengths_of,
    sum_amounts,
)
from lightning_dpg.graph.transfer_source import EndClasses


@dataclass(frozen=True)
class TransferStatistics:
    """Exact counts of transfers in memory (private).

    Attributes:
        counted: The transfers that count (private).
        space: Pairs of nodes (public).
        most: Number k of transfers of a pair that count; None for all.
        weight_max: Largest amount (public); None without amounts.
        window: Grid of days and hours (public); None without times.
    """

    counted: Counted
    space: PairSpace
    most: int | None
    weight_max: float | None
    window: Window | None

    def numbers(self) -> Integers:
        """Count pairs by the number of their transfers."""
        return count_numbers(self.counted, self.most)

    def amounts(self, classes: EndClasses) -> Integers:
        """Count transfers by the classes of their ends and the bin of their amount."""
        amounts, weight_max = self._amounts
        return count_amounts(amounts, self._cells(classes), classes.num_cells, weight_max)

    def sums(self, classes: EndClasses) -> Integers:
        """Sum amounts by the classes of the ends."""
        return sum_amounts(self._amounts[0], self._cells(classes), classes.num_cells)

    def strengths(self, nodes: slice) -> Integers:
        """Count nodes by the class of their degree and the bin of their sum of amounts."""
        (amounts, weight_max), found = self._amounts, self.counted
        strengths = strengths_of(found.pairs, found.is_first, amounts, self.space.num_nodes)
        return count_strengths(strengths, nodes, weight_max)

    def days(self) -> Integers:
        """Count transfers by day."""
        return count_days(self.counted, self._grid)

    def hours(self) -> Integers:
        """Count transfers by hour of the week."""
        return count_hours(self.counted, self._grid)

    def gaps(self) -> Integers:
        """Count gaps by reply and bin."""
        return count_gaps(self.counted, self._grid)

    def new_pairs(self) -> Integers:
        """Count pairs by the day of their first transfer."""
        return count_new_pairs(self.counted, self._grid)

    def _cells(self, classes: EndClasses) -> Integers:
        return classes.cells(self.space.ends(torch.from_numpy(self.counted.pairs)).numpy())

    @property
    def _amounts(self) -> tuple[Integers, float]:
        """The amounts and the largest one, of transfers that have them."""
        assert self.counted.amounts is not None and self.weight_max is not None
        return self.counted.amounts, self.weight_max

    @property
    def _grid(self) -> Window:
        """The grid of transfers that have times."""
        assert self.window is not None
        return self.window
