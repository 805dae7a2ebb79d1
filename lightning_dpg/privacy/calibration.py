"""Budgets turned into noise: the one place that solves for a noise multiplier or a number of steps.

All functions ask the composition of the ledger whether a plan fits. So what they return is what the
ledger affords, and the other way around.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from scipy.optimize import brentq

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.accounting import gdp_delta, smallest
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.composition import costs, entry_of, fits, tight_delta
from lightning_dpg.privacy.events import Event, Gaussian, LedgerEntry
from lightning_dpg.privacy.ledger import PrivacyLedger

_LARGEST = 1e12
_LOG_LARGEST = math.log(_LARGEST)
_FEW_STEPS = 10**5
_MAX_STEPS = 10**12
_MOST_STEPS = 10**9
# The solved noise is a little too large rather than the last digit too small.
_SLACK = 1 + 1e-9


def calibrate_gaussian(budget: Budget) -> float:
    """Smallest noise multiplier of one Gaussian release that spends the whole budget (analytic).

    Raises:
        Refusal: If no finite noise keeps the budget, or none is needed.
    """
    epsilon, delta = budget
    if epsilon <= 0 or not 0 < delta < 1:
        raise Refusal(f"no finite noise gives {epsilon=}, {delta=}")
    high = 1.0
    while gdp_delta(1 / high, epsilon) > delta:
        high *= 2
    return smallest(lambda sigma: gdp_delta(1 / sigma, epsilon) <= delta, high, 1e-10)


def calibrate_noise_multiplier(
    budget: Budget,
    *,
    sample_rate: float = 1.0,
    steps: int = 1,
    other: Sequence[LedgerEntry] = (),
) -> float:
    """Smallest noise multiplier with which Gaussian steps fit a budget beside other releases.

    Args:
        budget: That of the run; an infinite epsilon gives 0.
        sample_rate: Probability with which Poisson sampling draws a record in each step.
        steps: Number of steps; 0 gives 1, as any noise would do.
        other: All other releases that the budget pays for.

    Returns:
        Noise multiplier. Of sampled steps it is rounded up to five digits.

    Raises:
        BudgetTooSmall: If no amount of noise fits.
    """
    if math.isinf(budget.epsilon):
        return 0.0
    if steps == 0:
        return 1.0
    return _calibrated(budget, sample_rate, steps, _ordered(costs(other)))


def _ordered(events: Counter[Event]) -> tuple[tuple[Event, int], ...]:
    """The events in an order that their amounts alone decide, for the cache."""
    return tuple(sorted(events.items(), key=repr))


@lru_cache(maxsize=256)
def _calibrated(
    budget: Budget, sample_rate: float, steps: int, other: tuple[tuple[Event, int], ...]
) -> float:
    others = [entry_of(event, count) for event, count in other]

    def entries(sigma: float) -> list[LedgerEntry]:
        return [*others, entry_of(Gaussian(sigma, sample_rate), steps)]

    def fits_with(sigma: float) -> bool:
        return fits(entries(sigma), budget)

    if not fits_with(_LARGEST):
        raise BudgetTooSmall(f"no Gaussian noise fits {steps} steps into what is left of {budget}")
    if sample_rate < 1:
        noise = _by_loss_distributions(entries, budget)
        if noise is not None and fits_with(noise):
            return noise
    high = 1.0
    while not fits_with(high):
        high = min(2 * high, _LARGEST)
    if sample_rate == 1:
        return smallest(fits_with, high, 1e-8) * _SLACK
    return _rounded_up(smallest(fits_with, high, 5e-5))


def _by_loss_distributions(
    entries: Callable[[float], list[LedgerEntry]], budget: Budget
) -> float | None:
    """Noise multiplier, rounded up, at which the tightest bound is the budget's delta.

    Its logarithm is nearly a line in that of the noise, so few evaluations find it. None where
    rounding errors hide it; the caller asks whether the result fits.
    """
    if not budget.delta:
        return None

    def excess(log_sigma: float) -> float:
        delta = tight_delta(entries(math.exp(log_sigma)), budget.epsilon, budget.delta)
        return math.log(max(delta, 1e-300) / budget.delta)

    low, high = 0.0, 0.0
    while excess(high) > 0:
        low, high = high, high + 1
        if high > _LOG_LARGEST:
            return None
    while low == high or excess(low) <= 0:
        low, high = low - 1, low
        if low < -_LOG_LARGEST:
            return None
    root = brentq(excess, low, high, xtol=2e-5)
    return _rounded_up(math.exp(root + 3e-5))


def _rounded_up(sigma: float) -> float:
    """Five digits, which people can copy."""
    unit = 10.0 ** (math.floor(math.log10(sigma)) - 4)
    return max(sigma, round(math.ceil(sigma / unit) * unit, 12))


def max_steps(
    budget: Budget,
    noise_multiplier: float,
    *,
    sample_rate: float = 1.0,
    other: Sequence[LedgerEntry] = (),
    limit: int = _MAX_STEPS,
) -> int:
    """Largest number of Gaussian steps that fits a budget beside other releases.

    Args:
        budget: That of the run.
        noise_multiplier: Noise of a step.
        sample_rate: Probability with which Poisson sampling draws a record in each step.
        other: All other releases that the budget pays for.
        limit: No more than this.

    Returns:
        Number of steps; 0 where not even one fits.
    """

    def fit(count: int) -> bool:
        step = entry_of(Gaussian(noise_multiplier, sample_rate), count)
        return fits([*others, step], budget)

    others = [entry_of(event, count) for event, count in costs(other).items()]
    if limit <= _FEW_STEPS and limit and fit(limit):  # of most runs, all of them
        return limit
    low, high = 0, 1
    while high < limit and fit(high):
        low, high = high, 2 * high
    high = min(high, limit)
    if limit > low and fit(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if fit(middle):
            low = middle
        else:
            high = middle
    return low


def prove_steps(ledger: PrivacyLedger, steps: Sequence[LedgerEntry], limit: float) -> None:
    """Compose all remaining steps of a run once; no step then needs a composition of its own.

    Args:
        ledger: Ledger of the run.
        steps: Costs of one step.
        limit: Largest number of remaining steps.

    Raises:
        Refusal: If released steps of a resumed run had other noise.
    """
    for step in steps:
        _check_same_steps(ledger, step)
    if ledger.affords():
        for step in steps:
            _prove_step(ledger, step, limit)


def _prove_step(ledger: PrivacyLedger, step: LedgerEntry, limit: float) -> None:
    budget = ledger.budget_of(step.relation)
    if budget is None or math.isinf(budget.epsilon) or limit < 1:
        return
    event = step.event
    if not isinstance(event, Gaussian):
        return
    count = max_steps(
        budget,
        event.noise_multiplier,
        sample_rate=event.sample_rate,
        other=ledger.of(step.relation),
        limit=int(min(limit, _MOST_STEPS)),
    )
    if count:
        ledger.affords(replace(step, steps=count))


def _check_same_steps(ledger: PrivacyLedger, step: LedgerEntry) -> None:
    """Refuse a resumed run whose noise or sample rate differs from that of its released steps.

    Settings of a resumed run can follow from its releases. Composition of costs that are fixed in
    advance does not cover that; a filter does, such as that of a budget book over several runs.

    Args:
        ledger: Ledger of the run.
        step: Cost of the next step.

    Raises:
        Refusal: If the steps differ. Nothing is booked.
    """
    for booked in ledger.of(step.relation):
        before, now = booked.event, step.event
        if booked.name != step.name or not isinstance(before, Gaussian) or before == now:
            continue
        if isinstance(now, Gaussian):
            raise Refusal(
                f"{booked.steps} steps had noise_multiplier {before.noise_multiplier:.15g} and "
                f"sample_rate {before.sample_rate:.15g}, and the resumed run has "
                f"{now.noise_multiplier:.15g} and {now.sample_rate:.15g}\n"
                "noise and sample rate cannot change when a run resumes: the guarantee covers only "
                "costs fixed in advance\nrestore both values, or start a new run"
            )
