"""All remaining private steps of a run, proved at once."""

import math
from collections.abc import Sequence
from dataclasses import replace

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.privacy.calibration import max_steps
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.ledger import PrivacyLedger

_MOST_STEPS = 10**9


def prove_steps(ledger: PrivacyLedger, steps: Sequence[LedgerEntry], limit: float) -> None:
    """Compose all remaining steps of a run once; no step then needs a composition of its own.

    Args:
        ledger: Ledger of the run.
        steps: Costs of one step.
        limit: Largest number of remaining steps.

    Raises:
        MisconfigurationException: If released steps of a resumed run had other noise.
    """
    for step in steps:
        _check_same_steps(ledger, step)
    if ledger.affords():
        for step in steps:
            _prove_step(ledger, step, limit)


def _prove_step(ledger: PrivacyLedger, step: LedgerEntry, limit: float) -> None:
    budget = ledger.budget_of(step.relation)
    if budget is None or math.isinf(budget.epsilon) or limit < 1:
        return
    event = step.event
    if not isinstance(event, Gaussian):
        return
    count = max_steps(
        budget,
        event.noise_multiplier,
        sample_rate=event.sample_rate,
        other=ledger.of(step.relation),
        limit=int(min(limit, _MOST_STEPS)),
    )
    if count:
        ledger.affords(replace(step, steps=count))


def _check_same_steps(ledger: PrivacyLedger, step: LedgerEntry) -> None:
    """Refuse a resumed run whose noise or sample rate differs from that of its released steps.

    Settings of a resumed run can follow from its releases. Composition of costs that are fixed in
    advance does not cover that; a filter does, such as that of a budget book over several runs.

    Args:
        ledger: Ledger of the run.
        step: Cost of the next step.

    Raises:
        MisconfigurationException: If the steps differ. Nothing is booked.
    """
    for booked in ledger.of(step.relation):
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
