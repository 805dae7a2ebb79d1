"""What a run asks of a book, and whether it is let in."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lightning_dpg.book.database import BookError
from lightning_dpg.book.filter import Rule, Spending, passes
from lightning_dpg.book.rows import DataSet, Run
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
        is_known: Whether this book has booked ``before`` already.
    """

    method: str
    settings: str
    budget: Budget
    plan: Callable[[Budget], Sequence[LedgerEntry]]
    edges: str
    folder: str = ""
    journal: Path | None = None
    before: Sequence[LedgerEntry] = ()
    is_known: bool = True


def largest_epsilon(known: DataSet, earlier: Sequence[Run], request: Request) -> float:
    """Largest epsilon at which a run is let in; 0 if there is none that its method can keep."""
    low, high, found = 0.0, request.budget.epsilon, 0.0
    for _ in range(12):
        middle = (low + high) / 2
        budget = Budget(middle, request.budget.delta)
        try:
            asked = Spending(budget, places(request._replace(budget=budget))[0])
        except BudgetTooSmall:
            low = middle
            continue
        if rule_of(known, earlier, asked) is None:
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


def places(request: Request) -> tuple[list[LedgerEntry], list[int]]:
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
    before = [] if request.is_known else list(request.before)
    return [*before, *planned], [*(entry.steps for entry in before), *(0 for _ in planned)]


def rule_of(known: DataSet, earlier: Sequence[Run], asked: Spending) -> Rule | None:
    """Rule by which a run is let in; None if it is not."""
    counted = [run.counted for run in earlier if run.counted.entries]
    if counted:
        return known.rule if passes(known.total, known.rule, [*counted, asked]) else None
    rules: tuple[Rule, Rule] = ("split", "sum")
    return next((rule for rule in rules if passes(known.total, rule, [asked])), None)
