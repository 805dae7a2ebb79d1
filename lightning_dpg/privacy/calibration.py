"""Budgets turned into noise: the one place that solves for a noise multiplier or a number of steps.

All functions ask the composition of the ledger whether a plan fits. So what they return is what the
ledger affords, and the other way around.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from lightning_dpg.privacy.accounting import gdp_delta, smallest
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger

_LARGEST = 1e12
_MAX_STEPS = 10**12
# The solved noise is a little too large rather than the last digit too small.
_SLACK = 1 + 1e-9


def calibrate_gaussian(budget: Budget) -> float:
    """Smallest noise multiplier of one Gaussian release that spends the whole budget (analytic).

    Raises:
        ValueError: If no finite noise keeps the budget, or none is needed.
    """
    epsilon, delta = budget
    if epsilon <= 0 or not 0 < delta < 1:
        raise ValueError(f"no finite noise gives {epsilon=}, {delta=}")
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
    fits_entry = _fits(budget, other)
    step = _step(other, sample_rate, steps)

    def fits(sigma: float) -> bool:
        return fits_entry(replace(step, noise_multiplier=sigma))

    if not fits(_LARGEST):
        raise BudgetTooSmall(f"no Gaussian noise fits {steps} steps into what is left of {budget}")
    high = 1.0
    while not fits(high):
        high *= 2
    if sample_rate == 1:
        return smallest(fits, high, 1e-8) * _SLACK
    sigma = smallest(fits, high, 5e-5)
    unit = 10.0 ** (math.floor(math.log10(sigma)) - 4)
    rounded = round(math.ceil(sigma / unit) * unit, 12)
    return rounded if fits(rounded) else sigma


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
    fits_entry = _fits(budget, other)
    step = replace(_step(other, sample_rate, 1), noise_multiplier=noise_multiplier)
    low, high = 0, 1
    while high < limit and fits_entry(replace(step, steps=high)):
        low, high = high, 2 * high
    high = min(high, limit)
    if limit > low and fits_entry(replace(step, steps=high)):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if fits_entry(replace(step, steps=middle)):
            low = middle
        else:
            high = middle
    return low


def laplace_tail_bound(epsilon: float, sensitivity: int, delta: float) -> int:
    r"""Number t that discrete Laplace noise falls below -t with probability ``delta`` at most.

    Noise of at most -t - 1 has the probability :math:`q^{t+1} / (1 + q)` with :math:`q = e^{-\epsilon
    / \Delta}`. The t at which :math:`q^t` is ``delta`` also covers the rounding of the rate.

    Args:
        epsilon: Cost of the noise; an infinite one falls short of nothing.
        sensitivity: Sensitivity of what is noised.
        delta: Probability, positive.
    """
    return 0 if math.isinf(epsilon) else math.ceil(-math.log(delta) * sensitivity / epsilon)


def _step(other: Sequence[LedgerEntry], sample_rate: float, steps: int) -> LedgerEntry:
    """Gaussian steps under the relation of the other releases."""
    return LedgerEntry(
        name="steps",
        relation=other[0].relation if other else Relation.EDGE,
        mechanism="gaussian",
        sensitivity=1.0,
        proof="none: nothing is released",
        noise_multiplier=1.0,
        sample_rate=sample_rate,
        steps=steps,
    )


def _fits(budget: Budget, other: Sequence[LedgerEntry]) -> Callable[[LedgerEntry], bool]:
    """Whether a budget affords an entry beside other ones."""
    ledger = PrivacyLedger(other[0].relation if other else Relation.EDGE)
    ledger.budget = budget
    return lambda entry: ledger.affords(*other, entry)


def remaining_noise_multiplier(ledger: PrivacyLedger) -> float:
    """Smallest noise multiplier of one Gaussian release that the ledger still affords.

    Raises:
        BudgetTooSmall: If no amount of noise fits.
        ValueError: If there is no budget.
    """
    if ledger.budget is None:
        raise ValueError("a ledger without a budget has no noise that spends it")
    return calibrate_noise_multiplier(ledger.budget, other=ledger.entries)
