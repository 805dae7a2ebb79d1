"""Budgets of further runs: the largest epsilon at which the book accepts several equal runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from lightning_dpg.book.filter import Spending, Together
from lightning_dpg.book.request import rule_beside
from lightning_dpg.book.rows import DataSet
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.composition import entry_of
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure, Relation

COUNTS = (1, 2, 4, 12)
"""Numbers of further releases that are planned by default."""

_LEAST_POWER, _MOST_POWER = -4, 4  # of ten, for an epsilon


class Share(NamedTuple):
    """One of several equal further runs.

    Attributes:
        releases: Number of runs.
        budget: Largest budget of each; an epsilon of 0 if the book accepts none.
        noise_multiplier: Noise of most of its Gaussian steps; None without such steps.
    """

    releases: int
    budget: Budget
    noise_multiplier: float | None


def pure_release(epsilon: float, relation: Relation) -> LedgerEntry:
    """A release of pure epsilon that stands for any such release."""
    return replace(entry_of(Pure(epsilon), 1), relation=relation)


def share(
    dataset: DataSet,
    earlier: Together,
    releases: int,
    plan: Callable[[Budget], Sequence[LedgerEntry]],
    delta: float,
) -> Share:
    """Find the largest epsilon at which the book accepts several equal runs.

    Args:
        dataset: The data set, as one total sees it.
        earlier: Cost of its runs.
        releases: Number of further runs.
        plan: All releases of a run, as a function of its budget.
        delta: Delta of each run.
    """

    def fits(epsilon: float) -> bool:
        budget = Budget(epsilon, delta)
        try:
            run = Spending(budget, plan(budget))
        except BudgetTooSmall:
            return True  # no noise keeps so little, and a larger epsilon may do
        return rule_beside(dataset, None, earlier, run, releases) is not None

    largest = Budget(_largest(fits, dataset.total.epsilon, digits=3 if delta else 4), delta)
    try:
        entries = plan(largest) if largest.epsilon else []
    except BudgetTooSmall:
        return Share(releases, Budget(0.0, delta), None)
    return Share(releases, largest, _noise(entries))


def usual_deltas(dataset: DataSet, earlier: Together, releases: int) -> list[float]:
    """Deltas of equal further runs that are worth a try.

    The Renyi filter counts noise, not the delta of a run: that delta may be as large as the total's.
    The sum accepts equal parts of its own share of delta.
    """
    spent = math.fsum(earlier.deltas)
    if earlier.deltas and dataset.rule == "sum":
        return _positive((dataset.total.delta - spent) / releases)
    part = (dataset.total.delta / 2 - spent) / releases
    return _positive(dataset.total.delta, part)


def _positive(*deltas: float) -> list[float]:
    return [delta for delta in deltas if delta > 0]


def _noise(entries: Sequence[LedgerEntry]) -> float | None:
    steps = [
        (entry.steps, entry.event.noise_multiplier)
        for entry in entries
        if isinstance(entry.event, Gaussian)
    ]
    return max(steps, key=itemgetter(0))[1] if steps else None


def _largest(fits: Callable[[float], bool], start: float, digits: int) -> float:
    """Largest epsilon that fits, with so many significant digits; 0 if 1e-4 does not fit."""
    power = math.floor(math.log10(start))
    while power < _MOST_POWER and fits(10.0 ** (power + 1)):
        power += 1
    while power > _LEAST_POWER and not fits(10.0**power):
        power -= 1
    low, high = 10 ** (digits - 1), 10**digits
    exponent = power - digits + 1

    def number(units: int) -> float:
        return float(f"{units}e{exponent}")

    if not fits(number(low)):
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(number(middle)):
            low = middle
        else:
            high = middle
    return number(low)
