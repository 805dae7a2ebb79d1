"""Budgets of further runs: the largest epsilon with which the book lets in several equal ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lightning_dpg.book.filter import Spending
from lightning_dpg.book.projection import OPEN
from lightning_dpg.book.request import rule_of
from lightning_dpg.book.rows import DataSet, Planned, Run, spendings
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.composition import entry_of
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure

COUNTS = (1, 2, 4, 12)
"""Numbers of further releases that are planned by default."""

_MOST_EPSILON = 1e4


class Steps(NamedTuple):
    """Gaussian steps of a run.

    Attributes:
        sample_rate: Probability that a step draws a record.
        count: Number of steps.
    """

    sample_rate: float = 1.0
    count: int = 1


class Share(NamedTuple):
    """One of several equal further runs.

    Attributes:
        releases: Number of runs.
        budget: Largest budget of each; an epsilon of 0 if the book lets in none.
        noise_multiplier: Noise of its Gaussian steps; None for a pure release.
    """

    releases: int
    budget: Budget
    noise_multiplier: float | None


def pure_share(known: DataSet, runs: Sequence[Run], releases: int) -> Share:
    """Largest epsilon of each of several equal pure releases.

    Args:
        known: The data set.
        runs: Its runs.
        releases: Number of further runs.
    """

    def fits(epsilon: float) -> bool:
        entry = replace(entry_of(Pure(epsilon), 1), relation=known.relation)
        return _lets_in(known, runs, Spending(Budget(epsilon, 0.0), [entry]), releases)

    return Share(releases, Budget(_largest(fits, digits=4), 0.0), None)


def gaussian_share(
    known: DataSet, runs: Sequence[Run], releases: int, steps: Steps, delta: float | None = None
) -> Share:
    """Largest epsilon of each of several equal runs of Gaussian steps, and their noise.

    Args:
        known: The data set.
        runs: Its runs.
        releases: Number of further runs.
        steps: Steps of each run.
        delta: Delta of each run; by default that of the total, or an equal part of the rest where
            the first run took all of delta.
    """
    delta = _delta_of(known, runs, releases) if delta is None else delta
    if not 0 < delta < 1:
        return Share(releases, Budget(0.0, 0.0), None)

    def fits(epsilon: float) -> bool:
        budget = Budget(epsilon, delta)
        try:
            asked = Spending(budget, [_entry(known, budget, steps)])
        except BudgetTooSmall:
            return True  # no noise is enough for a tiny epsilon, and a larger one may do
        return _lets_in(known, runs, asked, releases)

    budget = Budget(_largest(fits, digits=3), delta)
    try:
        noise = _entry(known, budget, steps).noise_multiplier if budget.epsilon else None
    except BudgetTooSmall:
        return Share(releases, Budget(0.0, delta), None)
    return Share(releases, budget, noise)


def _entry(known: DataSet, budget: Budget, steps: Steps) -> LedgerEntry:
    sigma = calibrate_noise_multiplier(budget, sample_rate=steps.sample_rate, steps=steps.count)
    return replace(
        entry_of(Gaussian(sigma, steps.sample_rate), steps.count), relation=known.relation
    )


def _delta_of(known: DataSet, runs: Sequence[Run], releases: int) -> float:
    counted = spendings(runs)
    if not counted or known.rule == "split":
        return known.total.delta
    rest = known.total.delta - math.fsum(each.cost.delta for each in counted.values())
    return max(rest, 0.0) / releases


def _lets_in(known: DataSet, runs: Sequence[Run], asked: Spending, releases: int) -> bool:
    """Whether equal runs are let in one after another, by the rule that the first one gets.

    Costs only grow: if the last run passes, so do all between it and the first.
    """
    rule = rule_of(known, runs, asked, None)
    if rule is None or releases == 1:
        return rule is not None
    first = 1 + max((run.number for run in runs), default=0)
    between = [_reserved(known, asked, first + place) for place in range(releases - 1)]
    return rule_of(replace(known, rule=rule), [*runs, *between], asked, None) is not None


def _reserved(known: DataSet, asked: Spending, number: int) -> Run:
    """A run as the book would reserve it."""
    return Run(
        number=number,
        family=number,
        dataset=known.name,
        method="",
        settings="",
        folder="",
        journal=None,
        who="",
        edges="",
        budget=asked.budget,
        before=[],
        opened="",
        closed=None,
        outcome=OPEN,
        release=None,
        planned=[Planned(entry, 0) for entry in asked.entries],
    )


def _largest(fits: Callable[[float], bool], digits: int) -> float:
    """Largest epsilon of some significant digits that fits; 0 if there is none from 1e-4 on."""
    power = -4
    while power < math.log10(_MOST_EPSILON) and fits(10.0 ** (power + 1)):
        power += 1
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
