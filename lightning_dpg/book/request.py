"""What a run asks of a book, and whether it is let in."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lightning_dpg.book.database import BookError
from lightning_dpg.book.filter import Rule, Spending, passes
from lightning_dpg.book.rows import DataSet, Run, spendings
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.events import LedgerEntry


class Request(NamedTuple):
    """A run that asks for a reservation.

    Attributes:
        method: Name of its method.
        settings: Digest of the method's settings.
        budget: What its ledger is held to.
        plan: All releases of the run, as a function of its budget.
        edges: Fingerprint of its edges.
        folder: Folder of the run, if any.
        journal: Its journal, if any.
        before: What the ledger of a resumed run holds at its start.
        previous: Journal of the run that this one continues, if any.
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


def continued(earlier: Sequence[Run], request: Request) -> Run | None:
    """The run on the same data that a request continues."""
    previous = None if request.previous is None else str(request.previous.absolute())
    return next((run for run in earlier if previous and run.journal == previous), None)


def family_of(earlier: Sequence[Run], request: Request) -> int | None:
    """Family that a request joins.

    The ledger of a resumed run holds all releases of the family to its budget. Where that budget is
    another one, it may have been chosen by what was released, and the run counts as a new one.
    """
    before = continued(earlier, request)
    return before.family if before is not None and before.budget == request.budget else None


def largest_epsilon(known: DataSet, earlier: Sequence[Run], request: Request) -> float:
    """Largest epsilon at which a run is let in; 0 if there is none that its method can keep."""
    low, high, found = 0.0, request.budget.epsilon, 0.0
    for _ in range(12):
        middle = (low + high) / 2
        budget = Budget(middle, request.budget.delta)
        try:
            tried = request._replace(budget=budget)
            asked = Spending(budget, places(earlier, tried)[0])
        except BudgetTooSmall:
            low = middle
            continue
        if rule_of(known, earlier, asked, family_of(earlier, tried)) is None:
            high = middle
        else:
            low = found = middle
    return found


def check(known: DataSet, request: Request, entries: Sequence[LedgerEntry]) -> None:
    """Refuse a run of another relation, one without protection, and one beyond its own budget."""
    for entry in entries:
        if entry.relation is not known.relation:
            raise BookError(
                f"{known.name} is registered with the relation {known.relation}, and "
                f"{request.method} protects the relation {entry.relation}\n"
                "epsilons of two relations are never added: register the data under another name "
                f"with --relation {entry.relation}"
            )
        if not entry.event.protects:
            raise BookError(
                f"{known.name}: {request.method} reads the data without protection, which no total "
                f"affords: {entry.event.why_void}"
            )
    if not composition.fits(entries, request.budget):
        raise BookError(f"{request.method} plans more than its own budget")


def places(earlier: Sequence[Run], request: Request) -> tuple[list[LedgerEntry], list[int]]:
    """Releases to reserve, and how many of their steps are booked at once."""
    plan = request.plan(request.budget)
    if not plan and not request.before:
        raise BookError(
            f"{request.method} plans no release, and a book reserves whole plans: the method has to "
            "say in plan() what it spends"
        )
    left = [(entry.event, entry.steps) for entry in request.before]
    planned = []
    for entry in plan:
        steps = entry.steps
        for place, (event, done) in enumerate(left):
            used = min(steps, done) if event == entry.event else 0
            left[place] = event, done - used
            steps -= used
        if steps:
            planned.append(replace(entry, steps=steps))
    before = [] if continued(earlier, request) else list(request.before)
    return [*before, *planned], [*(entry.steps for entry in before), *(0 for _ in planned)]


def rule_of(
    known: DataSet, earlier: Sequence[Run], asked: Spending, family: int | None
) -> Rule | None:
    """Rule by which a run is let in; None if it is not.

    Args:
        known: The data set.
        earlier: Its runs.
        asked: What the run would count.
        family: Family that it joins, if any.
    """
    counted = spendings(earlier)
    if counted:
        own = counted.pop(family) if family in counted else Spending(asked.budget, [])
        asked = Spending(asked.budget, [*own.entries, *asked.entries])
        fits = passes(known.total, known.rule, [*counted.values(), asked])
        return known.rule if fits else None
    rules: tuple[Rule, Rule] = ("split", "sum")
    return next((rule for rule in rules if passes(known.total, rule, [asked])), None)
