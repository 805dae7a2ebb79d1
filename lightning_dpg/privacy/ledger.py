"""Ledger of private releases: it records them, adds up their costs and refuses to overspend."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.accounting import Curve
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import PURE
from lightning_dpg.privacy.events import Event, Gaussian, LedgerEntry, NonPrivate, Relation

if TYPE_CHECKING:  # commands that draw nothing start without PyTorch
    from torch import Tensor

__all__ = ["PURE", "Budget", "LedgerEntry", "PrivacyBudgetExceeded", "PrivacyLedger", "Relation"]
_BESIDE = "beside"
"""Key of the relation of the ledger in a line of its journal that has another one."""
JOURNAL = "ledger.jsonl"


class PrivacyBudgetExceeded(Refusal):
    """A release was refused because it would overspend the budget. Nothing was booked."""


class JournalOfTwoRuns(Refusal):
    """A release was refused because another run writes to the same journal."""


class PrivacyLedger:
    """Books every read of the private data before it happens, and refuses to overspend.

    How releases compose is in :mod:`lightning_dpg.privacy.composition`. That holds for costs that are
    fixed before the first release. Costs that follow from released values (noise of later steps, say)
    need a filter, as in :mod:`lightning_dpg.apps.book.filter`: at (1, 1e-5), one of two plans that fit,
    chosen by a first release of epsilon 0.5, has had a delta of 1.32e-5.

    Entries of different relations are never added. A read that costs several relations has an entry
    for each, and they are booked together or not at all.

    Attributes:
        relation: Neighboring relation of the guarantee.
        entries: Releases so far; equal successive releases under one key and relation are one entry.
        budget: Budget of ``relation``; None refuses nothing.
        beside: Budgets of further relations, which protect something else in the same data. Reads of
            all other relations are refused.
        journal: File to which each release is written before it is booked. A run that was killed
            reads its releases there. A new file starts with what was booked before.
        account: Function of a budget book, which adds up runs. It gets the entries of each read
            before they are written and paid, and may refuse them. It may keep entries of a read
            that is refused in the end: a book knows no less than a run.
        observer: Receives the key and the noisy value of each release, for an audit.
    """

    def __init__(self, relation: Relation) -> None:
        """Start with nothing released."""
        self.relation = Relation(relation)
        self.entries: list[LedgerEntry] = []
        self.budget: Budget | None = None
        self.beside: dict[Relation, Budget] = {}
        self._proved: dict[Relation, tuple[Budget, Counter[Event]]] = {}
        self.journal: Path | None = None
        self._written: tuple[Path, int, int] | None = None
        self.account: Callable[[*tuple[LedgerEntry, ...]], None] | None = None
        self.observer: Callable[[str, Tensor], None] | None = None

    @property
    def steps(self) -> int:
        """Private training steps: those of Gaussian entries of ``relation``, sampled or repeated."""
        return sum(
            entry.steps
            for entry in self.of(self.relation)
            if isinstance(entry.event, Gaussian)
            and (entry.event.sample_rate < 1 or entry.steps > 1)
        )

    @property
    def reasons(self) -> list[str]:
        """Reasons why the guarantee is void; empty if it holds."""
        return [
            f"{entry.name}: {entry.why_void}" for entry in self.entries if not entry.event.protects
        ]

    @property
    def relations(self) -> list[Relation]:
        """The relation of the guarantee, and after it those of other releases so far."""
        return list(dict.fromkeys([self.relation, *(entry.relation for entry in self.entries)]))

    def budget_of(self, relation: Relation) -> Budget | None:
        """Budget of one relation; None if it has none."""
        return self.budget if relation is self.relation else self.beside.get(relation)

    def of(self, relation: Relation) -> list[LedgerEntry]:
        """Entries of one relation, which compose with each other only."""
        return [entry for entry in self.entries if entry.relation is relation]

    def unprotected(self, key: str, name: str, why: str) -> LedgerEntry:
        """Build, and do not book, the entry of a read without noise; an infinite budget affords it.

        Args:
            key: Stable name of the read.
            name: What is read, for people.
            why: Why nothing is protected.
        """
        return LedgerEntry(
            key=key,
            name=name,
            relation=self.relation,
            event=NonPrivate(),
            sensitivity=math.inf,
            proof=why,
        )

    def spend(self, *entries: LedgerEntry) -> None:
        """Book the entries of a read before it happens: all of them, or none.

        Raises:
            PrivacyBudgetExceeded: If a budget does not afford them; then nothing is booked.
            Refusal: If a relation has no place in this ledger.
        """
        self._check(entries)
        for relation, budget in self._budgets().items():
            reads = [entry for entry in entries if entry.relation is relation]
            if reads and not self._affords(relation, budget, reads):
                booked, (epsilon, delta) = self.of(relation), budget
                names = " and ".join(repr(entry.name) for entry in reads)
                of = "" if relation is self.relation else f" of the relation {relation.value!r}"
                raise PrivacyBudgetExceeded(
                    f"{names} would raise delta at epsilon={epsilon:g}{of} from "
                    f"{self._delta(relation, booked, epsilon):.3g} to "
                    f"{self._delta(relation, [*booked, *reads], epsilon):.3g}; "
                    f"the budget is {delta:.3g}"
                )
        if self.account is not None:  # first: a budget book then never knows less than the journal
            self.account(*entries)
        self._keep(*entries)

    def publish(self, key: str, noisy: "Tensor") -> "Tensor":
        """Return the noisy value of a paid release, after the observer, if any, has received it."""
        if self.observer is not None:
            self.observer(key, noisy)
        return noisy

    def last_entry(self, key: str) -> LedgerEntry:
        """Return the entry that was booked last under ``key``.

        Raises:
            KeyError: If there is none.
        """
        for entry in reversed(self.entries):
            if entry.key == key:
                return entry
        raise KeyError(key)

    def affords(self, *entries: LedgerEntry) -> bool:
        """Return whether all of ``entries`` together still fit the budgets.

        Releases that were shown to fit are remembered, and a part of them is not composed again: it
        costs no more. So a run whose plan was checked needs no time for its steps.
        """
        return not self.exceeded(*entries)

    def exceeded(self, *entries: LedgerEntry) -> list[Relation]:
        """Relations whose budgets do not pay for ``entries`` beside all releases so far."""
        self._check(entries)
        return [
            relation
            for relation, budget in self._budgets().items()
            if not self._affords(relation, budget, [e for e in entries if e.relation is relation])
        ]

    def rdp(self, *extra: LedgerEntry) -> Curve:
        """Renyi curve at ``ORDERS`` of all releases and ``extra`` ones under ``relation``."""
        return composition.rdp(self._with(extra))

    def delta(self, epsilon: float, *extra: LedgerEntry) -> float:
        """Delta at ``epsilon`` of all releases and ``extra`` ones, by the fast accountants.

        It is that of Renyi or Gaussian DP, or the budget's if the releases were shown to fit it.
        """
        return self._delta(self.relation, self._with(extra), epsilon)

    def epsilon(self, delta: float, *extra: LedgerEntry, relation: Relation | None = None) -> float:
        """Epsilon at ``delta`` of all releases and ``extra`` ones, by the fast accountants.

        It is that of Renyi or Gaussian DP, or the budget's if the releases were shown to fit it.

        Args:
            delta: Where epsilon is asked for.
            *extra: Further releases.
            relation: The relation that is asked for; by default that of the guarantee.
        """
        relation = relation or self.relation
        entries = self._with(extra, relation)
        epsilon = composition.quick_epsilon(entries, delta)
        budget = self.budget_of(relation)
        if budget is not None and delta >= budget.delta and self._is_proved(relation, entries):
            epsilon = min(epsilon, budget.epsilon)
        return epsilon

    def headline(self, delta: float, relation: Relation | None = None) -> tuple[float, str]:
        """Return the smallest epsilon that any accountant proves at ``delta``, and its name.

        The search has a tolerance. The budget's epsilon is returned if it is kept and smaller.

        Args:
            delta: Where epsilon is asked for.
            relation: The relation that is asked for; by default that of the guarantee.
        """
        relation = relation or self.relation
        epsilon, name = composition.headline(self.of(relation), delta)
        budget = self.budget_of(relation)
        if budget is not None and delta >= budget.delta and epsilon > budget.epsilon:
            epsilon = budget.epsilon if self._affords(relation, budget, ()) else epsilon
        return epsilon, name

    def state_dict(self) -> dict[str, Any]:
        """All releases as plain values. The budget is configuration, not state."""
        return {
            "relation": self.relation.value,
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace the releases by those of ``state``, of relations without a budget here too.

        They were released, and a statement says what they cost. Further reads need the budget.
        """
        if Relation(state["relation"]) is not self.relation:
            raise Refusal(f"a ledger of {state['relation']!r} cannot become {self.relation!r}")
        self.entries = [LedgerEntry.from_dict(entry) for entry in state["entries"]]

    def take(self, state: dict[str, Any]) -> bool:
        """Take the releases of ``state``, unless this ledger has all of them.

        Returns:
            Whether they were taken.

        Raises:
            Refusal: If each has releases that the other one lacks: they are of different runs.
        """
        if state["entries"] and not self.entries:  # a part may have had the ledger of its whole
            self.relation = Relation(state["relation"])
        if self.is_part_of(state):
            self.load_state_dict(state)
            return True
        if not self._ledger_of(state).is_part_of(self.state_dict()):
            raise Refusal(
                "weights of another run cannot be loaded into a method that has released something\n"
                "make a new object for them"
            )
        return False

    def catch_up(self, state: dict[str, Any]) -> None:
        """Book every step that ``state`` shows beyond this ledger's, even beyond the budget.

        For a run that was killed after its last checkpoint: its journal knows of releases that the
        checkpoint does not.
        """
        other = self._ledger_of(state)
        for entry in {json.dumps(_kind(e).to_dict()): _kind(e) for e in other.entries}.values():
            missing = _total_steps(other.entries, entry) - _total_steps(self.entries, entry)
            if missing > 0:
                self._book(replace(entry, steps=missing))

    def book_lost(self, entry: LedgerEntry) -> None:
        """Book steps that happened and that no journal shows, even beyond the budget.

        ``account`` does not get them: a budget book has booked them when the run was reserved.
        """
        self._keep(entry)

    def is_part_of(self, state: dict[str, Any]) -> bool:
        """Return whether ``state`` shows every step of this ledger."""
        other = self._ledger_of(state)
        return all(
            _total_steps(self.entries, kind) <= _total_steps(other.entries, kind)
            for kind in map(_kind, self.entries)
        )

    @staticmethod
    def replay(path: Path) -> dict[str, Any]:
        """State of the ledger that wrote the journal ``path``.

        A last line without an end was not booked and is left out. If a kill has torn the lines of one
        read apart, those of some of its relations are left: the read did not happen, so they count
        too much, and never too little.
        """
        text = path.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.split("\n")[:-1]]
        if not lines:
            raise Refusal(f"the journal {path} holds no release")
        ledger = PrivacyLedger(Relation(lines[0].get(_BESIDE, lines[0]["relation"])))
        for line in lines:
            line.pop(_BESIDE, None)
            ledger._book(LedgerEntry.from_dict(line))
        return ledger.state_dict()

    def _ledger_of(self, state: dict[str, Any]) -> "PrivacyLedger":
        """Ledger of the same relation that holds the releases of ``state``."""
        other = PrivacyLedger(self.relation)
        other.load_state_dict(state)
        return other

    def _check(self, entries: Sequence[LedgerEntry]) -> None:
        for entry in entries:
            if entry.relation is not self.relation and entry.relation not in self.beside:
                raise Refusal(
                    f"{entry.name!r} protects the relation {entry.relation.value!r}, which cannot "
                    f"be added to a ledger of {self.relation.value!r}"
                )

    def _budgets(self) -> dict[Relation, Budget]:
        """Budget of each relation that has one."""
        own = {} if self.budget is None else {self.relation: self.budget}
        return own | self.beside

    def _with(
        self, extra: Sequence[LedgerEntry], relation: Relation | None = None
    ) -> list[LedgerEntry]:
        """Releases so far and further ones, of one relation; by default that of the guarantee."""
        self._check(extra)
        relation = relation or self.relation
        return [*self.of(relation), *(entry for entry in extra if entry.relation is relation)]

    def _affords(self, relation: Relation, budget: Budget, entries: Sequence[LedgerEntry]) -> bool:
        """Return whether entries of one relation still fit its budget."""
        total = [*self.of(relation), *entries]
        if math.isinf(budget.epsilon) or self._is_proved(relation, total):
            return True
        if not composition.fits(total, budget):
            return False
        self._proved[relation] = budget, composition.costs(total)
        return True

    def _delta(self, relation: Relation, entries: Sequence[LedgerEntry], epsilon: float) -> float:
        delta = composition.quick_delta(entries, epsilon)
        budget = self.budget_of(relation)
        if budget and epsilon >= budget.epsilon and self._is_proved(relation, entries):
            delta = min(delta, budget.delta)
        return delta

    def _keep(self, *entries: LedgerEntry) -> None:
        """Write the entries of a read to the journal, and book them."""
        if self.journal is not None:
            self._write(self.journal, entries)
        for entry in entries:
            self._book(entry)

    def _book(self, entry: LedgerEntry) -> None:
        for i in reversed(range(len(self.entries))):
            last = self.entries[i]
            if (last.key, last.relation) == (entry.key, entry.relation):
                if _kind(last) == _kind(entry):
                    self.entries[i] = replace(last, steps=last.steps + entry.steps)
                    return
                break
        self.entries.append(entry)

    def _is_proved(self, relation: Relation, entries: Sequence[LedgerEntry]) -> bool:
        """Return whether ``entries`` are a part of releases that were shown to fit the budget."""
        budget, costs = self._proved.get(relation, (None, Counter[Event]()))
        is_same = budget is not None and budget == self.budget_of(relation)
        return is_same and composition.costs(entries) <= costs

    def _write(self, journal: Path, entries: Sequence[LedgerEntry]) -> None:
        lines = list(entries)
        self._refuse_other_writer(journal)
        if journal.exists():
            _drop_torn_line(journal)
        if not journal.exists() or journal.stat().st_size == 0:
            lines = [*self.entries, *entries]
        with journal.open("a", encoding="utf-8") as file:
            file.write("".join(self._line(line) for line in lines))
        self._written = _facts(journal)

    def _line(self, entry: LedgerEntry) -> str:
        """Line of the journal. That of another relation names the ledger's: it may be the first."""
        is_beside = entry.relation is not self.relation
        values = entry.to_dict() | ({_BESIDE: self.relation.value} if is_beside else {})
        return json.dumps(values) + "\n"

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
        """Return whether a journal shows more than this ledger."""
        if b"\n" not in journal.read_bytes():
            return False
        other = self._ledger_of(self.replay(journal))
        return not other.is_part_of(self.state_dict())


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


