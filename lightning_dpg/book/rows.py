"""Data sets and runs of a book, read from its tables."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

from lightning_dpg.book.database import Database
from lightning_dpg.book.filter import Rule, Spending, Together, together
from lightning_dpg.book.projection import OPEN
from lightning_dpg.errors import BookError, nearest
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation


@dataclass(frozen=True)
class DataSet:
    """A registered data set.

    Attributes:
        name: Its name in the book.
        relation: Neighboring relation of its total.
        record: One record, in words.
        words: The owner's words.
        total: Budget of all releases together.
        max_degree: Largest number of edges of a node (public), if the owner states it.
        edges: Fingerprint of the edges when it was registered.
        nodes: Fingerprint of the nodes.
        two_persons: Whether grants need a second person, and all runs need grants.
        rule: Rule of its filter; ``split`` until a run has chosen.
        created: When it was registered, in UTC.
        part_of: Group of disjoint data sets that it is a part of, as the owner declares; empty if none.
        closed: Time when it was closed. From then on no run is accepted.
        closed_by: User who closed it.
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


@dataclass(frozen=True)
class Planned:
    """One planned release of a run.

    Attributes:
        entry: The release, once for each planned step.
        booked: Number of steps that were booked.
    """

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
        budget: Budget of its ledger.
        before: Releases that its ledger held at its start and that other runs count, as plain values.
        opened: When it was reserved, in UTC.
        closed: When it was closed.
        outcome: ``open``, ``ended``, ``stopped``, or ``killed``.
        release: Digest of its release, if there is one.
        planned: Its planned releases.
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


def spendings(runs: Sequence[Run], *, is_released: bool = False) -> dict[int, Spending]:
    """Costs of runs by family: a run and the runs that continue it share one budget.

    Args:
        runs: Runs on one data set.
        is_released: Whether to count only releases that were made.
    """
    costs: dict[int, Spending] = {}
    for run in runs:
        entries = run.booked if is_released else run.counted
        if entries:
            before = costs.get(run.family, Spending(run.budget, [], run.plan))
            costs[run.family] = before._replace(entries=[*before.entries, *entries])
    return costs


def counted(runs: Sequence[Run], *, is_released: bool = False) -> Together:
    """Cost of all runs on one data set together.

    Args:
        runs: The runs.
        is_released: Whether to count only releases that were made.
    """
    return together(spendings(runs, is_released=is_released).values())


def data_sets(database: Database) -> list[DataSet]:
    """All data sets, in the order of their registration."""
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
            cast(Rule, rule or "split"),
            *rest,
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
            *rest,
        ) in database.rows("SELECT * FROM book_datasets ORDER BY created, name")
    ]


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


def same_edges(database: Database, name: str) -> list[DataSet]:
    """Other data sets that hold the same edges, in any version that was registered or read.

    They have another relation, since one total covers all runs of one relation.

    Args:
        database: The book.
        name: Data set.
    """
    own = "SELECT edges FROM book_datasets WHERE name = ? UNION SELECT edges FROM book_runs WHERE dataset = ?"
    rows = database.rows(
        f"SELECT name FROM book_datasets WHERE edges IN ({own}) "
        f"UNION SELECT dataset FROM book_runs WHERE edges IN ({own})",
        *[name] * 4,
    )
    names = {each for (each,) in rows} - {name}
    return [dataset for dataset in data_sets(database) if dataset.name in names]


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
        "SELECT e.run, e.entry, e.booked FROM book_entries e JOIN book_runs r ON e.run = r.run "
        f"{where} ORDER BY e.run, e.place",
        *values,
    )
    for number, entry, booked in entries:
        planned.setdefault(number, []).append(_planned(entry, booked))
    rows = database.rows(f"SELECT r.* FROM book_runs r {where} ORDER BY r.run", *values)
    return [_run(row, planned.get(row[0], [])) for row in rows]


@lru_cache(maxsize=1024)
def _planned(text: str, booked: int) -> Planned:
    """A planned release; runs of one configuration plan and book the same ones."""
    return Planned(LedgerEntry.from_dict(json.loads(text)), booked)


def _run(row: tuple[Any, ...], planned: Sequence[Planned]) -> Run:
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
    )
