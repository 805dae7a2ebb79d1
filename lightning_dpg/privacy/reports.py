"""Reports that each record makes of itself: labels, signs of entries, and numbers of a bounded range.

Randomized response over k classes reports private labels. The multi-bit encoder reports randomized signs
of a few entries per row. The piecewise mechanism reports numbers with local differential privacy.
"""

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, Context, Decimal
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.private_columns import (
    LABEL_REPORTS,
    reported_label_sensitivity,
)

LABEL_DENOMINATOR = 2**62
"""Probabilities of reports are whole multiples of one over this."""
_DIGITS = Context(prec=60, Emax=MAX_EMAX)
_MARGIN = Decimal("1e-30")  # for the rounding of 60 digits
_MOST_EPSILON = 1000.0  # of a larger one the rates are the same
CELLS = 2**20
"""Cells of the range of a report."""


def label_reports_entry(epsilon: float, num_classes: int) -> LedgerEntry:
    """Entry of the reports of all labels.

    Args:
        epsilon: Cost; infinite reports the labels themselves.
        num_classes: Number k of classes (public).
    """
    return LedgerEntry.proved(
        LABEL_REPORTS,
        "reported labels of nodes",
        Pure(epsilon),
        reported_label_sensitivity,
        relation=Relation.ATTRIBUTES,
        record="label of one node",
        public={"classes": num_classes},
    )


