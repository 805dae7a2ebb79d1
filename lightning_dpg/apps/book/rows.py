"""Data sets and runs of a book, read from its tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.filter import Rule, Spending, Together, together
from lightning_dpg.apps.book.log import lines_of
from lightning_dpg.apps.book.projection import OPEN
from lightning_dpg.errors import BookError, nearest
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation


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
    rule: Rule


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
        rule: Rule of its filter; ``split`` until a run has chosen.
        created: When it was registered, in UTC.
        part_of: Group of disjoint data sets that it is a part of, as the owner declares; empty if none.
        closed: Time when it was closed. From then on no run is accepted.
        closed_by: User who closed it.
        max_edges: Number D of edges of one node that a record of the relation ``edges_of_node`` has
            at most (public); None for other relations.
        beside: Totals of further relations, which protect something else in the same data.
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
    rule: Rule
    created: str
    part_of: str
    closed: str | None
    closed_by: str | None
    max_edges: int | None = None
    beside: Mapping[Relation, Total] = field(default_factory=dict)

    @property
    def relations(self) -> list[Relation]:
        """Relations that have a total, first the one of the registration."""
        return [self.relation, *self.beside]

    def of(self, relation: Relation) -> "DataSet":
        """The data set as one of its totals sees it: with this total, and nothing beside.

        Raises:
            KeyError: If the relation has no total.
        """
        if relation is self.relation:
            return replace(self, beside={}) if self.beside else self
        total = self.beside[relation]
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
            beside={},
        )


@dataclass(frozen=True)
class Planned:
    """One planned release of a run.

    Attributes:
        entry: The release, once for each planned step.
        booked: Number of steps that were booked.
        place: Its place in the plan of the run.
    """

    entry: LedgerEntry
    booked: int
    place: int

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
        closed: When it was closed.
        outcome: ``open``, ``ended``, ``stopped``, or ``killed``.
        release: Digest of its release, if there is one.
        planned: Its planned releases.
        beside: Budgets of its ledger for further relations.
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
    before: list[dict[str, object]]
    opened: str
    closed: str | None
    outcome: str
    release: str | None
    planned: Sequence[Planned]
    beside: Mapping[Relation, Budget] = field(default_factory=dict)

    def of(self, relation: Relation) -> "Run":
        """The run as one total sees it: with the budget and the releases of one relation."""
        budget = self.beside.get(relation, self.budget)
        planned = [each for each in self.planned if each.entry.relation is relation]
        if len(planned) == len(self.planned) and budget == self.budget:
            return self
        return replace(self, budget=budget, planned=planned, beside={})

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
    def counted(self) -> list[LedgerEntry]:
        """Releases that count: the whole plan of an open run, the booked releases of a closed one."""
        return self.plan if self.is_open else self.booked


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
    for run in (each.of(relation) for each in runs):
        entries = run.booked if is_released else run.counted
        if entries:
            before = costs.get(run.family, Spending(run.budget, [], run.plan))
            costs[run.family] = before._replace(entries=[*before.entries, *entries])
    return costs


def counted(runs: Sequence[Run], relation: Relation, *, is_released: bool = False) -> Together:
    """Cost of all runs on one data set together.

    Args:
        runs: The runs.
        relation: Relation of the total.
        is_released: Whether to count only releases that were made.
    """
    return together(spendings(runs, relation, is_released=is_released).values())


def data_sets(database: Database) -> list[DataSet]:
    """All data sets, in the order of their registration."""
    beside = _totals(database)
    return [
        DataSet(
            name,
            Relation(relation),
            record,
            words,
            Budget(epsilon, delta),
            max_degree,
            edges,
            nodes,
            bool(two_persons),
            _rule(rule),
            created,
            part_of,
            closed,
            closed_by,
            max_edges,
            beside.get(name, {}),
        )
        for (
            name,
            relation,
            record,
            words,
            epsilon,
            delta,
            max_degree,
            edges,
            nodes,
            two_persons,
            rule,
            created,
            part_of,
            closed,
            closed_by,
            max_edges,
        ) in database.rows("SELECT * FROM book_datasets ORDER BY created, name")
    ]


def _totals(database: Database) -> dict[str, dict[Relation, Total]]:
    """Totals of further relations, by data set."""
    found: dict[str, dict[Relation, Total]] = {}
    rows = database.rows("SELECT * FROM book_totals ORDER BY dataset, relation")
    for name, relation, record, epsilon, delta, content, rule in rows:
        total = Total(record, Budget(epsilon, delta), content, _rule(rule))
        found.setdefault(name, {})[Relation(relation)] = total
    return found


def _rule(rule: str) -> Rule:
    return cast(Rule, rule or "split")


def data_set(database: Database, name: str) -> DataSet:
    """A data set by its name.

    Raises:
        BookError: If the book has none of this name.
    """
    by_name = {each.name: each for each in data_sets(database)}
    if name not in by_name:
        raise BookError(
            f"{database.url}: no data set {name!r}{nearest(name, by_name)}\n"
            f"registered: {', '.join(by_name) or 'none'}; see python -m lightning_dpg budget register"
        )
    return by_name[name]


def names_of_rows(database: Database, content: str) -> list[str]:
    """Names of the data sets that are known by a fingerprint of private columns.

    Args:
        database: The book.
        content: The fingerprint; an empty one knows none.
    """
    rows = database.rows(
        "SELECT dataset FROM book_totals WHERE content = ? UNION SELECT r.dataset "
        "FROM book_runs r JOIN book_budgets b ON b.run = r.run WHERE b.content = ?",
        *[content] * 2,
    )
    return sorted(name for (name,) in rows if content)


def known_edges(database: Database) -> dict[str, set[str]]:
    """Fingerprints of the edges of each data set, in any version that was registered or read.

    Of transfers, those of the edges alone are among them. They stand in the log only.
    """
    found = database.rows(
        "SELECT name, edges FROM book_datasets UNION SELECT dataset, edges FROM book_runs"
    )
    lines = [line.facts for line in lines_of(database, "register")]
    found += [(facts["name"], facts["links"]) for facts in lines if "links" in facts]
    known: dict[str, set[str]] = {}
    for name, edges in found:
        known.setdefault(name, set()).add(edges)
    return known


def same_edges(database: Database, name: str) -> list[DataSet]:
    """Other data sets that hold the same edges, in any version that was registered or read.

    They have another relation, since one total covers all runs of one relation.

    Args:
        database: The book.
        name: Data set.
    """
    known = known_edges(database)
    return [
        dataset
        for dataset in data_sets(database)
        if dataset.name != name and not known[name].isdisjoint(known[dataset.name])
    ]


def runs(database: Database, dataset: str | None = None, *, is_open: bool = False) -> list[Run]:
    """Runs on a data set, or on all, in the order of their reservations.

    Args:
        database: The book.
        dataset: Name of the data set.
        is_open: Whether to leave out those that are closed.
    """
    where = f"WHERE r.outcome = '{OPEN}'" if is_open else "WHERE 1 = 1"
    values = () if dataset is None else (dataset,)
    if dataset is not None:
        where += " AND r.dataset = ?"
    planned: dict[int, list[Planned]] = {}
    entries = database.rows(
        "SELECT e.run, e.entry, e.booked, e.place FROM book_entries e "
        f"JOIN book_runs r ON e.run = r.run {where} ORDER BY e.run, e.place",
        *values,
    )
    for number, entry, booked, place in entries:
        planned.setdefault(number, []).append(_planned(entry, booked, place))
    beside: dict[int, dict[Relation, Budget]] = {}
    budgets = database.rows(
        "SELECT b.run, b.relation, b.epsilon, b.delta FROM book_budgets b "
        f"JOIN book_runs r ON b.run = r.run {where}",
        *values,
    )
    for number, relation, epsilon, delta in budgets:
        beside.setdefault(number, {})[Relation(relation)] = Budget(epsilon, delta)
    rows = database.rows(f"SELECT r.* FROM book_runs r {where} ORDER BY r.run", *values)
    return [_run(row, planned.get(row[0], []), beside.get(row[0], {})) for row in rows]


@lru_cache(maxsize=1024)
def _planned(text: str, booked: int, place: int) -> Planned:
    """A planned release; runs of one configuration plan and book the same ones."""
    return Planned(LedgerEntry.from_dict(json.loads(text)), booked, place)


def _run(
    row: tuple[Any, ...], planned: Sequence[Planned], beside: Mapping[Relation, Budget]
) -> Run:
    (
        number,
        family,
        dataset,
        method,
        settings,
        folder,
        journal,
        who,
        spender,
        edges,
        epsilon,
        delta,
        *rest,
    ) = row
    before, opened, closed, outcome, release = rest
    return Run(
        number=number,
        family=family,
        dataset=dataset,
        method=method,
        settings=settings,
        folder=folder,
        journal=journal,
        who=who,
        spender=spender,
        edges=edges,
        budget=Budget(epsilon, delta),
        before=json.loads(before),
        opened=opened,
        closed=closed,
        outcome=outcome,
        release=release,
        planned=planned,
        beside=beside,
    )
