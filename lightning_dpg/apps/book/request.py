"""Requests of runs to a book, and the rule that accepts them."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.apps.book.filter import (
    Rule,
    RunCosts,
    Spending,
    costs,
    has_noise,
    passes,
    pure_epsilon_left,
    subtract,
    together,
)
from lightning_dpg.apps.book.state import DataSet, Run, spendings
from lightning_dpg.errors import BookError
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall, digits_down
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.meaning import MAX_EDGES

_DIRECTED = "directed edge"


class Request(NamedTuple):
    """A run that asks for a reservation.

    Attributes:
        method: Name of its method.
        settings: Digest of the method's settings.
        budget: Budget of its ledger under the relation of the data set.
        plan: All releases of the run, as a function of this budget.
        edges: Fingerprint of its edges.
        folder: Folder of the run, if any.
        journal: Its journal, if any.
        before: Entries of a resumed run's ledger at its start.
        previous: Journal of the run that this one continues, if any.
        condition: Condition of its guarantee; None if it always holds.
        other_budgets: Budgets of its ledger for further relations.
        contents: Fingerprints of what these relations protect, where they are known.
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
    other_budgets: Mapping[Relation, Budget] = {}
    contents: Mapping[Relation, str] = {}


class Charge(NamedTuple):
    """Cost of a request against the totals.

    Attributes:
        entries: Releases to reserve, of all relations.
        booked: Steps of each release that are booked at once: they were made, and are in no book yet.
        before: Releases that other runs count: those in the run's ledger, and the lost ones.
        lost: Releases that an earlier run of the family has booked, and that the ledger does not show.
        family: Number of the first run of the family that it joins; None for a new family. A family
            is a run and the runs that continue it with the same budget and plan.
    """

    entries: Sequence[LedgerEntry]
    booked: Sequence[int]
    before: Sequence[LedgerEntry]
    lost: Sequence[LedgerEntry] = ()
    family: int | None = None


