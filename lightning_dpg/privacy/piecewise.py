"""Piecewise mechanism: report numbers of a bounded range with local differential privacy."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.noise import NoiseSource

CELLS = 2**20
"""Cells of the range of a report."""


class PiecewiseLaw(NamedTuple):
    r"""Law of a report: a cell of a window with a large probability, else a cell outside of it.

    Attributes:
        cells: Number K of cells.
        width: Number w of cells of the window.
        rate: Probability of the window, in units of :math:`2^{-40}`.
    """

    cells: int
    width: int
    rate: int

    @property
    def starts(self) -> int:
        """Number of the last window."""
        return self.cells - self.width

    @property
    def slope(self) -> float:
        """Expected cells by which a report moves, per cell that the window moves."""
        inside = self.rate / RATE_DENOMINATOR
        return inside - (1 - inside) * self.width / self.starts

    @property
    def middle(self) -> float:
        """Expected cell of a report from the first window."""
        inside, cells, width = self.rate / RATE_DENOMINATOR, self.cells, self.width
        outside = (cells * (cells - 1) - width * (width - 1)) / (2 * self.starts)
        return inside * (width - 1) / 2 + (1 - inside) * outside

    def starts_of(self, shares: Tensor) -> Tensor:
        """First cells of the windows of values by their position from 0 to 1 in the range."""
        inside = shares.double().nan_to_num(nan=0.5).clamp(0, 1)
        return (inside * self.starts).round().long()

    def estimates(self, reports: Tensor) -> Tensor:
        r"""Estimate reported positions without bias, up to the rounding to windows.

        For :math:`s = e^{\epsilon / 2}`, the variance of the estimate of a position p is
        :math:`(2 p - 1)^2 / (4 (s - 1)) + (s + 3) / (12 (s - 1)^2)` up to the rounding. It reads
        released values only, and may lie below 0 or above 1.
        """
        return (reports.double() - self.middle) / (self.slope * self.starts)

    def reports_of(self, estimates: Tensor) -> Tensor:
        """Reports that :meth:`estimates` was called on."""
        return (estimates * (self.slope * self.starts) + self.middle).round().long()

    def log_likelihood(self, reports: Tensor, shares: Tensor) -> Tensor:
        """Logarithm of the probability of each report, given the position of its value."""
        first = self.starts_of(shares)
        is_inside = (reports >= first) & (reports < first + self.width)
        chances = (RATE_DENOMINATOR - self.rate) / self.starts, self.rate / self.width
        logs = torch.tensor(chances, dtype=torch.double).log()
        return logs[is_inside.long()] - math.log(RATE_DENOMINATOR)


def piecewise_law(epsilon: float, cells: int = CELLS) -> PiecewiseLaw:
    r"""Find the window and its probability for a cost of epsilon.

    Wang et al. have windows of a share :math:`1 / (e^{\epsilon / 2} + 1)` of the range, with the
    probability :math:`e^{\epsilon / 2} / (e^{\epsilon / 2} + 1)`. The width is rounded to whole
    cells, and the probability follows from the width: the largest that :func:`cost_of_piecewise`
    allows, rounded down by more than any error of floating-point numbers.

    Args:
        epsilon: Cost of one report, positive and finite.
        cells: Number of cells of the range.

    Raises:
        Refusal: If epsilon is out of range, or too small to leave a signal.
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise Refusal(f"epsilon must be positive and finite, got {epsilon}")
    width = min(max(round(cells * _sigmoid(-epsilon / 2)), 1), cells // 2)
    # Up by one for the rounding to an integer, and by one for errors of floating-point numbers.
    outside = math.floor(RATE_DENOMINATOR * _sigmoid(math.log(cells / width - 1) - epsilon)) + 2
    law = PiecewiseLaw(cells, width, RATE_DENOMINATOR - outside)
    if law.slope <= 0:
        raise Refusal(f"epsilon {epsilon:.2g} of one number is too small")
    return law


def cost_of_piecewise(num_reports: int, each: float) -> float:
    r"""Epsilon of the reports of some numbers of one client, each at its own cost: the sum.

    A number of a client is moved into its range and rounded to one of K - w + 1 windows of w out of
    K cells; this is a function of the client's data, without randomness. The report is a uniform
    cell of the window with probability p, and else a uniform cell outside. A cell thus has the
    probability :math:`p / w` if it lies in the window and :math:`(1 - p) / (K - w)` if not,
    whatever the window is. Between any two graphs, the probability of a cell changes by the factor
    1, r or 1 / r, with

    .. math:: r = \frac{p}{1 - p} \cdot \frac{K - w}{w}.

    :func:`piecewise_law` takes p as a whole multiple of :math:`2^{-40}` such that :math:`1 \le r
    \le e^\epsilon`. The factor is attained by two windows, one of which has the cell. Reports of
    several numbers have independent draws, so their factors are multiplied, also if the
    numbers are functions of each other.

    Only uniform integers are drawn, and the released number is an integer. There are no gaps
    between floating-point numbers that depend on the data; the estimate
    of :meth:`PiecewiseLaw.estimates` is a function of the release.

    Args:
        num_reports: Number of reported numbers, public.
        each: Cost of one number.
    """
    return num_reports * each


def piecewise(read: LedgerEntry, cells: int = CELLS) -> Callable[[Tensor, NoiseSource], Tensor]:
    """Law that reports F numbers of each client, each at the cost epsilon / F.

    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
    2019, Algorithm 2, on a grid of cells. The clients hold disjoint data, so the ledger books
    the cost of one of them. A second call is a second release.

    The private value holds positions of the numbers in their public ranges, from 0 to 1, shape
    ``(G, F)``. A value out of range is moved to the nearer end, and NaN to the middle. The released
    value holds cells of the same shape, from 0 to ``cells`` - 1.

    Args:
        read: Read of one client's graph, see :func:`piecewise_entry`, of finite epsilon.
        cells: Number of cells of a range.

    Raises:
        Refusal: If an argument is out of range, or if the read protects something else.
    """
    if read.relation is not Relation.LOCAL_GRAPH:
        raise Refusal(
            f"the piecewise mechanism protects the relation {Relation.LOCAL_GRAPH.value!r}, and "
            f"the read is of {read.relation.value!r}"
        )
    law = piecewise_law(read.event.pure_epsilon / int(read.sensitivity), cells)

    def draw(shares: Tensor, noise: NoiseSource) -> Tensor:
        first = law.starts_of(shares).cpu()
        size = first.numel()
        is_inside = torch.from_numpy(noise.integers(RATE_DENOMINATOR, size) < law.rate)
        inside = first.flatten() + torch.from_numpy(noise.integers(law.width, size))
        outside = torch.from_numpy(noise.integers(law.starts, size))
        outside += law.width * (outside >= first.flatten())
        return torch.where(is_inside, inside, outside).view_as(first)

    return draw


def piecewise_entry(key: str, name: str, epsilon: float, count: int) -> LedgerEntry:
    """Entry of the reports of ``count`` numbers of each client, at the joint cost epsilon."""
    return LedgerEntry(
        key=key,
        name=name,
        relation=Relation.LOCAL_GRAPH,
        event=Pure(epsilon),
        sensitivity=count,
        proof=cost_of_piecewise.__name__,
    )


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(max(x, -700.0)) / (1 + math.exp(x))