def journal_state(checkpoint: str | Path | None) -> dict[str, Any] | None:
    """Return the state of the ledger of the journal beside a checkpoint; None without one."""
    journal = journal_beside(checkpoint)
    return None if journal is None else replay(journal)


def journal_beside(checkpoint: str | Path | None) -> Path | None:
    """Return the journal in the run folder of a checkpoint."""
    if checkpoint is None:
        return None
    folders = Path(checkpoint).absolute().parents[:2]
    return next((path / JOURNAL for path in folders if (path / JOURNAL).is_file()), None)


def replay(journal: Path) -> dict[str, Any] | None:
    """Return the state of the ledger that wrote ``journal``; None if it booked nothing."""
    return PrivacyLedger.replay(journal) if b"\n" in journal.read_bytes() else None


def open_journal(folder: Path | None, previous: Path | None) -> Path | None:
    """Open the journal of this run.

    A resumed run continues the file of the earlier run under a second name: every later resume,
    from either folder, finds all steps. Without a folder it continues the file itself.
    """
    if folder is None:
        return previous
    journal = folder / JOURNAL
    folder.mkdir(parents=True, exist_ok=True)
    if previous is not None and previous.exists():
        if journal.exists() and journal.samefile(previous):
            return journal
        _set_aside(journal)
        _link(journal, previous)
    else:
        _set_aside(journal)
    return journal


def _link(journal: Path, previous: Path) -> None:
    """Give a file a second name: of a copy, neither of two resumed runs would see the other."""
    try:
        journal.hardlink_to(previous)
    except OSError:  # another file system
        try:
            journal.symlink_to(previous.resolve())
        except OSError:  # a file system without links
            shutil.copy(previous, journal)


def _set_aside(journal: Path) -> None:
    """Keep the file of another run of the same name."""
    if journal.exists():
        count = len(list(journal.parent.glob(f"{journal.stem}-*{journal.suffix}")))
        journal.rename(journal.with_stem(f"{journal.stem}-{count + 1}"))
