"""Requests of runs to a book, and the rule that accepts them."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lightning_dpg.book.filter import (
    Rule,
    Spending,
    Together,
    has_noise,
    passes,
    pure_epsilon_left,
    subtract,
    together,
)
from lightning_dpg.book.rows import DataSet, Run, spendings
from lightning_dpg.errors import BookError
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.events import LedgerEntry, Relation

_DIRECTED = "directed edge"


class Request(NamedTuple):
    """A run that asks for a reservation.

    Attributes:
        method: Name of its method.
        settings: Digest of the method's settings.
        budget: Budget of its ledger.
        plan: All releases of the run, as a function of its budget.
        edges: Fingerprint of its edges.
        folder: Folder of the run, if any.
        journal: Its journal, if any.
        before: Entries of a resumed run's ledger at its start.
        previous: Journal of the run that this one continues, if any.
        condition: Condition of its guarantee; None if it always holds.
        unconditional_epsilon: Pure epsilon of all its releases that holds without the condition;
            None if none is proved.
    """

    method: str
    settings: str
    budget: Budget
    plan: Callable[[Budget], Sequence[LedgerEntry]]
    edges: str
    folder: str = ""
    journal: Path | None = None
    before: Sequence[LedgerEntry] = ()
    previous: Path | None = None
    condition: str | None = None
    unconditional_epsilon: float | None = None


class Charge(NamedTuple):
    """Cost of a request against the total.

    Attributes:
        spending: Budget of the run, and the releases to reserve.
        booked: Steps of each release that are booked at once: they were made, and are in no book yet.
        before: Releases that other runs count: those in the run's ledger, and the lost ones.
        lost: Releases that an earlier run of the family has booked, and that the ledger does not show.
        family: Number of the first run of the family that it joins; None for a new family. A family
            is a run and the runs that continue it with the same budget and plan.
    """

    spending: Spending
    booked: Sequence[int]
    before: Sequence[LedgerEntry]
    lost: Sequence[LedgerEntry] = ()
    family: int | None = None


def charge_of(earlier: Sequence[Run], request: Request) -> Charge:
    """Charge a request against the total.

    A resumed run shares the budget of the run that it continues if both together release no more than
    the first one planned: that plan was fixed before the first release. Otherwise it counts as a new
    run: with another budget or plan, or if two runs go on from one checkpoint.

    Raises:
        BookError: If its method plans no release.
        BudgetTooSmall: If its method cannot keep the budget.
    """
    plan = request.plan(request.budget)
    if not plan and not request.before:
        raise BookError(
            f"{request.method} plans no release, and a book reserves whole plans: the method has to "
            "say in plan() what it spends"
        )
    last = continued(earlier, request)
    family = [] if last is None else [run for run in earlier if run.family == last.family]
    released = [entry for run in family for entry in run.booked]
    at_start = [LedgerEntry.from_dict(entry) for entry in family[0].before] if family else []
    new = subtract(request.before, [*at_start, *released])
    before = subtract(request.before, new)
    booked = [entry.steps for entry in new]
    if last is not None and last.budget == request.budget:
        closed = [entry for run in family if not run.is_open for entry in run.booked]
        lost = subtract([*at_start, *closed], request.before)
        entries = [*new, *subtract(plan, [*request.before, *lost])]
        both = [*(entry for run in family for entry in run.counted), *entries]
        if composition.costs(both) <= composition.costs(family[0].plan):
            places = [*booked, *[0] * (len(entries) - len(new))]
            counted_by_others = [*before, *lost]  # the journal is to show both
            spending = Spending(request.budget, entries)
            return Charge(spending, places, counted_by_others, lost, last.family)
    entries = [*new, *subtract(plan, request.before)]
    places = [*booked, *[0] * (len(entries) - len(new))]
    return Charge(Spending(request.budget, entries), places, before)


def continued(earlier: Sequence[Run], request: Request) -> Run | None:
    """Find the run that a request continues: the last one on the same data with its journal."""
    previous = None if request.previous is None else str(request.previous.absolute())
    return next((run for run in reversed(earlier) if previous and run.journal == previous), None)


def largest_epsilon(dataset: DataSet, earlier: Sequence[Run], request: Request) -> float:
    """Largest epsilon, of four digits, at which a run is accepted; 0 if there is none.

    Args:
        dataset: The data set.
        earlier: Its runs.
        request: The run that is refused at its own epsilon.
    """
    parts = cache(lambda family: _parts(earlier, family))
    others = parts(None)[1]
    pure = pure_left(dataset, others)
    low, high, largest = 0.0, request.budget.epsilon, 0.0
    middle = _four_digits(pure * (1 - 1e-3))  # near to the answer where the run is of pure epsilon
    for _ in range(24):
        if low < middle < high:
            tried = request._replace(budget=Budget(middle, request.budget.delta))
            try:
                charge = charge_of(earlier, tried)
                is_accepted = (
                    rule_beside(dataset, *parts(charge.family), charge.spending) is not None
                )
            except BudgetTooSmall:
                low = middle
            else:
                low, high = (middle, high) if is_accepted else (low, middle)
                largest = middle if is_accepted else largest
        middle = _four_digits(math.sqrt(low * high) if low else high / 2)
        if not low < middle < high:
            break
    return largest


def pure_left(dataset: DataSet, counted: Together) -> float:
    """Largest epsilon at which one more pure release is accepted.

    Args:
        dataset: The data set.
        counted: Cost of its runs.
    """
    return pure_epsilon_left(dataset.total, dataset.rule if counted.epsilons else "sum", counted)


def _four_digits(value: float) -> float:
    """Round to four significant digits, as they are printed."""
    return float(f"{value:.4g}")


def check(dataset: DataSet, request: Request, entries: Sequence[LedgerEntry]) -> None:
    """Refuse a run of another relation or record, without protection, or beyond its own budget."""
    for entry in entries:
        if entry.relation is not dataset.relation:
            raise BookError(
                f"{dataset.name} is registered with the relation {dataset.relation}, and "
                f"{request.method} protects the relation {entry.relation}\n"
                "epsilons of two relations are never added: register the data under another name "
                f"with --relation {entry.relation}"
            )
        is_of_edges = dataset.relation is Relation.EDGE
        if is_of_edges and entry.record == _DIRECTED != dataset.record:
            raise BookError(
                f"{dataset.name} is registered with the record {dataset.record!r}, and {request.method} "
                f"protects one {_DIRECTED} only, of which an undirected one can be two\n"
                "register the data as directed, or drop the directions: undirected: true"
            )
        if not entry.event.protects:
            raise BookError(
                f"{dataset.name}: {request.method} reads the data without protection, which no total "
                f"affords: {entry.why_void}"
            )
    # The delta of much Gaussian noise is smaller than any number of the machine, and is not 0.
    is_exceeded = request.budget.delta == 0 and has_noise(entries)
    if is_exceeded or not composition.fits(entries, request.budget):
        raise BookError(f"{request.method} plans more than its own budget")


def rule_of(dataset: DataSet, earlier: Sequence[Run], charge: Charge) -> Rule | None:
    """Rule that accepts a run; None if no rule does.

    Args:
        dataset: The data set.
        earlier: Its runs.
        charge: Cost of the run.
    """
    return rule_beside(dataset, *_parts(earlier, charge.family), charge.spending)


def rule_beside(
    dataset: DataSet, own: Spending | None, others: Together, spending: Spending, times: int = 1
) -> Rule | None:
    """Rule that accepts one or several equal runs; None if no rule does.

    Costs only grow. The rule of the first run is the rule of all, and if it accepts the last run, it
    accepts all runs between them.

    Args:
        dataset: The data set.
        own: Cost of the family that the run joins, if any.
        others: Cost of all other families.
        spending: Cost of each run.
        times: Number of runs.
    """
    whole = spending if own is None else own._replace(entries=[*own.entries, *spending.entries])
    if own is not None or others.epsilons:
        rules: tuple[Rule, ...] = (dataset.rule,)
    else:
        rules = ("split", "sum")
    one = others.plus(whole)
    rule = next((rule for rule in rules if passes(dataset.total, rule, one)), None)
    if rule is None or times == 1:
        return rule
    return rule if passes(dataset.total, rule, one.plus(spending, times - 1)) else None


def _parts(earlier: Sequence[Run], family: int | None) -> tuple[Spending | None, Together]:
    """Cost of a family, and cost of all other families together."""
    counted = spendings(earlier)
    own = None if family is None else counted.pop(family, None)
    return own, together(counted.values())
