"""Check of a run's plan against its budgets before the first event, with one composition each."""

import math
from collections.abc import Callable, Mapping, Sequence

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall, smallest_epsilon
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger

Budgets = Mapping[Relation, Budget]
"""Budget of each relation of a run; the relation of its guarantee comes first."""

Plan = Callable[[Budgets], list[LedgerEntry]]
"""Every event of a whole run, by its budgets."""

Reads = Mapping[str, LedgerEntry]
"""Planned reads of a run by their keys, in the order of the plan."""


def by_key(plan: Sequence[LedgerEntry]) -> Reads:
    """Planned reads by their keys."""
    return {read.key: read for read in plan}


def check_shares(**shares: float) -> None:
    """Refuse shares of a budget that are not positive, or that leave no positive rest.

    Raises:
        Refusal: If a share is out of range.
    """
    if not min(shares.values()) > 0 or not sum(shares.values()) < 1:
        names = ", ".join(f"{name} {share:g}" for name, share in shares.items())
        raise Refusal(f"shares must be positive and add up to less than 1, got {names}")


def exceeded(plan: Plan, budgets: Budgets) -> list[Relation]:
    """Relations whose budgets a plan exceeds; the check books nothing.

    A plan that finds no noise for its budgets does not say which one is too small: it may be any.
    """
    try:
        entries = plan(budgets)
    except BudgetTooSmall:
        return [relation for relation, each in budgets.items() if math.isfinite(each.epsilon)]
    main, *others = budgets
    ledger = PrivacyLedger(main)
    ledger.budget = budgets[main]
    ledger.beside = {relation: budgets[relation] for relation in others}
    return ledger.exceeded(*entries)


def check_plan(plan: Plan, budgets: Budgets, name: str, cheaper: str | None) -> None:
    """Refuse budgets that a plan exceeds.

    Args:
        plan: Plan of a method.
        budgets: Budgets of the run.
        name: Name of the method.
        cheaper: Other ways to make the plan fit the first budget, to follow "or".

    Raises:
        MisconfigurationException: If the plan spends more. It names each budget that is too small
            alone, with the smallest epsilon that the plan keeps at its delta.
    """
    if all(math.isinf(budget.epsilon) for budget in budgets.values()):
        return
    too_small = exceeded(plan, budgets)
    if not too_small:
        return
    least = {relation: _least(plan, budgets, relation) for relation in too_small}
    lines = []
    for relation, epsilon in least.items():
        if epsilon is None:
            continue
        is_main = relation not in _SETTINGS
        way = f", or {cheaper}" if cheaper and is_main else ""
        delta = f" at delta {budgets[relation].delta:g}" if is_main else ""
        what = f"all that {name} releases" if is_main else f"what {name} reads of private columns"
        lines.append(
            f"{_setting(relation)} {budgets[relation].epsilon:g}{delta} does not pay for {what}\n"
            f"set it to {epsilon:g} or more{way}"
        )
    raise MisconfigurationException("\n".join(lines or [_never(name, too_small, budgets)]))


_SETTINGS = {Relation.ATTRIBUTES: "privacy.row_epsilon"}
"""Setting of the epsilon of relations other than the guarantee's."""


def _setting(relation: Relation) -> str:
    return _SETTINGS.get(relation, "privacy.epsilon")


def _least(plan: Plan, budgets: Budgets, relation: Relation) -> float | None:
    """Smallest epsilon of one relation, the other budgets as they are, that a plan keeps."""
    epsilon, delta = budgets[relation]
    return smallest_epsilon(
        lambda tried: relation not in exceeded(plan, {**budgets, relation: Budget(tried, delta)}),
        epsilon,
    )


def _never(name: str, too_small: Sequence[Relation], budgets: Budgets) -> str:
    """Say that no epsilon of one relation alone pays for a plan."""
    if len(too_small) > 1:
        both = " and ".join(
            f"{_setting(relation)} {budgets[relation].epsilon:g}" for relation in too_small
        )
        return f"{both} do not pay for all that {name} releases: raise both"
    (relation,) = too_small
    if relation in _SETTINGS:
        return (
            f"no {_setting(relation)} pays for what {name} reads of private columns: it has no delta, "
            "and they are read with one"
        )
    delta = budgets[relation].delta
    return f"no privacy.epsilon pays for {name} at privacy.delta {delta:g}: raise delta"