def report_labels(read: LedgerEntry, num_classes: int) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Law that reports labels out of k classes, each one by randomized response.

    A label is reported as it is with the probability :math:`e^\epsilon / (e^\epsilon + k - 1)`, and as
    each other class with :math:`1 / (e^\epsilon + k - 1)`, independently of all other labels.

    Proof: neighbors differ in the label of one node, by the read's own proof, and all other reports
    have equal laws. Of the probabilities of a report under two labels, one is at most
    :math:`e^\epsilon` times the other: both are one of two rates, of which the larger is
    :math:`e^\epsilon` times the smaller one. The drawn rates are whole multiples of :math:`2^{-62}`: the
    smaller one is rounded up and k - 1 of it are taken off the larger one, so that their ratio only
    becomes smaller. One fair integer decides on a report. No floating-point number is drawn or
    compared, and the number of draws does not depend on the labels.

    A value that is none of the k classes is reported as each of them with the probability 1 / k. That
    lies between both rates, so that such a value is as hard to tell from a label as labels are from
    each other. Refusing it would show that some node has it.

    The private value holds the labels as integers, shape ``(K,)``: those from 0 to k - 1 are classes.
    The released one holds the reports, of the same shape and all of them classes.

    Args:
        read: Read whose proof says that neighbors differ in one label, see
            :func:`label_reports_entry`; an infinite epsilon changes no label and protects nothing.
        num_classes: Number k of classes (public).

    Raises:
        Refusal: If there are not two classes, or epsilon leaves no signal.

    References:
        Kairouz, Bonawitz, Ramage, "Discrete distribution estimation under local privacy", 2016,
        equation 1.
    """
    if read.sensitivity != 1:
        raise Refusal(f"{read.name}: the sensitivity must be 1, got {read.sensitivity}")
    _, other = report_rates(read.event.pure_epsilon, num_classes)

    def draw(labels: Tensor, noise: NoiseSource) -> Tensor:
        values = labels.numpy()
        coins = noise.integers(LABEL_DENOMINATOR, len(values))
        anything = noise.integers(num_classes, len(values))
        others = coins // max(other, 1)
        others += others >= values  # the other classes are numbered without the own one
        changes = coins < (num_classes - 1) * other
        is_class = (values >= 0) & (values < num_classes)
        reports = np.where(is_class, np.where(changes, others, values), anything)
        return torch.from_numpy(reports)

    return draw


def report_rates(epsilon: float, num_classes: int) -> tuple[int, int]:
    """Probabilities of reporting the own class, and each other one, in units of :math:`2^{-62}`.

    Args:
        epsilon: Cost of a report.
        num_classes: Number k of classes.

    Raises:
        Refusal: If there are not two classes, or epsilon leaves no signal.
    """
    if num_classes < 2:
        raise Refusal(f"labels need two classes or more, got {num_classes}")
    if not epsilon > 0:
        raise Refusal(f"epsilon must be positive, got {epsilon}")
    if math.isinf(epsilon):
        return LABEL_DENOMINATOR, 0
    odds = _DIGITS.exp(Decimal(min(epsilon, _MOST_EPSILON)))
    rate = _DIGITS.divide(Decimal(LABEL_DENOMINATOR), _DIGITS.add(odds, Decimal(num_classes - 1)))
    other = math.ceil(_DIGITS.add(rate, _MARGIN))
    own = LABEL_DENOMINATOR - (num_classes - 1) * other
    if own <= other:
        raise Refusal(f"epsilon {epsilon:g} is too small for reports of {num_classes} classes")
    return own, other


def report_log_likelihoods(epsilon: float, num_classes: int) -> Tensor:
    """Log probability of each report given each class, shape ``(k, k)``; at most 0.

    Args:
        epsilon: Cost of a report; under an infinite one a report is the class.
        num_classes: Number k of classes.
    """
    own, other = (rate / LABEL_DENOMINATOR for rate in report_rates(epsilon, num_classes))
    logs = torch.full((num_classes, num_classes), other, dtype=torch.double)
    return logs.fill_diagonal_(own).log()


def cost_of_reports(num_reports: int, each: float) -> float:
    r"""Epsilon of the reports of some entries of one client, each at its own cost: the product.

    The reported entries are drawn independently of the values, so their law is the same for
    all clients with the same number of rows. Given the places, the signs are independent, and the
    sign of an entry in :math:`[\alpha, \beta]` is +1 with a probability from :math:`1 / (e^b + 1)`
    to :math:`e^b / (e^b + 1)`. Any two values change the probability of a sign by at most the
    factor :math:`e^b`, and k signs by :math:`e^{kb}`; it is attained if all entries change from one
    end to the other. The probabilities are whole multiples of :math:`2^{-40}` between two limits
    that add up to 1 and whose ratio is at most :math:`e^b`. Rounding therefore costs no privacy.

    Of a client with n rows of h entries, m of each row cost :math:`n m b`. All h of each cost
    :math:`n h b`, more by h / m; m of the whole matrix cost :math:`m b`, less by n. The encoder of rows
    (Sajadmanesh and Gatica-Perez, "Locally private graph neural networks", 2021) spends a budget of
    :math:`m b` on each row, which is n of them on a graph.

    Args:
        num_reports: Number of reported entries, public.
        each: Cost b of one entry.
    """
    return num_reports * each


def multi_bit(
    read: LedgerEntry,
    shape: Sequence[int],
    sizes: Tensor,
    *,
    epsilon: Tensor,
    reports_per_row: int,
    bounds: tuple[float, float],
) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Law that reports the signs of m random entries of each row, for all clients at once.

    Client k spends :math:`b = \epsilon_k / (m n_k)` on each entry. Jin and Chen, "Gromov-Wasserstein
    discrepancy with local differential privacy for distributed structural graphs", 2022, Algorithm
    1, of which this is the reading whose cost is epsilon: m of each row are reported, not m of all.

    The clients hold disjoint graphs; the ledger therefore books the largest of their epsilons. A
    second call is a second release and costs as much again: a caller that needs the reports twice
    keeps them.

    The private value holds the rows of all clients in their order, shape ``(N, h)``. A value out of
    bounds is moved to the nearer bound, and NaN to the middle. The released signs have the same shape
    and type int8; unreported entries are 0.

    Args:
        read: Read of one client's graph, see :func:`reports_entry`.
        shape: Shape ``(N, h)`` of the values (public).
        sizes: Number of rows :math:`n_k` of each client (public), shape ``(G,)``.
        epsilon: Cost for each client, public, positive and finite, shape ``(G,)``.
        reports_per_row: Number m of reported entries of each row.
        bounds: Ends :math:`\alpha < \beta` of the range of the values, public constants.

    Raises:
        Refusal: If an argument is out of range, or if the read says less than the reports cost.
    """
    _check_reports(shape, sizes, epsilon, reports_per_row, bounds)
    per_report = (epsilon.double() / (reports_per_row * sizes)).repeat_interleave(sizes)
    least = least_rate(per_report)
    if read != reports_entry(read.key, read.name, float(epsilon.max()), sizes, reports_per_row):
        raise Refusal(f"{read.name}: the entry is not that of these reports")
    low, high = bounds

    def draw(values: Tensor, noise: NoiseSource) -> Tensor:
        places = _draw_places(noise, len(values), values.shape[1], reports_per_row)
        chosen = values.double().nan_to_num(nan=(low + high) / 2).clamp(low, high).gather(1, places)
        rates = report_rate((chosen - low) / (high - low), least[:, None])
        draws = noise.integers(RATE_DENOMINATOR, rates.numel()).reshape(rates.shape)
        signs = torch.from_numpy(np.where(draws < rates.numpy(), 1, -1).astype(np.int8))
        return torch.zeros(values.shape, dtype=torch.int8).scatter_(1, places, signs)

    return draw


