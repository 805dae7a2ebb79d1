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
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve, smallest
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.loss_distributions import composed_delta

T = TypeVar("T", float, Curve)

PURE = "sum of pure epsilons"
"""Name of the accountant whose epsilon holds at any delta."""

APPROXIMATE = "sum of epsilons and of deltas"
"""Name of the accountant of pure releases beside some that may fail."""

_ROUNDING = 1e-12  # Shares of a budget add up to it but for the last digit.
_STEP_ERROR = 4e-12  # twenty times what rounding adds per step to the delta of loss distributions
_EPSILON_TOLERANCE = 1e-6
_MOST_NOISE = 1e12  # more noise on samples counts as this much, so that its square is finite


Cost = tuple[str, float, float, float, float]
"""Mechanism, noise multiplier, epsilon, delta and sample rate: all that a step's price depends on."""


def costs(entries: Sequence[LedgerEntry]) -> Counter[Cost]:
    """How many steps there are of each cost."""
    total: Counter[Cost] = Counter()
    for e in entries:
        total[(e.mechanism, e.noise_multiplier, e.epsilon, e.delta, e.sample_rate)] += e.steps
    return total


def entry_of(cost: Cost, steps: int) -> LedgerEntry:
    """An entry of a cost, to compose and not to book; a price is that of any relation."""
    mechanism, noise_multiplier, epsilon, delta, sample_rate = cost
    return LedgerEntry(
        name="planned",
        relation=Relation.EDGE,
        mechanism=mechanism,  # type: ignore[arg-type]  # that of an entry
        sensitivity=1.0,
        proof="none: nothing is released",
        noise_multiplier=noise_multiplier,
        epsilon=epsilon,
        delta=delta,
        sample_rate=sample_rate,
        steps=steps,
    )


def composed(entries: Sequence[LedgerEntry], cost: Callable[[LedgerEntry], T], zero: T) -> T:
    """Add costs, and over the parts of one group take the largest (order by order)."""
    total = zero
    groups: dict[str, dict[str, T]] = {}
    for entry in entries:
        if entry.partition is None:
            total = total + cost(entry)
        else:
            group, part = entry.partition
            parts = groups.setdefault(group, {})
            parts[part] = parts.get(part, zero) + cost(entry)
    for parts in groups.values():
        largest = zero
        for part_cost in parts.values():
            largest = np.maximum(largest, part_cost)
        total = total + largest
    return total


def rdp(entries: Sequence[LedgerEntry]) -> Curve:
    """Renyi curve at ``ORDERS``."""
    return composed(entries, LedgerEntry.curve, np.zeros_like(ORDERS))


def failure(entries: Sequence[LedgerEntry]) -> float:
    """Probability at most with which some release gives all away."""
    return composed(entries, LedgerEntry.failure, 0.0)


def quick_delta(entries: Sequence[LedgerEntry], epsilon: float) -> float:
    """Delta at ``epsilon`` by Renyi DP and, where nothing is sampled, by Gaussian DP."""
    delta = accounting.rdp_to_delta(rdp(entries), epsilon)
    closed = _without_sampling(entries)
    if closed is not None:
        mu, pure = closed
        if pure <= epsilon * (1 + _ROUNDING):
            delta = min(delta, accounting.gdp_delta(mu, max(epsilon - pure, 0.0)))
    return min(delta + failure(entries), 1.0)


def quick_epsilon(entries: Sequence[LedgerEntry], delta: float) -> float:
    """Epsilon at ``delta`` by Renyi DP and, where nothing is sampled, by Gaussian DP."""
    delta -= failure(entries)
    if delta < 0:
        return math.inf
    epsilon = accounting.rdp_to_epsilon(rdp(entries), delta)
    closed = _without_sampling(entries)
    if closed is not None:
        mu, pure = closed
        epsilon = min(epsilon, pure + accounting.gdp_epsilon(mu, delta))
    return epsilon


def tight_delta(entries: Sequence[LedgerEntry], epsilon: float, resolution: float) -> float:
    """Delta at ``epsilon`` by privacy loss distributions; those of disjoint parts add up, too.

    Args:
        entries: The releases.
        epsilon: Where delta is asked for.
        resolution: Delta of interest.
    """
    pure: list[tuple[float, int]] = []
    sampled: list[tuple[float, float, int]] = []
    squared_mu = 0.0
    for (mechanism, noise, cost, _, rate), steps in sorted(costs(entries).items()):
        if mechanism == "non_private" or (
            mechanism != "pure" and mechanism != "approximate" and not noise
        ):
            return 1.0
        if mechanism == "gaussian" and rate < 1:
            sampled.append((min(noise, _MOST_NOISE), rate, steps))
        elif mechanism == "gaussian":
            squared_mu += steps / noise**2
        else:
            pure.append((1 / noise if mechanism == "laplace" else cost, steps))
    delta = composed_delta(
        epsilon,
        mu=math.sqrt(squared_mu),
        pure=pure,
        sampled=tuple(sampled),
        resolution=resolution,
    )
    return min(delta + failure(entries), 1.0)


def fits(entries: Sequence[LedgerEntry], budget: Budget) -> bool:
    """Whether releases keep a budget together by any of the bounds."""
    epsilon, delta = budget
    if math.isinf(epsilon):
        return True
    if not any(entry.sample_rate < 1 for entry in entries):
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
    epsilon, failed = quick_epsilon(entries, delta), failure(entries)
    left = max(delta - failed, 0.0)  # less than none left makes epsilon infinite
    name = "RDP"
    if epsilon != accounting.rdp_to_epsilon(rdp(entries), left):
        gaussian = any(entry.mechanism == "gaussian" for entry in entries)
        name = "GDP" if gaussian else APPROXIMATE if failed else PURE
    if not left or not math.isfinite(epsilon) or not _has_noise(entries):
        return epsilon, name

    def holds(value: float) -> bool:
        return tight_delta(entries, value, delta) <= delta

    if name == "GDP" and not composed(entries, LedgerEntry.pure_epsilon, 0.0):
        return epsilon, name  # which is exact
    if epsilon > _EPSILON_TOLERANCE and holds(epsilon * (1 - _EPSILON_TOLERANCE)):
        found = smallest(holds, epsilon, _EPSILON_TOLERANCE)
        shorter = float(f"{found:.5g}")  # of a budget that is spent to the last digit, the budget
        return (shorter if shorter < found and holds(shorter) else found), "PLD"
    return epsilon, name


def _has_noise(entries: Sequence[LedgerEntry]) -> bool:
    """Whether there is Gaussian noise; the sum of pure epsilons holds at any delta and is kept."""
    return any(entry.mechanism == "gaussian" for entry in entries)


def _without_sampling(entries: Sequence[LedgerEntry]) -> tuple[float, float] | None:
    """Gaussian-DP parameter and sum of epsilons, or None if an entry is sampled."""
    if any(entry.sample_rate < 1 for entry in entries):
        return None
    mu = math.sqrt(composed(entries, LedgerEntry.squared_mu, 0.0))
    if all(entry.partition is None for entry in entries):
        return mu, math.fsum(entry.pure_epsilon() for entry in entries)
    return mu, composed(entries, LedgerEntry.pure_epsilon, 0.0)
