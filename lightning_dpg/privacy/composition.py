"""Composition: epsilon and delta of several releases together, from above.

Three bounds are proved, and the smallest counts. Choosing it costs nothing, as all are functions of
public numbers.

* Renyi DP: curves add up, and are converted once.
* Where no release is sampled: the exact curve of Gaussian DP beside the sum of the pure epsilons.
* Privacy loss distributions (:mod:`lightning_dpg.privacy.loss_distributions`), the tightest and, for
  sampled releases, the slowest: some milliseconds.

A release of (epsilon, delta) is no worse than one that gives all away with probability delta and
is of pure epsilon else (Kairouz, Oh, Viswanath, "The composition theorem for differential
privacy", 2015). It composes as a pure one, and delta is added to that of all releases.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve, smallest
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Event, Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.loss_distributions import composed_delta

PURE = "sum of pure epsilons"
"""Name of the accountant whose epsilon holds at any delta."""

APPROXIMATE = "sum of epsilons and of deltas"
"""Name of the accountant of pure releases beside some that may fail."""

_ROUNDING = 1e-12  # Shares of a budget add up to it but for the last digit.
_STEP_ERROR = 4e-12  # twenty times what rounding adds per step to the delta of loss distributions
_EPSILON_TOLERANCE = 1e-6
_MOST_NOISE = 1e12  # more noise on samples counts as this much, so its square is finite


def costs(entries: Sequence[LedgerEntry]) -> Counter[Event]:
    """Number of steps of each event, which alone decides the price of entries."""
    total: Counter[Event] = Counter()
    for entry in entries:
        total[entry.event] += entry.steps
    return total


def entry_of(event: Event, steps: int) -> LedgerEntry:
    """An entry of an event, to compose and not to book; a price is that of any relation."""
    return LedgerEntry(
        key="planned",
        name="planned",
        relation=Relation.EDGE,
        event=event,
        sensitivity=1.0,
        proof="none: nothing is released",
        steps=steps,
    )


def rdp(entries: Sequence[LedgerEntry]) -> Curve:
    """Renyi curve at ``ORDERS``."""
    return sum((entry.curve() for entry in entries), np.zeros_like(ORDERS))


def total_delta(entries: Sequence[LedgerEntry]) -> float:
    """Probability at most with which some release fails and gives all away."""
    return sum(entry.total_delta for entry in entries)


def quick_delta(entries: Sequence[LedgerEntry], epsilon: float) -> float:
    """Delta at ``epsilon`` by Renyi DP and, where nothing is sampled, by Gaussian DP."""
    delta = accounting.rdp_to_delta(rdp(entries), epsilon)
    closed = _without_sampling(entries)
    if closed is not None:
        mu, pure = closed
        if pure <= epsilon * (1 + _ROUNDING):
            delta = min(delta, accounting.gdp_delta(mu, max(epsilon - pure, 0.0)))
    return min(delta + total_delta(entries), 1.0)


def quick_epsilon(entries: Sequence[LedgerEntry], delta: float) -> float:
    """Epsilon at ``delta`` by Renyi DP and, where nothing is sampled, by Gaussian DP."""
    delta -= total_delta(entries)
    if delta < 0:
        return math.inf
    epsilon = accounting.rdp_to_epsilon(rdp(entries), delta)
    closed = _without_sampling(entries)
    if closed is not None:
        mu, pure = closed
        epsilon = min(epsilon, pure + accounting.gdp_epsilon(mu, delta))
    return epsilon


def tight_delta(entries: Sequence[LedgerEntry], epsilon: float, resolution: float) -> float:
    """Delta at ``epsilon`` by privacy loss distributions.

    Args:
        entries: The releases.
        epsilon: Where delta is asked for.
        resolution: Delta of interest.
    """
    pure: list[tuple[float, int]] = []
    sampled: list[tuple[float, float, int]] = []
    squared_mu: list[float] = []
    for event, steps in costs(entries).items():
        if math.isinf(event.pure_epsilon + event.squared_mu):
            return 1.0
        if isinstance(event, Gaussian) and event.sample_rate < 1:
            noise = min(event.noise_multiplier, _MOST_NOISE)
            sampled.append((noise, event.sample_rate, steps))
        elif isinstance(event, Gaussian):
            squared_mu.append(steps * event.squared_mu)
        else:
            pure.append((event.pure_epsilon, steps))
    delta = composed_delta(
        epsilon,
        mu=math.sqrt(math.fsum(squared_mu)),
        pure=sorted(pure),
        sampled=tuple(sorted(sampled)),
        resolution=resolution,
    )
    return min(delta + total_delta(entries), 1.0)


def fits(entries: Sequence[LedgerEntry], budget: Budget) -> bool:
    """Return whether any of the bounds proves that releases together keep a budget."""
    epsilon, delta = budget
    if math.isinf(epsilon):
        return True
    if not any(entry.event.sample_rate < 1 for entry in entries):
        if quick_delta(entries, epsilon) <= delta:
            return True
        is_open = delta and _has_noise(entries)
        return bool(is_open and tight_delta(entries, epsilon, delta) <= delta)
    # Renyi curves of sampled releases take longer than loss distributions, and help only where many
    # steps or a tiny delta make the rounding errors of these count.
    if not delta:
        return False
    tight = tight_delta(entries, epsilon, delta)
    is_sharp = tight < 1 and _STEP_ERROR * sum(entry.steps for entry in entries) <= delta
    return tight <= delta or (not is_sharp and quick_delta(entries, epsilon) <= delta)


def headline(entries: Sequence[LedgerEntry], delta: float) -> tuple[float, str]:
    """The smallest epsilon that any accountant proves at ``delta``, and its name."""
    epsilon, failed = quick_epsilon(entries, delta), total_delta(entries)
    rest = max(delta - failed, 0.0)  # a negative rest makes epsilon infinite
    name = "RDP"
    if epsilon != accounting.rdp_to_epsilon(rdp(entries), rest):
        name = "GDP" if _has_noise(entries) else APPROXIMATE if failed else PURE
    if not rest or not math.isfinite(epsilon) or not _has_noise(entries):
        return epsilon, name

    def holds(value: float) -> bool:
        return tight_delta(entries, value, delta) <= delta

    if name == "GDP" and not any(e.pure_epsilon for e in entries):
        return epsilon, name  # which is exact
    if epsilon > _EPSILON_TOLERANCE and holds(epsilon * (1 - _EPSILON_TOLERANCE)):
        precise = smallest(holds, epsilon, _EPSILON_TOLERANCE)
        shorter = float(f"{precise:.5g}")  # of a budget that is spent to the last digit, the budget
        return (shorter if shorter < precise and holds(shorter) else precise), "PLD"
    return epsilon, name


def _has_noise(entries: Sequence[LedgerEntry]) -> bool:
    """Return whether there is Gaussian noise; else the sum of pure epsilons holds at any delta."""
    return any(isinstance(entry.event, Gaussian) for entry in entries)


def _without_sampling(entries: Sequence[LedgerEntry]) -> tuple[float, float] | None:
    """Gaussian-DP parameter and sum of epsilons, or None if an entry is sampled."""
    if any(entry.event.sample_rate < 1 for entry in entries):
        return None
    mu = math.sqrt(sum(entry.squared_mu for entry in entries))
    return mu, math.fsum(entry.pure_epsilon for entry in entries)
