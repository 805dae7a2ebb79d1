"""The ledger: which private releases were made, what they cost together, and whether to go on."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation

__all__ = ["Budget", "LedgerEntry", "PrivacyBudgetExceeded", "PrivacyLedger", "Relation"]

T = TypeVar("T", float, Curve)

PURE = "sum of pure epsilons"
"""Name of the accountant whose epsilon holds at any delta."""

APPROXIMATE = "sum of epsilons and of deltas"
"""Name of the accountant of pure releases beside some that may fail."""


class PrivacyBudgetExceeded(RuntimeError):
    """A release was refused because it would overspend the budget. Nothing was booked."""


def _compose(entries: Sequence[LedgerEntry], cost: Callable[[LedgerEntry], T], zero: T) -> T:
    """Add costs, and over the parts of one group take the largest (order by order)."""
    total = zero
    groups: dict[str, dict[str, T]] = {}
    for entry in entries:
        if entry.partition is None:
            total = total + cost(entry)
        else:
            group, part = entry.partition
            parts = groups.setdefault(group, {})
            parts[part] = parts.get(part, zero) + cost(entry)
    for parts in groups.values():
        largest = zero
        for part_cost in parts.values():
            largest = np.maximum(largest, part_cost)
        total = total + largest
    return total


class PrivacyLedger:
    """Books every read of the private data before it happens, and refuses to overspend.

    Releases compose as Renyi DP. Where no entry is sampled, the exact curve of Gaussian DP plus
    the sum of the pure epsilons is a second upper bound, and the smaller one counts.

    A release of (epsilon, delta) is no worse than one that gives all away with probability delta and
    is of pure epsilon else (Kairouz, Oh, Viswanath, "The composition theorem for differential
    privacy", 2015). It composes as a pure one, and delta is added to that of all releases.

    Attributes:
        relation: The one neighbouring relation of all entries.
        entries: What was released so far; equal successive releases under one key are one entry.
        budget: What may be spent; None refuses nothing.
        journal: File to which each release is written before it is booked, so that a run that was
            killed still knows what it released. A new file starts with what was booked before.
        observer: Receives the key and the noisy value of each release, for an audit.
    """

    def __init__(self, relation: Relation) -> None:
        """Start with nothing released."""
        self.relation = Relation(relation)
        self.entries: list[LedgerEntry] = []
        self.budget: Budget | None = None
        self.journal: Path | None = None
        self.observer: Callable[[str, Tensor], None] | None = None

    @property
    def steps(self) -> int:
        """Private training steps: those of all Gaussian entries that are sampled or repeated."""
        return sum(
            entry.steps
            for entry in self.entries
            if entry.mechanism == "gaussian" and (entry.sample_rate < 1 or entry.steps > 1)
        )

    @property
    def reasons(self) -> list[str]:
        """Why the guarantee is void; empty when it is not."""
        reasons = []
        for entry in self.entries:
            if entry.mechanism == "non_private":
                reasons.append(f"{entry.name}: {entry.proof}")
            elif np.isinf(entry.curve()).all():
                is_given = entry.mechanism in ("pure", "approximate")
                noise = entry.epsilon if is_given else entry.noise_multiplier
                reasons.append(f"{entry.name}: {entry.mechanism} {noise:g} protects nothing")
        return reasons

    def spend(self, entry: LedgerEntry) -> None:
        """Book a release that is about to be made.

        Raises:
            PrivacyBudgetExceeded: If the budget does not afford it; then nothing is booked.
            ValueError: If its relation is another one.
        """
        if not self.affords(entry) and self.budget is not None:
            epsilon, delta = self.budget
            raise PrivacyBudgetExceeded(
                f"{entry.name!r} would raise delta at epsilon={epsilon:g} from "
                f"{self.delta(epsilon):.3g} to {self.delta(epsilon, entry):.3g}; "
                f"the budget is {delta:.3g}"
            )
        if self.journal is not None:
            self._write(self.journal, entry)
        self._book(entry)

    def publish(self, key: str, noisy: Tensor) -> Tensor:
        """Return the noisy value of a paid release, after the observer, if any, has received it."""
        if self.observer is not None:
            self.observer(key, noisy)
        return noisy

    def last_entry(self, key: str) -> LedgerEntry:
        """The entry that was booked last under ``key``.

        Raises:
            KeyError: If there is none.
        """
        for entry in reversed(self.entries):
            if entry.key == key:
                return entry
        raise KeyError(key)

    def affords(self, *entries: LedgerEntry) -> bool:
        """Whether all of ``entries`` together still fit the budget."""
        self._check(entries)
        if self.budget is None or math.isinf(self.budget.epsilon):
            return True
        return self.delta(self.budget.epsilon, *entries) <= self.budget.delta

    def rdp(self, *extra: LedgerEntry) -> Curve:
        """Renyi curve at ``ORDERS`` of all releases and ``extra`` ones."""
        self._check(extra)
        return _compose([*self.entries, *extra], LedgerEntry.curve, np.zeros_like(ORDERS))

    def delta(self, epsilon: float, *extra: LedgerEntry) -> float:
        """Delta at ``epsilon`` of all releases and ``extra`` ones."""
        delta = accounting.rdp_to_delta(self.rdp(*extra), epsilon)
        closed = self._without_sampling(extra)
        if closed is not None:
            mu, pure = closed
            # Shares of a budget add up to it but for the last digit.
            if pure <= epsilon * (1 + 1e-12):
                delta = min(delta, accounting.gdp_delta(mu, max(epsilon - pure, 0.0)))
        return min(delta + self._failure(extra), 1.0)

    def epsilon(self, delta: float, *extra: LedgerEntry) -> float:
        """Epsilon at ``delta`` of all releases and ``extra`` ones."""
        delta -= self._failure(extra)
        if delta < 0:
            return math.inf
        epsilon = accounting.rdp_to_epsilon(self.rdp(*extra), delta)
        closed = self._without_sampling(extra)
        if closed is not None:
            mu, pure = closed
            epsilon = min(epsilon, pure + accounting.gdp_epsilon(mu, delta))
        return epsilon

    def headline(self, delta: float) -> tuple[float, str]:
        """The smallest epsilon that any accountant proves at ``delta``, and its name.

        Numerical composition of sampled Gaussians (PRV) takes up to seconds: call it at the end.
        Pure releases are added to it. Both accountants are functions of public numbers, so that
        choosing the smaller one costs nothing.
        """
        epsilon, failure = self.epsilon(delta), self._failure()
        delta = max(delta - failure, 0.0)  # less than none left makes epsilon infinite
        rdp = accounting.rdp_to_epsilon(self.rdp(), delta)
        gaussian = any(entry.mechanism == "gaussian" for entry in self.entries)
        sums = APPROXIMATE if failure else PURE
        name = "RDP" if epsilon == rdp else "GDP" if gaussian else sums
        history: dict[tuple[float, float], int] = {}
        for entry in self.entries:
            if entry.mechanism == "gaussian":
                key = entry.noise_multiplier, entry.sample_rate
                history[key] = history.get(key, 0) + entry.steps
        pure = _compose(self.entries, LedgerEntry.pure_epsilon, 0.0)
        sequential = all(entry.partition is None for entry in self.entries)
        sampled = any(q < 1 for _, q in history)
        if sequential and sampled and math.isfinite(epsilon) and pure < epsilon:
            steps = tuple((*key, count) for key, count in history.items())
            prv = accounting.prv_epsilon(steps, delta)
            if prv is not None and prv + pure < epsilon:
                return prv + pure, "PRV"
        return epsilon, name

    def state_dict(self) -> dict[str, Any]:
        """All releases as plain values. The budget is configuration, not state."""
        return {
            "relation": self.relation.value,
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace the releases by those of ``state``."""
        if Relation(state["relation"]) is not self.relation:
            raise ValueError(f"a ledger of {state['relation']!r} cannot become {self.relation!r}")
        entries = [LedgerEntry.from_dict(entry) for entry in state["entries"]]
        self._check(entries)
        self.entries = entries

    def catch_up(self, state: dict[str, Any]) -> None:
        """Book, budget or not, every step that ``state`` shows beyond this ledger's.

        For a run that was killed after its last checkpoint: its journal knows of releases that the
        checkpoint does not.
        """
        shown = PrivacyLedger(self.relation)
        shown.load_state_dict(state)
        for entry in {json.dumps(_kind(e).to_dict()): _kind(e) for e in shown.entries}.values():
            missing = _total_steps(shown.entries, entry) - _total_steps(self.entries, entry)
            if missing > 0:
                self._book(replace(entry, steps=missing))

    def book_lost(self, entry: LedgerEntry) -> None:
        """Book, budget or not, steps that were made and that no journal shows."""
        if self.journal is not None:
            self._write(self.journal, entry)
        self._book(entry)

    def is_part_of(self, state: dict[str, Any]) -> bool:
        """Whether ``state`` shows every step of this ledger."""
        shown = PrivacyLedger(self.relation)
        shown.load_state_dict(state)
        return all(
            _total_steps(self.entries, kind) <= _total_steps(shown.entries, kind)
            for kind in map(_kind, self.entries)
        )

    @staticmethod
    def replay(path: Path) -> dict[str, Any]:
        """State of the ledger that wrote the journal ``path``.

        A last line without an end was not booked and is left out.
        """
        text = path.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.split("\n")[:-1]]
        if not lines:
            raise ValueError(f"the journal {path} holds no release")
        ledger = PrivacyLedger(Relation(lines[0]["relation"]))
        for line in lines:
            ledger._book(LedgerEntry.from_dict(line))
        return ledger.state_dict()

    def _check(self, entries: Sequence[LedgerEntry]) -> None:
        for entry in entries:
            if entry.relation is not self.relation:
                raise ValueError(
                    f"{entry.name!r} protects the relation {entry.relation.value!r}, which cannot "
                    f"be added to a ledger of {self.relation.value!r}"
                )

    def _book(self, entry: LedgerEntry) -> None:
        for i in reversed(range(len(self.entries))):
            last = self.entries[i]
            if last.key == entry.key:
                if _kind(last) == _kind(entry):
                    self.entries[i] = replace(last, steps=last.steps + entry.steps)
                    return
                break
        self.entries.append(entry)

    def _failure(self, extra: Sequence[LedgerEntry] = ()) -> float:
        """Probability at most with which some release gives all away."""
        return _compose([*self.entries, *extra], LedgerEntry.failure, 0.0)

    def _without_sampling(self, extra: Sequence[LedgerEntry]) -> tuple[float, float] | None:
        """Gaussian-DP parameter and sum of epsilons, or None if an entry is sampled."""
        entries = [*self.entries, *extra]
        if any(entry.sample_rate < 1 for entry in entries):
            return None
        mu = math.sqrt(_compose(entries, LedgerEntry.squared_mu, 0.0))
        return mu, _compose(entries, LedgerEntry.pure_epsilon, 0.0)

    def _write(self, journal: Path, entry: LedgerEntry) -> None:
        lines = [entry]
        if journal.exists():
            _drop_torn_line(journal)
        if not journal.exists() or journal.stat().st_size == 0:
            lines = [*self.entries, entry]
        with journal.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line.to_dict()) + "\n" for line in lines)


def _kind(entry: LedgerEntry) -> LedgerEntry:
    """The entry as if it had happened once."""
    return replace(entry, steps=1)


def _total_steps(entries: Sequence[LedgerEntry], kind: LedgerEntry) -> int:
    return sum(entry.steps for entry in entries if _kind(entry) == kind)


def _drop_torn_line(journal: Path) -> None:
    """Cut off what a killed process left of a line it did not finish."""
    with journal.open("rb+") as file:
        end = file.seek(0, 2)
        if end == 0:
            return
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
