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
    beyond,
    has_noise,
    passes,
    pure_epsilon_left,
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
        in_any_case: Pure epsilon of all its releases that holds without the condition; None if none
            is proved.
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
    in_any_case: float | None = None


class Asked(NamedTuple):
    """Cost of an accepted request against the total.

    Attributes:
        spending: Its own budget, and the releases to reserve.
        booked: How many steps of each are booked at once: made, and in no book so far.
        before: Releases that other runs count, and that its ledger holds or gets as unseen ones.
        unseen: Releases that the run it continues has booked, and that its ledger does not show.
        family: Number of the run that it continues with the same budget and plan, if any.
    """

    spending: Spending
    booked: Sequence[int]
    before: Sequence[LedgerEntry]
    unseen: Sequence[LedgerEntry] = ()
    family: int | None = None


def asked(earlier: Sequence[Run], request: Request) -> Asked:
    """Cost of a request against the total.

    A resumed run shares the budget of the run that it continues if both together release no more than
    that one planned: the plan was fixed before the first of these releases. Where the budget or the
    plan is another one, or where two runs go on from one checkpoint, it counts as a new run.

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
    made = [entry for run in family for entry in run.booked]
    counted = [LedgerEntry.from_dict(entry) for entry in family[0].before] if family else []
    new = beyond(request.before, [*counted, *made])
    before = beyond(request.before, new)
    booked = [entry.steps for entry in new]
    if last is not None and last.budget == request.budget:
        closed = [entry for run in family if not run.is_open for entry in run.booked]
        unseen = beyond([*counted, *closed], request.before)
        entries = [*new, *beyond(plan, [*request.before, *unseen])]
        both = [*(entry for run in family for entry in run.counted), *entries]
        if composition.costs(both) <= composition.costs(family[0].plan):
            places = [*booked, *[0] * (len(entries) - len(new))]
            counted_by_others = [*before, *unseen]  # the journal is to show both
            spending = Spending(request.budget, entries)
            return Asked(spending, places, counted_by_others, unseen, last.family)
    entries = [*new, *beyond(plan, request.before)]
    places = [*booked, *[0] * (len(entries) - len(new))]
    return Asked(Spending(request.budget, entries), places, before)


def continued(earlier: Sequence[Run], request: Request) -> Run | None:
    """Find the run that a request continues: the last one on the same data with its journal."""
    previous = None if request.previous is None else str(request.previous.absolute())
    return next((run for run in reversed(earlier) if previous and run.journal == previous), None)


def largest_epsilon(known: DataSet, earlier: Sequence[Run], request: Request) -> float:
    """Largest epsilon, of four digits, at which a run is accepted; 0 if there is none.

    Args:
        known: The data set.
        earlier: Its runs.
        request: The run that is refused at its own epsilon.
    """
    parts = cache(lambda family: _parts(earlier, family))
    others = parts(None)[1]
    pure = pure_left(known, others)
    low, high, found = 0.0, request.budget.epsilon, 0.0
    middle = _four_digits(pure * (1 - 1e-3))  # near to the answer where the run is of pure epsilon
    for _ in range(24):
        if low < middle < high:
            tried = request._replace(budget=Budget(middle, request.budget.delta))
            try:
                one = asked(earlier, tried)
                is_let_in = rule_beside(known, *parts(one.family), one.spending) is not None
            except BudgetTooSmall:
                low = middle
            else:
                low, high = (middle, high) if is_let_in else (low, middle)
                found = middle if is_let_in else found
        middle = _four_digits(math.sqrt(low * high) if low else high / 2)
        if not low < middle < high:
            break
    return found


def pure_left(known: DataSet, counted: Together) -> float:
    """Largest epsilon at which one more pure release is accepted.

    Args:
        known: The data set.
        counted: What its runs count.
    """
    return pure_epsilon_left(known.total, known.rule if counted.epsilons else "sum", counted)


def _four_digits(value: float) -> float:
    """The nearest number of four significant digits, as it is printed."""
    return float(f"{value:.4g}")


def check(known: DataSet, request: Request, entries: Sequence[LedgerEntry]) -> None:
    """Refuse a run of another relation or record, without protection, or beyond its own budget."""
    for entry in entries:
        if entry.relation is not known.relation:
            raise BookError(
                f"{known.name} is registered with the relation {known.relation}, and "
                f"{request.method} protects the relation {entry.relation}\n"
                "epsilons of two relations are never added: register the data under another name "
                f"with --relation {entry.relation}"
            )
        is_of_edges = known.relation is Relation.EDGE
        if is_of_edges and entry.record == _DIRECTED != known.record:
            raise BookError(
                f"{known.name} is registered with the record {known.record!r}, and {request.method} "
                f"protects one {_DIRECTED} only, of which an undirected one can be two\n"
                "register the data as directed, or drop the directions: undirected: true"
            )
        if not entry.event.protects:
            raise BookError(
                f"{known.name}: {request.method} reads the data without protection, which no total "
                f"affords: {entry.why_void}"
            )
    # The delta of much Gaussian noise is smaller than any number of the machine, and is not 0.
    is_exceeded = request.budget.delta == 0 and has_noise(entries)
    if is_exceeded or not composition.fits(entries, request.budget):
        raise BookError(f"{request.method} plans more than its own budget")


def rule_of(known: DataSet, earlier: Sequence[Run], one: Asked) -> Rule | None:
    """Rule that accepts a run; None if no rule does.

    Args:
        known: The data set.
        earlier: Its runs.
        one: What the run would count.
    """
    return rule_beside(known, *_parts(earlier, one.family), one.spending)


def rule_beside(
    known: DataSet, own: Spending | None, others: Together, asked: Spending, times: int = 1
) -> Rule | None:
    """Rule that accepts one or several equal runs; None if no rule does.

    Costs only grow: if the last run passes, so do all between it and the first, whose rule is that of
    all.

    Args:
        known: The data set.
        own: What the family counts that the run joins, if any.
        others: What all other families count.
        asked: What each run would count.
        times: Number of runs.
    """
    whole = asked if own is None else own._replace(entries=[*own.entries, *asked.entries])
    if own is not None or others.epsilons:
        rules: tuple[Rule, ...] = (known.rule,)
    else:
        rules = ("split", "sum")
    one = others.plus(whole)
    rule = next((rule for rule in rules if passes(known.total, rule, one)), None)
    if rule is None or times == 1:
        return rule
    return rule if passes(known.total, rule, one.plus(asked, times - 1)) else None


def _parts(earlier: Sequence[Run], family: int | None) -> tuple[Spending | None, Together]:
    """What a family counts, and what all others count together."""
    counted = spendings(earlier)
    own = None if family is None else counted.pop(family, None)
    return own, together(counted.values())
