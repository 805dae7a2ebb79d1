"""Multi-bit encoder: report randomized signs of a few entries per row."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR
from lightning_dpg.privacy.noise import NoiseSource


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
    _check(shape, sizes, epsilon, reports_per_row, bounds)
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


def _check(
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
