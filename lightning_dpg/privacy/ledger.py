"""The ledger: which private releases were made, what they cost together, and whether to go on."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.accounting import Curve
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import PURE
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation

__all__ = ["PURE", "Budget", "LedgerEntry", "PrivacyBudgetExceeded", "PrivacyLedger", "Relation"]


class PrivacyBudgetExceeded(Refusal):
    """A release was refused because it would overspend the budget. Nothing was booked."""


class JournalOfTwoRuns(Refusal):
    """A release was refused because another run writes to the same journal."""


class PrivacyLedger:
    """Books every read of the private data before it happens, and refuses to overspend.

    How releases compose is in :mod:`lightning_dpg.privacy.composition`. That holds for costs that are
    fixed before the first release. Costs that follow from released values (noise of later steps, say)
    need a filter, as in :mod:`lightning_dpg.book.filter`: at (1, 1e-5), one of two plans that fit,
    chosen by a first release of epsilon 0.5, has had a delta of 1.32e-5.

    Attributes:
        relation: The one neighboring relation of all entries.
        entries: What was released so far; equal successive releases under one key are one entry.
        budget: What may be spent; None refuses nothing.
        journal: File to which each release is written before it is booked, so that a run that was
            killed still knows what it released. A new file starts with what was booked before.
        account: Function that gets each release before it is written and made, and that may refuse
            it: that of a budget book, which adds up runs.
        observer: Receives the key and the noisy value of each release, for an audit.
    """

    def __init__(self, relation: Relation) -> None:
        """Start with nothing released."""
        self.relation = Relation(relation)
        self.entries: list[LedgerEntry] = []
        self.budget: Budget | None = None
        self._proved: tuple[Budget | None, Counter[Any]] = None, Counter()
        self.journal: Path | None = None
        self._written: tuple[Path, int, int] | None = None
        self.account: Callable[[LedgerEntry], None] | None = None
        self.observer: Callable[[str, Tensor], None] | None = None

    @property
    def steps(self) -> int:
        """Private training steps: those of all Gaussian entries that are sampled or repeated."""
        return sum(
            entry.steps
            for entry in self.entries
            if isinstance(entry.event, Gaussian) and (entry.sample_rate < 1 or entry.steps > 1)
        )

    @property
    def reasons(self) -> list[str]:
        """Why the guarantee is void; empty when it is not."""
        return [
            f"{entry.name}: {entry.event.why_void}"
            for entry in self.entries
            if not entry.event.protects
        ]

    def spend(self, entry: LedgerEntry) -> None:
        """Book a release that is about to be made.

        Raises:
            PrivacyBudgetExceeded: If the budget does not afford it; then nothing is booked.
            Refusal: If its relation is another one.
        """
        if not self.affords(entry) and self.budget is not None:
            epsilon, delta = self.budget
            raise PrivacyBudgetExceeded(
                f"{entry.name!r} would raise delta at epsilon={epsilon:g} from "
                f"{self.delta(epsilon):.3g} to {self.delta(epsilon, entry):.3g}; "
                f"the budget is {delta:.3g}"
            )
        self._record(entry)

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
        """Whether all of ``entries`` together still fit the budget.

        Releases that were found to fit are remembered, and a part of them is not composed again: it
        costs no more. So a run whose plan was checked looks at each step in no time.
        """
        self._check(entries)
        if self.budget is None or math.isinf(self.budget.epsilon):
            return True
        asked = [*self.entries, *entries]
        if self._is_proved(asked):
            return True
        if not composition.fits(asked, self.budget):
            return False
        self._proved = self.budget, composition.costs(asked)
        return True

    def rdp(self, *extra: LedgerEntry) -> Curve:
        """Renyi curve at ``ORDERS`` of all releases and ``extra`` ones."""
        self._check(extra)
        return composition.rdp([*self.entries, *extra])

    def delta(self, epsilon: float, *extra: LedgerEntry) -> float:
        """Delta at ``epsilon`` of all releases and ``extra`` ones, by what is computed at once.

        It is that of Renyi or Gaussian DP, or the budget's where that was found to be kept.
        """
        self._check(extra)
        entries = [*self.entries, *extra]
        delta = composition.quick_delta(entries, epsilon)
        if self._is_proved(entries) and self.budget is not None and epsilon >= self.budget.epsilon:
            delta = min(delta, self.budget.delta)
        return delta

    def epsilon(self, delta: float, *extra: LedgerEntry) -> float:
        """Epsilon at ``delta`` of all releases and ``extra`` ones, by what is computed at once.

        It is that of Renyi or Gaussian DP, or the budget's where that was found to be kept.
        """
        entries = [*self.entries, *extra]
        epsilon = composition.quick_epsilon(entries, delta)
        if self._is_proved(entries) and self.budget is not None and delta >= self.budget.delta:
            epsilon = min(epsilon, self.budget.epsilon)
        return epsilon

    def headline(self, delta: float) -> tuple[float, str]:
        """The smallest epsilon that any accountant proves at ``delta``, and its name.

        It is searched for up to a tolerance, and is the budget's where that is kept and less.
        """
        epsilon, name = composition.headline(self.entries, delta)
        budget = self.budget
        if budget is not None and delta >= budget.delta and epsilon > budget.epsilon:
            epsilon = budget.epsilon if self.affords() else epsilon
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
            raise Refusal(f"a ledger of {state['relation']!r} cannot become {self.relation!r}")
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
        """Book, budget or not, steps that were made and that no journal shows.

        ``account`` does not get them: a budget book has booked them when the run was reserved.
        """
        self._keep(entry)

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
            raise Refusal(f"the journal {path} holds no release")
        ledger = PrivacyLedger(Relation(lines[0]["relation"]))
        for line in lines:
            ledger._book(LedgerEntry.from_dict(line))
        return ledger.state_dict()

    def _check(self, entries: Sequence[LedgerEntry]) -> None:
        for entry in entries:
            if entry.relation is not self.relation:
                raise Refusal(
                    f"{entry.name!r} protects the relation {entry.relation.value!r}, which cannot "
                    f"be added to a ledger of {self.relation.value!r}"
                )

    def _record(self, entry: LedgerEntry) -> None:
        """Tell the budget book first, which then never knows less than the journal."""
        if self.account is not None:
            self.account(entry)
        self._keep(entry)

    def _keep(self, entry: LedgerEntry) -> None:
        """Write an entry to the journal, and book it."""
        if self.journal is not None:
            self._write(self.journal, entry)
        self._book(entry)

    def _book(self, entry: LedgerEntry) -> None:
        for i in reversed(range(len(self.entries))):
            last = self.entries[i]
            if last.key == entry.key:
                if _kind(last) == _kind(entry):
                    self.entries[i] = replace(last, steps=last.steps + entry.steps)
                    return
                break
        self.entries.append(entry)

    def _is_proved(self, entries: Sequence[LedgerEntry]) -> bool:
        """Whether ``entries`` are a part of what was found to fit the budget."""
        budget, costs = self._proved
        return budget == self.budget and composition.costs(entries) <= costs

    def _write(self, journal: Path, entry: LedgerEntry) -> None:
        lines = [entry]
        self._refuse_other_writer(journal)
        if journal.exists():
            _drop_torn_line(journal)
        if not journal.exists() or journal.stat().st_size == 0:
            lines = [*self.entries, entry]
        with journal.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line.to_dict()) + "\n" for line in lines)
        self._written = _facts(journal)

    def _refuse_other_writer(self, journal: Path) -> None:
        """Refuse to write where another run has written: neither would know what both spend."""
        if not journal.exists() or self._written == _facts(journal):
            return
        before, now = self._written, _facts(journal)
        is_exchanged = before is not None and before[0] == journal and before[1] != now[1]
        if is_exchanged or self._is_behind(journal):
            raise JournalOfTwoRuns(
                f"another run has written to {journal}: two runs share a folder or a checkpoint\n"
                "let one of them end, and resume the other: it then books the steps of both"
            )

    def _is_behind(self, journal: Path) -> bool:
        """Whether a journal shows more than this ledger."""
        if b"\n" not in journal.read_bytes():
            return False
        shown = PrivacyLedger(self.relation)
        shown.load_state_dict(self.replay(journal))
        return not shown.is_part_of(self.state_dict())


def _kind(entry: LedgerEntry) -> LedgerEntry:
    """The entry as if it had happened once."""
    return replace(entry, steps=1)


def _facts(journal: Path) -> tuple[Path, int, int]:
    """Name, number and size of a file; another file of the same name has another number."""
    status = journal.stat()
    return journal, status.st_ino, status.st_size


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
