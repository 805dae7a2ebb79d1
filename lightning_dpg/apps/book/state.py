"""State of a book: its data sets, grants and runs, as they follow from its log line by line."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

from lightning_dpg.apps.book.filter import Rule, RunCosts, Spending, together
from lightning_dpg.apps.book.log import Line
from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation

OPEN = "open"
"""Outcome of a run that goes on, or that was killed and not reconciled yet."""

OWNER_KINDS = ("init", "register", "total", "grant", "approve", "close_data_set", "retract")
"""Kinds of lines that an owner writes; a spender writes all others."""

_SWEEPS = "sweeps of the chain"
"""Public fact of labels that a Markov chain drew in earlier versions, without a condition in the log."""
_encode = json.JSONEncoder(sort_keys=True).encode


class Total(NamedTuple):
    """Total of a data set for a further relation, such as that of private columns of nodes.

    Attributes:
        record: One record, in words.
        budget: Budget of all releases together.
        content: Fingerprint of what the relation protects when the total was set; empty if the
            first run shows it.
        rule: Rule of its filter.
    """

    record: str
    budget: Budget
    content: str
    rule: Rule = "split"


@dataclass(frozen=True)
class DataSet:
    """A registered data set.

    Attributes:
        name: Its name in the book.
        relation: Neighboring relation under which it is registered.
        record: One record, in words.
        words: The owner's words.
        total: Budget of all releases together under this relation.
        max_degree: Largest number of edges of a node (public), if the owner states it.
        edges: Fingerprint of the edges when it was registered.
        nodes: Fingerprint of the nodes.
        two_persons: Whether grants need a second person, and all runs need grants.
        created: When it was registered, in UTC.
        part_of: Group of disjoint data sets that it is a part of, as the owner declares; empty if none.
        rule: Rule of its filter; ``split`` until a run has chosen.
        closed: Time when it was closed. From then on no run is accepted.
        closed_by: User who closed it.
        max_edges: Number D of edges of one node that a record of the relation ``edges_of_node`` has
            at most (public); None for other relations.
        sketch: Sealed sketch of the names of its nodes; empty in lines of earlier versions.
        other_totals: Totals of further relations, which protect something else in the same data.
    """

    name: str
    relation: Relation
    record: str
    words: str
    total: Budget
    max_degree: int | None
    edges: str
    nodes: str
    two_persons: bool
    created: str
    part_of: str
    rule: Rule = "split"
    closed: str | None = None
    closed_by: str | None = None
    max_edges: int | None = None
    sketch: str = ""
    other_totals: Mapping[Relation, Total] = field(default_factory=dict)

    @property
    def relations(self) -> list[Relation]:
        """Relations that have a total, first the one of the registration."""
        return [self.relation, *self.other_totals]

    def for_relation(self, relation: Relation) -> "DataSet":
        """The data set as one of its totals sees it: with this total only.

        Raises:
            KeyError: If the relation has no total.
        """
        if relation is self.relation:
            return replace(self, other_totals={})
        total = self.other_totals[relation]
        return replace(
            self,
            relation=relation,
            record=total.record,
            words="",
            total=total.budget,
            max_degree=None,
            max_edges=None,
            rule=total.rule,
            part_of="",
            other_totals={},
        )


class Grant(NamedTuple):
    """Budget of one user for a data set.

    Attributes:
        number: Its number in the book.
        dataset: Name of the data set.
        grantee: User who may spend it.
        budget: Largest sum over all runs of that user.
        made: When it was made, in UTC.
        made_by: User who made it.
        relation: Relation of the total that it is a part of.
        approved: When a second person approved it.
        approved_by: That person.
    """

    number: int
    dataset: str
    grantee: str
    budget: Budget
    made: str
    made_by: str
    relation: Relation
    approved: str | None = None
    approved_by: str | None = None


@dataclass(frozen=True)
class Planned:
    """One planned release of a run.

    Attributes:
        text: The release as JSON, by which equal ones of several runs are found.
        entry: The release, once for each planned step.
        booked: Number of steps that were booked.
    """

    text: str
    entry: LedgerEntry
    booked: int

    @cached_property
    def released(self) -> LedgerEntry:
        """The release, once for each booked step."""
        whole = self.booked == self.entry.steps
        return self.entry if whole else replace(self.entry, steps=self.booked)

    @cached_property
    def values(self) -> dict[str, Any]:
        """Booked steps as plain values, which equal releases share."""
        return self.released.to_dict()


@dataclass(frozen=True)
class Run:
    """A run on a data set: a reservation until it is closed, and a release then.

    Attributes:
        number: Its number in the book.
        family: Number of the run that it continues with the same budget; its own number if it is new.
        dataset: Name of its data set.
        method: Name of its method.
        settings: Digest of the method's settings.
        folder: Folder of the run; empty without one.
        journal: Its journal, if it has one.
        who: User, machine and process.
        spender: The user.
        edges: Fingerprint of its edges.
        budget: Budget of its ledger under the relation of its data set.
        before: Releases that its ledger held at its start and that other runs count, as plain values.
        opened: When it was reserved, in UTC.
        planned: Its planned releases.
        condition: Condition of its guarantee, to follow "if"; None if it always holds.
        other_budgets: Budgets of its ledger for further relations.
        contents: Fingerprints of what these relations protect, empty where they are not known.
        closed: When it was closed.
        outcome: ``open``, ``ended``, ``stopped``, or ``killed``.
        release: Digest of its release, if there is one.
        retracted: Why its release was retracted; None if it was not.
    """

    number: int
    family: int
    dataset: str
    method: str
    settings: str
    folder: str
    journal: str | None
    who: str
    spender: str
    edges: str
    budget: Budget
    before: list[dict[str, Any]]
    opened: str
    planned: Sequence[Planned]
    condition: str | None = None
    other_budgets: Mapping[Relation, Budget] = field(default_factory=dict)
    contents: Mapping[Relation, str] = field(default_factory=dict)
    closed: str | None = None
    outcome: str = OPEN
    release: str | None = None
    retracted: str | None = None

    def for_relation(self, relation: Relation) -> "Run":
        """The run as one total sees it: with the budget and the releases of one relation."""
        budget = self.other_budgets.get(relation, self.budget)
        planned = [each for each in self.planned if each.entry.relation is relation]
        if len(planned) == len(self.planned) and budget == self.budget:
            return self
        return replace(self, budget=budget, planned=planned, other_budgets={})

    @property
    def is_open(self) -> bool:
        """True while it holds its whole plan."""
        return self.outcome == OPEN

    @property
    def plan(self) -> list[LedgerEntry]:
        """Releases that it reserved."""
        return [each.entry for each in self.planned]

    @property
    def booked(self) -> list[LedgerEntry]:
        """Releases that it has made."""
        return [each.released for each in self.planned if each.booked]

    @property
    def owed_entries(self) -> list[LedgerEntry]:
        """Releases that count: the whole plan of an open run, the booked releases of a closed one."""
        return self.plan if self.is_open else self.booked


class State:
    """What the lines of a book say.

    Attributes:
        last: The last line that was followed; None before the first one.
        faults: Lines that were changed, removed, inserted or cannot be read.
        data_sets: Data sets by name, in the order of their registration.
        grants: Grants by number.
        edges: Fingerprints of the edges of each data set, in any version that was registered or read.
            Of transfers, those of the edges alone are among them.
        columns: Fingerprints of the private columns of each data set that has any.
        measurements: Lines of measurements.
        keys: Line of each registration, and the digest of the key that it was written under.
    """

    def __init__(self) -> None:
        self.last: Line | None = None
        self.faults: list[str] = []
        self.data_sets: dict[str, DataSet] = {}
        self.grants: dict[int, Grant] = {}
        self.edges: dict[str, set[str]] = {}
        self.columns: dict[str, set[str]] = {}
        self.measurements: list[Line] = []
        self.keys: list[tuple[int, str | None]] = []
        self._runs: dict[int, Run] = {}
        self._steps: dict[int, list[int]] = {}  # booked steps of each release of the open runs

    def read(self, line: Line) -> None:
        """Follow a line of a log; one that was changed, or that cannot be read, is a fault."""
        if fault := line.fault_after(self.last):
            self.faults.append(fault)
        try:
            self.follow(line)
        except (LookupError, TypeError, ValueError) as error:
            if not self.faults:  # else it may only follow from the changed line
                self.faults.append(f"line {line.line}: cannot be read ({error})")
        self.last = line

    def follow(self, line: Line) -> None:
        """Change the state by one line.

        Raises:
            Refusal: If no such line can follow.
            ValueError: If the line is none of a book, as for LookupError and TypeError.
        """
        facts = line.facts
        match line.kind:
            case "book":
                self._book(facts["run"], facts["place"], facts["steps"])
            case "reserve":
                self._reserve(line.time, facts)
            case "close":
                self._close(line.time, facts)
            case "register":
                self._register(line, facts)
            case "total":
                self._add_total(facts)
            case "grant":
                self._grant(line.time, facts)
            case "approve":
                self._approve(line.time, facts)
            case "close_data_set":
                dataset = self.data_sets[facts["name"]]
                closed = replace(dataset, closed=line.time, closed_by=facts["user"])
                self.data_sets[dataset.name] = closed
            case "retract":
                run = self._runs.get(facts["run"])
                if run is None or run.is_open or run.retracted is not None:
                    number = facts["run"]
                    raise Refusal(f"run {number} is open, retracted already, or not in the book")
                self._runs[run.number] = replace(run, retracted=facts["reason"])
            case "measure":
                self.measurements.append(line)
            case "init":
                pass
            case _:
                raise Refusal(f"line {line.line}: unknown kind {line.kind!r}")
        self.last = line

    def runs(self, dataset: str | None = None, *, is_open: bool = False) -> list[Run]:
        """Runs on a data set, or on all, in the order of their reservations.

        Args:
            dataset: Name of the data set.
            is_open: Whether to leave out those that are closed.
        """
        numbers = self._steps if is_open else self._runs
        runs = [self.run(number) for number in sorted(numbers)]
        return [run for run in runs if dataset in (None, run.dataset)]

    def run(self, number: int) -> Run:
        """A run by its number.

        Raises:
            KeyError: If there is none.
        """
        run = self._runs[number]
        if number not in self._steps:
            return run
        return replace(run, planned=_after(run, self._steps[number]))

    @property
    def next_run(self) -> int:
        """Number of the next run."""
        return 1 + max(self._runs, default=0)

    def _register(self, line: Line, facts: dict[str, Any]) -> None:
        name = facts["name"]
        if name in self.data_sets:
            raise Refusal(f"there is a data set {name!r} already")
        self.data_sets[name] = DataSet(
            name=name,
            relation=Relation(facts["relation"]),
            record=facts["record"],
            words=facts["words"],
            total=Budget(facts["epsilon"], facts["delta"]),
            max_degree=facts["max_degree"],
            edges=facts["edges"],
            nodes=facts["nodes"],
            two_persons=bool(facts["two_persons"]),
            created=line.time,
            part_of=facts["part_of"],
            max_edges=facts.get("max_edges"),  # absent in lines of earlier versions
            sketch=facts.get("sketch", ""),
        )
        self.edges[name] = {facts["edges"], facts.get("links", facts["edges"])}
        self.keys.append((line.line, facts.get("key")))

    def _add_total(self, facts: dict[str, Any]) -> None:
        dataset, relation = self.data_sets[facts["dataset"]], Relation(facts["relation"])
        if relation in dataset.relations:
            raise Refusal(f"{dataset.name} has a total of the relation {relation} already")
        budget = Budget(facts["epsilon"], facts["delta"])
        total = Total(facts["record"], budget, facts["content"])
        totals = {**dataset.other_totals, relation: total}
        self.data_sets[dataset.name] = replace(dataset, other_totals=totals)
        self._know_columns(dataset.name, [total.content])

    def _grant(self, time: str, facts: dict[str, Any]) -> None:
        number, dataset = facts["number"], self.data_sets[facts["dataset"]]
        if number in self.grants:
            raise Refusal(f"there is a grant {number} already")
        self.grants[number] = Grant(
            number=number,
            dataset=dataset.name,
            grantee=facts["grantee"],
            budget=Budget(facts["epsilon"], facts["delta"]),
            made=time,
            made_by=facts["user"],
            relation=Relation(facts.get("relation") or dataset.relation),
        )

    def _approve(self, time: str, facts: dict[str, Any]) -> None:
        grant, user = self.grants[facts["number"]], facts["user"]
        if grant.made_by == user:
            raise Refusal(f"grant {grant.number} is approved by {user}, who made it")
        self.grants[grant.number] = grant._replace(approved=time, approved_by=user)

    def _reserve(self, time: str, facts: dict[str, Any]) -> None:
        number, dataset = facts["run"], self.data_sets[facts["dataset"]]
        if number in self._runs:
            raise Refusal(f"there is a run {number} already")
        others = {Relation(name): other for name, other in facts.get("beside", {}).items()}
        totals = dict(dataset.other_totals)
        for relation, other in others.items():
            totals[relation] = totals[relation]._replace(rule=_rule(other["rule"]))
        run = Run(
            number=number,
            family=facts["family"],
            dataset=dataset.name,
            method=facts["method"],
            settings=facts["settings"],
            folder=facts["folder"],
            journal=facts["journal"],
            who=facts["who"],
            spender=facts["user"],
            edges=facts["edges"],
            budget=Budget(facts["epsilon"], facts["delta"]),
            before=facts["before"],
            opened=time,
            planned=[
                _planned(_encode(entry), booked)
                for entry, booked in zip(facts["entries"], facts["booked"], strict=True)
            ],
            condition=facts.get("condition") or _condition_of_a_chain(facts["entries"]),
            other_budgets={
                relation: Budget(other["epsilon"], other["delta"])
                for relation, other in others.items()
            },
            contents={relation: other["content"] for relation, other in others.items()},
        )
        self._runs[number], self._steps[number] = run, [*facts["booked"]]
        rule = _rule(facts["rule"])
        if (rule, totals) != (dataset.rule, dataset.other_totals):
            self.data_sets[dataset.name] = replace(dataset, rule=rule, other_totals=totals)
        self.edges[dataset.name].add(run.edges)
        self._know_columns(dataset.name, run.contents.values())

    def _book(self, number: int, place: int, steps: int) -> None:
        """Count more booked steps of a planned release."""
        booked = self._steps_of_open(number)
        planned = self._runs[number].planned[place].entry.steps
        if not 0 < steps <= planned - booked[place]:
            raise Refusal(
                f"run {number} planned {planned} steps, and books {steps} after {booked[place]}"
            )
        booked[place] += steps

    def _close(self, time: str, facts: dict[str, Any]) -> None:
        number, booked = facts["run"], facts["booked"]
        self._steps_of_open(number)
        run = self._runs[number]
        for each, steps in zip(run.planned, booked, strict=True):
            if not 0 <= steps <= each.entry.steps:
                raise Refusal(f"run {number} planned {each.entry.steps} steps, and keeps {steps}")
        self._runs[number] = replace(
            run,
            planned=_after(run, booked),
            closed=time,
            outcome=facts["outcome"],
            release=facts["release"],
        )
        del self._steps[number]

    def _steps_of_open(self, number: int) -> list[int]:
        """Booked steps of each release of a run that is open.

        A closed run never changes again: else one more line at the end of the log, which no kept hash
        of an earlier line shows, would give back what it has spent.
        """
        if number not in self._steps:
            raise Refusal(f"run {number} is closed, or was never reserved")
        return self._steps[number]

    def _know_columns(self, name: str, contents: Iterable[str]) -> None:
        known = {content for content in contents if content}
        if known:
            self.columns.setdefault(name, set()).update(known)


def spendings(
    runs: Sequence[Run], relation: Relation, *, is_released: bool = False
) -> dict[int, Spending]:
    """Costs of runs by family: a run and the runs that continue it share one budget.

    Args:
        runs: Runs on one data set.
        relation: Relation of the total.
        is_released: Whether to count only releases that were made.
    """
    costs: dict[int, Spending] = {}
    for run in (each.for_relation(relation) for each in runs):
        entries = run.booked if is_released else run.owed_entries
        if entries:
            before = costs.get(run.family, Spending(run.budget, [], run.plan))
            costs[run.family] = before._replace(entries=[*before.entries, *entries])
    return costs


def cost_of_runs(runs: Sequence[Run], relation: Relation, *, is_released: bool = False) -> RunCosts:
    """Cost of all runs on one data set together.

    Args:
        runs: The runs.
        relation: Relation of the total.
        is_released: Whether to count only releases that were made.
    """
    return together(spendings(runs, relation, is_released=is_released).values())


@lru_cache(maxsize=4096)
def _planned(text: str, booked: int) -> Planned:
    """A planned release; runs of one configuration plan and book the same ones."""
    return Planned(text, LedgerEntry.from_dict(json.loads(text)), booked)


def _after(run: Run, booked: Sequence[int]) -> list[Planned]:
    """Planned releases of a run after so many of their steps were booked."""
    return [_planned(each.text, steps) for each, steps in zip(run.planned, booked, strict=True)]


def _rule(rule: str) -> Rule:
    return cast(Rule, rule or "split")


def _condition_of_a_chain(entries: Sequence[Mapping[str, Any]]) -> str | None:
    """Condition of a run of an earlier version whose plan has labels that a Markov chain draws."""
    for entry in entries:
        if sweeps := entry["public"].get(_SWEEPS):
            return f"the Markov chain over labels is stationary after its {sweeps} sweeps"
    return None