def reports_entry(
    key: str, name: str, epsilon: float, sizes: Tensor, reports_per_row: int
) -> LedgerEntry:
    """Entry of the reports of all clients.

    Args:
        key: Stable name of the read.
        name: What is read, for people.
        epsilon: Largest cost for a client.
        sizes: Number of rows of each client (public), shape ``(G,)``.
        reports_per_row: Number of reported entries of each row.
    """
    return LedgerEntry(
        key=key,
        name=name,
        relation=Relation.LOCAL_GRAPH,
        event=Pure(epsilon),
        sensitivity=int(sizes.max()) * reports_per_row,
        proof=cost_of_reports.__name__,
    )


def least_rate(report_epsilon: Tensor) -> Tensor:
    r"""Least probability of a sign, in units of :math:`2^{-40}`, rounded up: ``(N,)`` to ``(N,)``.

    Raises:
        Refusal: If an epsilon is too small to leave any signal.
    """
    least = (RATE_DENOMINATOR * torch.sigmoid(-report_epsilon.double())).floor().long() + 1
    if 2 * int(least.max()) >= RATE_DENOMINATOR:
        raise Refusal(f"epsilon {float(report_epsilon.min()):.2g} of one sign is too small")
    return least


def report_rate(share: Tensor, least: Tensor) -> Tensor:
    """Probability of +1, in units of :math:`2^{-40}`, by the position of a value in its range.

    Args:
        share: Position from 0 to 1.
        least: Result of :func:`least_rate`, of a shape that fits.
    """
    rate = least + (share * (RATE_DENOMINATOR - 2 * least)).round().long()
    return torch.minimum(torch.maximum(rate, least), RATE_DENOMINATOR - least)


def unbiased(
    reports: Tensor,
    sizes: Tensor,
    *,
    epsilon: Tensor,
    reports_per_row: int,
    bounds: tuple[float, float],
) -> Tensor:
    r"""Unbiased estimates of the reported values, :math:`(\alpha + \beta) / 2 + c H^*`.

    With :math:`c = h (\beta - \alpha) / (2m) \cdot (e^b + 1) / (e^b - 1)` each has the variance
    :math:`m c^2 / h - (H - (\alpha + \beta) / 2)^2`. It reads released values only.

    Args:
        reports: Signs of :func:`multi_bit`, shape ``(N, h)``.
        sizes: Number of rows of each client, as in :func:`multi_bit`.
        epsilon: Cost for each client, as in :func:`multi_bit`.
        reports_per_row: Number m of reported entries of each row.
        bounds: Ends of the range of the values.

    Returns:
        Estimates of shape ``(N, h)``, in double precision.
    """
    low, high = bounds
    per_report = (epsilon.double() / (reports_per_row * sizes)).repeat_interleave(sizes)
    slope = 1 - 2 * least_rate(per_report).double() / RATE_DENOMINATOR
    scale = reports.shape[1] * (high - low) / (2 * reports_per_row) / slope
    return (low + high) / 2 + scale[:, None] * reports.double()


def best_reports_per_row(epsilon: float, num_rows: int, width: int) -> int:
    """Number of entries per row that minimizes the largest variance, as far as is known.

    Sajadmanesh and Gatica-Perez, "Locally private graph neural networks", 2021, Proposition 3.6,
    for the share of epsilon that one of ``num_rows`` rows has.
    """
    return max(1, min(width, math.floor(epsilon / (2.18 * num_rows))))


def _check_reports(
    shape: Sequence[int],
    sizes: Tensor,
    epsilon: Tensor,
    reports_per_row: int,
    bounds: tuple[float, float],
) -> None:
    if shape[0] != int(sizes.sum()) or len(epsilon) != len(sizes):
        raise Refusal(
            f"{shape[0]} rows and {len(epsilon)} epsilons for {len(sizes)} clients with "
            f"{int(sizes.sum())} rows"
        )
    if not bool(((epsilon > 0) & epsilon.isfinite()).all()):
        raise Refusal(f"epsilon must be positive and finite, got {epsilon.tolist()}")
    if not 1 <= reports_per_row <= shape[1]:
        raise Refusal(f"reports_per_row must lie between 1 and {shape[1]}, got {reports_per_row}")
    if not bounds[0] < bounds[1]:
        raise Refusal(f"the lower bound must be less than the upper one, got {bounds}")


def _draw_places(noise: NoiseSource, rows: int, width: int, count: int) -> Tensor:
    """Draw ``count`` distinct columns of each row, uniformly over sets, ``(rows, count)``.

    Floyd's algorithm: column j is drawn from the first j + 1, and is j itself where that is taken.
    """
    places: NDArray[np.int64] = np.empty((rows, count), dtype=np.int64)
    for place, last in enumerate(range(width - count, width)):
        column = noise.integers(last + 1, rows)
        is_taken = (places[:, :place] == column[:, None]).any(axis=1)
        places[:, place] = np.where(is_taken, last, column)
    return torch.from_numpy(places)


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