def charge_of(earlier: Sequence[Run], request: Request) -> Charge:
    """Charge a request against the totals.

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
    before, booked = subtract(request.before, new), [entry.steps for entry in new]

    def charge(left: Sequence[LedgerEntry], *others: Any) -> Charge:
        return Charge([*new, *left], [*booked, *[0] * len(left)], *others)

    if last is not None and (last.budget, last.other_budgets) == (
        request.budget,
        request.other_budgets,
    ):
        closed = [entry for run in family if not run.is_open for entry in run.booked]
        lost = subtract([*at_start, *closed], request.before)
        left = subtract(plan, [*request.before, *lost])
        both = [*(entry for run in family for entry in run.owed_entries), *new, *left]
        if costs(both) <= costs(family[0].plan):
            # The journal is to show what was counted by others and what is lost.
            return charge(left, [*before, *lost], lost, last.family)
    return charge(subtract(plan, request.before), before)


def spending_of(dataset: DataSet, request: Request, entries: Sequence[LedgerEntry]) -> Spending:
    """Cost of a run against one total.

    Args:
        dataset: The data set as this total sees it.
        request: The run.
        entries: Releases to reserve, of all relations.
    """
    relation = dataset.relation
    budget = request.other_budgets.get(relation, request.budget)
    return Spending(budget, [entry for entry in entries if entry.relation is relation])


def continued(earlier: Sequence[Run], request: Request) -> Run | None:
    """Find the run that a request continues: the last one on the same data with its journal."""
    previous = None if request.previous is None else str(request.previous.absolute())
    return next((run for run in reversed(earlier) if previous and run.journal == previous), None)


def largest_epsilon(dataset: DataSet, earlier: Sequence[Run], request: Request) -> float:
    """Largest epsilon, of four digits, at which a run is accepted; 0 if there is none.

    That of a further relation is what is left: its budgets are sums of pure epsilons, and a sum passes
    where one release of its epsilon does.

    Args:
        dataset: The data set, as one total sees it.
        earlier: Its runs.
        request: The run that is refused at its own epsilon.
    """
    parts = cache(lambda family: _parts(dataset, earlier, family))
    if dataset.relation in request.other_budgets:
        return float(digits_down(pure_left(dataset, parts(None)[1]), 4))

    def is_accepted(epsilon: float) -> bool:
        tried = request._replace(budget=Budget(epsilon, request.budget.delta))
        charge = charge_of(earlier, tried)
        spending = spending_of(dataset, tried, charge.entries)
        return accepting_rule(dataset, *parts(charge.family), spending) is not None

    return largest_fitting(is_accepted, request.budget.epsilon, digits=4)


_LEAST_POWER, _MOST_POWER = -6, 4  # of ten, for an epsilon


def largest_fitting(fits: Callable[[float], bool], start: float, digits: int) -> float:
    """Largest epsilon that fits, with so many significant digits; 0 if none does.

    Args:
        fits: Whether an epsilon fits. It may raise :class:`BudgetTooSmall` below those that do.
        start: Epsilon where the search begins.
        digits: Number of significant digits.
    """

    def is_below(epsilon: float) -> bool:
        try:
            return fits(epsilon)
        except BudgetTooSmall:
            return True  # no noise keeps so little, and a larger epsilon may do

    power = math.floor(math.log10(start))
    while power < _MOST_POWER and is_below(10.0 ** (power + 1)):
        power += 1
    while power > _LEAST_POWER and not is_below(10.0**power):
        power -= 1
    units = range(10 ** (digits - 1), 10**digits)
    exponent = power - digits + 1
    place = bisect_left(units, True, key=lambda unit: not is_below(float(f"{unit}e{exponent}")))
    largest = float(f"{units[place - 1]}e{exponent}") if place else 0.0
    try:
        return largest if largest and fits(largest) else 0.0
    except BudgetTooSmall:
        return 0.0


def pure_left(dataset: DataSet, costs: RunCosts) -> float:
    """Largest epsilon at which one more pure release is accepted.

    Args:
        dataset: The data set.
        costs: Cost of its runs.
    """
    return pure_epsilon_left(dataset.total, dataset.rule if costs.epsilons else "sum", costs)


def check(dataset: DataSet, request: Request, entries: Sequence[LedgerEntry]) -> None:
    """Refuse a run of another relation or record, without protection, or beyond its own budgets."""
    if (
        Relation.ATTRIBUTES in request.other_budgets
        and Relation.ATTRIBUTES not in dataset.relations
    ):
        raise BookError(
            f"{dataset.name} has no total for private columns of nodes, which {request.method} reads\n"
            f"an owner sets it: python -m lightning_dpg budget rows {dataset.name} --epsilon E"
        )
    for entry in entries:
        _check_relation(dataset, request.method, entry)
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
                f"can pay for: {entry.why_void}"
            )
    budgets = {dataset.relation: request.budget, **request.other_budgets}
    for relation in {entry.relation for entry in entries}:
        reads, budget = (
            [each for each in entries if each.relation is relation],
            budgets.get(relation),
        )
        # The delta of much Gaussian noise is smaller than any number of the machine, and is not 0.
        if (
            budget is None
            or (budget.delta == 0 and has_noise(reads))
            or not composition.fits(reads, budget)
        ):
            raise BookError(f"{request.method} plans more than its own budget")


def _check_relation(dataset: DataSet, method: str, entry: LedgerEntry) -> None:
    """Refuse a read under a relation without a total, or with another bound on the edges of a node."""
    most = entry.public.get(MAX_EDGES)
    if entry.relation not in dataset.relations:
        bound = "" if most is None else f" --max-edges {most}"
        raise BookError(
            f"{dataset.name} is registered with the relation {dataset.relation}, and "
            f"{method} protects the relation {entry.relation}\n"
            "epsilons of two relations are never added: register the data under another name "
            f"with --relation {entry.relation}{bound}"
        )
    if entry.relation is Relation.EDGES_OF_NODE and most != dataset.max_edges:
        hides = "does not say how many" if most is None else f"hides at most {most}"
        raise BookError(
            f"{dataset.name} is registered for at most {dataset.max_edges} edges of one node, and "
            f"{method} {hides}\n"
            "epsilons of different numbers are no guarantee for either: set model.init_args.max_edges "
            f"to {dataset.max_edges}"
        )


def rule_of(
    dataset: DataSet, earlier: Sequence[Run], family: int | None, spending: Spending
) -> Rule | None:
    """Rule that accepts a run; None if no rule does.

    Args:
        dataset: The data set, as one total sees it.
        earlier: Its runs.
        family: Family that the run joins, if any.
        spending: Cost of the run against this total.
    """
    return accepting_rule(dataset, *_parts(dataset, earlier, family), spending)


def accepting_rule(
    dataset: DataSet, own: Spending | None, others: RunCosts, spending: Spending, times: int = 1
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


def _parts(
    dataset: DataSet, earlier: Sequence[Run], family: int | None
) -> tuple[Spending | None, RunCosts]:
    """Cost of a family, and cost of all other families together."""
    by_family = spendings(earlier, dataset.relation)
    own = None if family is None else by_family.pop(family, None)
    return own, together(by_family.values())
