"""Check of a run's plan against its budget before the first event, with one composition."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall, smallest_epsilon
from lightning_dpg.privacy.calibration import max_steps
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.ledger import PrivacyLedger

_MOST_STEPS = 10**9

Plan = Callable[[Budget, int], list[LedgerEntry]]
"""Every event of a whole run, from its budget and the number of its private steps."""

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


def keeps(plan: Plan, budget: Budget, steps: int) -> bool:
    """Return whether a plan fits a budget; the check books nothing."""
    try:
        entries = plan(budget, steps)
    except BudgetTooSmall:
        return False
    if not entries:
        return True
    ledger = PrivacyLedger(entries[0].relation)
    ledger.budget = budget
    return ledger.affords(*entries)


def check_plan(plan: Plan, budget: Budget, steps: int, name: str, cheaper: str | None) -> None:
    """Refuse a budget that a plan exceeds.

    Args:
        plan: Plan of a method.
        budget: Budget of the run.
        steps: Private steps of the whole run.
        name: Name of the method.
        cheaper: Other ways to make the plan fit, to follow "or".

    Raises:
        MisconfigurationException: If the plan spends more. It names the smallest epsilon that the
            plan keeps at this delta.
    """
    if math.isinf(budget.epsilon) or keeps(plan, budget, steps):
        return
    least = smallest_epsilon(
        lambda epsilon: keeps(plan, Budget(epsilon, budget.delta), steps), budget.epsilon
    )
    if least is None:
        raise MisconfigurationException(
            f"no privacy.epsilon pays for {name} at privacy.delta {budget.delta:g}: raise delta"
        )
    raise MisconfigurationException(
        f"privacy.epsilon {budget.epsilon:g} at delta {budget.delta:g} does not pay for all that "
        f"{name} releases\nset it to {least:g} or more" + (f", or {cheaper}" if cheaper else "")
    )


def prove_steps(ledger: PrivacyLedger, step: LedgerEntry, limit: float) -> None:
    """Compose all remaining steps of a run once; no step then needs a composition of its own.

    Args:
        ledger: Ledger of the run.
        step: Cost of one step.
        limit: Largest number of remaining steps.
    """
    budget = ledger.budget
    if budget is None or math.isinf(budget.epsilon) or limit < 1:
        return
    event = step.event
    if not isinstance(event, Gaussian):
        return
    count = max_steps(
        budget,
        event.noise_multiplier,
        sample_rate=event.sample_rate,
        other=ledger.entries,
        limit=int(min(limit, _MOST_STEPS)),
    )
    if count:
        ledger.affords(replace(step, steps=count))


def check_same_steps(ledger: PrivacyLedger, step: LedgerEntry) -> None:
    """Refuse a resumed run whose noise or sample rate differs from that of its released steps.

    Settings of a resumed run can follow from its releases. Composition of costs that are fixed in
    advance does not cover that; a filter does, such as that of a budget book over several runs.

    Args:
        ledger: Ledger of the run.
        step: Cost of the next step.

    Raises:
        MisconfigurationException: If the steps differ. Nothing is booked.
    """
    for booked in ledger.entries:
        before, now = booked.event, step.event
        if booked.name != step.name or not isinstance(before, Gaussian) or before == now:
            continue
        if isinstance(now, Gaussian):
            raise MisconfigurationException(
                f"{booked.steps} steps had noise_multiplier {before.noise_multiplier:.15g} and "
                f"sample_rate {before.sample_rate:.15g}, and the resumed run has "
                f"{now.noise_multiplier:.15g} and {now.sample_rate:.15g}\n"
                "noise and sample rate cannot change when a run resumes: the guarantee covers only "
                "costs fixed in advance\nrestore both values, or start a new run"
            )
