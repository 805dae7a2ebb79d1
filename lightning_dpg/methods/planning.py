"""Check of a run's plan against its budget before the first event, with one composition."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytorch_lightning as pl
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.privacy.budget import Budget, BudgetTooSmall, smallest_epsilon
from lightning_dpg.privacy.calibration import max_steps
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger, Relation

_MOST_STEPS = 10**9

Plan = Callable[[Budget, int], list[LedgerEntry]]
"""Every event of a whole run, from its budget and the number of its private steps."""


def keeps(plan: Plan, budget: Budget, steps: int) -> bool:
    """Whether a plan fits a budget; the check books nothing."""
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
    """Compose all remaining steps of a run once, so that each step needs no composition of its own.

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


class PlannedModule(pl.LightningModule):
    """Base of private methods for their budget: the ledger, the plan and the check.

    Attributes:
        ledger: Releases so far.
        relation: Neighboring relation of the guarantee.
        adds_noise: Whether the method protects anything.
    """

    relation: Relation = Relation.EDGE
    adds_noise: ClassVar[bool] = True
    ledger: PrivacyLedger

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan every event of a whole run: the final content of the ledger.

        A pure function of the settings, of public facts and of its arguments, which books and draws
        nothing. Releases take their noise and epsilons from the plan, so that planned and spent
        costs agree. A method whose noise is a setting plans as many steps as fit the budget.

        Args:
            budget: Budget of the run; an infinite epsilon adds no noise.
            steps: Private steps of the whole run.

        Raises:
            BudgetTooSmall: If no amount of noise keeps the budget.
        """
        return []

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next training step."""
        return []

    def prove_steps(self) -> None:
        """Compose the releases and all remaining steps once, instead of at each step."""
        if self.ledger.affords():
            left = self.trainer.estimated_stepping_batches - self.trainer.global_step
            for entry in self.step_entries():
                prove_steps(self.ledger, entry, left)

    def planned_steps(self) -> int:
        """Private steps of the whole run, one per batch."""
        steps = self.trainer.estimated_stepping_batches
        if steps == float("inf"):
            raise MisconfigurationException(
                "noise_multiplier: auto needs the number of steps in advance: set "
                "trainer.max_epochs, or give a number as noise_multiplier"
            )
        return int(steps)

    def unprotected(self, name: str, why: str) -> LedgerEntry:
        """Build the entry of a read without noise, which only an infinite budget allows."""
        return LedgerEntry(
            name=name,
            relation=self.relation,
            mechanism="non_private",
            sensitivity=float("inf"),
            proof=why,
        )

    @property
    def budget(self) -> Budget:
        """Budget of the run.

        Raises:
            MisconfigurationException: If there is none.
        """
        if self.ledger.budget is None:
            raise MisconfigurationException(
                f"{type(self).__name__} needs a budget: give the privacy section, or "
                "PrivacyAccountant among the callbacks"
            )
        self._check_settings(self.ledger.budget)  # also if the budget was set without accept_budget
        return self.ledger.budget

    def accept_budget(self, budget: Budget, steps: int = 1) -> None:
        """Hold the ledger to a budget, after one :meth:`check_budget`."""
        if self.ledger.budget != budget:
            self.check_budget(budget, steps)
            self.ledger.budget = budget

    def delta_setting(self) -> str | None:
        """Setting, if any, by which a method of pure epsilon spends a delta."""
        return None

    def unprotected_setting(self) -> str | None:
        """Setting, if any, that protects nothing; the method's name if it never protects."""
        if not self.adds_noise:
            return type(self).__name__
        return "noise_multiplier: 0" if self.hparams.get("noise_multiplier") == 0 else None

    def cheaper_settings(self) -> str | None:
        """Changes of settings that fit a smaller budget, to follow "or"; None if no change does."""
        return None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Refuse a budget that the plan exceeds, before a run makes a folder.

        Args:
            budget: Budget of the run.
            steps: Private steps of the whole run, as far as known: with enough noise, any number of
                steps costs as little as one.

        Raises:
            MisconfigurationException: If the plan spends more, or protects nothing. It names the
                smallest epsilon that the settings keep.
        """
        self._check_settings(budget)
        check_plan(self.plan, budget, steps, type(self).__name__, self.cheaper_settings())

    def _check_settings(self, budget: Budget) -> None:
        """Refuse settings that protect nothing, or that spend a delta of a budget without one."""
        if math.isinf(budget.epsilon):
            return
        unprotected = self.unprotected_setting()
        if unprotected is not None:
            kind = "value" if self.adds_noise else "method"
            raise MisconfigurationException(
                f"{unprotected} protects nothing, which no finite budget affords\n"
                f"take another {kind}, or set privacy.epsilon to .inf"
            )
        setting = self.delta_setting()
        if setting is not None and not budget.delta:
            raise MisconfigurationException(
                f"{setting} spends a delta, and the budget has none\nset privacy.delta below one "
                "over the number of pairs of nodes, which is public"
            )
