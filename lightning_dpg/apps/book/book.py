"""The budget book of data sets: runs reserve their whole plan, book each release, and give back.

A book is a log and the tables that follow from it. Each of its writes appends lines and changes the
tables in one transaction, and the database lets writes of all processes follow one another: two runs
at the same instant never overspend together.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning_dpg.apps.book import conditions, owner_token, rows, schema
from lightning_dpg.apps.book.checkpoint import new_faults
from lightning_dpg.apps.book.connection import connect
from lightning_dpg.apps.book.filter import Rule, passes
from lightning_dpg.apps.book.grants import check_grant
from lightning_dpg.apps.book.identity import Fingerprint, fingerprint, key_digest
from lightning_dpg.apps.book.owner import OwnerSide
from lightning_dpg.apps.book.projection import record
from lightning_dpg.apps.book.refusals import check_max_edges, check_open, check_part, too_small
from lightning_dpg.apps.book.request import (
    Request,
    charge_of,
    check,
    pure_left,
    rule_of,
    spending_of,
)
from lightning_dpg.apps.book.reservation import Reservation
from lightning_dpg.apps.book.rows import DataSet, Run
from lightning_dpg.apps.book.sketch import Marks, marks, seal
from lightning_dpg.apps.book.unfinished import is_elsewhere, proved_steps
from lightning_dpg.apps.book.writers import described
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation


class Book(OwnerSide):
    """An open book.

    Args:
        url: Its database.
        is_new: Whether to make it.
        token: File with the owner's token. A new book is made with it, and the file too.

    Raises:
        BookError: If there is none, or if it has a newer version.
    """

    def __init__(self, url: str, *, is_new: bool = False, token: Path | None = None) -> None:
        if is_new and token is not None:
            owner_token.refuse_existing(token)
        super().__init__(connect(url, is_new=is_new), token)
        version = schema.version(self.database)
        if is_new and version:
            raise BookError(f"{self.url}: there is a book already")
        if not is_new and not version:
            raise BookError(
                f"{self.url}: no book\n"
                f"make one: python -m lightning_dpg budget init --book {self.url}"
            )
        new_token = owner_token.make_token(token) if is_new and token is not None else None
        schema.migrate(self.database)
        if new_token is not None:
            with self.database.write():
                owner_token.begin(self.database, new_token)

    @property
    def url(self) -> str:
        """Where the book is, without a password."""
        return self.database.url

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def fingerprint(self, content: Identity) -> Fingerprint:
        """Fingerprint of data under the key of this book.

        Args:
            content: Canonical content of the data (private).
        """
        return fingerprint(schema.secret(self.database), content)

    def marks(self, content: Identity) -> Marks:
        """Sketch of the names of the nodes under the key of this book; a microsecond per node.

        Args:
            content: Canonical content of the data (private).
        """
        return marks(schema.secret(self.database), content.names)

    def register(
        self,
        name: str,
        data: Fingerprint,
        *,
        relation: Relation,
        total: Budget,
        record_unit: str,
        words: str = "",
        max_degree: int | None = None,
        max_edges: int | None = None,
        part_of: str = "",
        two_persons: bool = False,
        people: Marks | None = None,
        row_total: Budget | None = None,
    ) -> None:
        """Register data under a name, with the total that all of their releases may spend.

        Args:
            name: New name.
            data: Fingerprint of the data.
            relation: Neighboring relation of the total.
            total: Total of all releases.
            record_unit: One record, in words.
            words: The owner's words.
            max_degree: Largest number of edges of a node (public).
            max_edges: Number D of edges of one node that are hidden together (public), for the
                relation ``edges_of_node`` only. Runs with another number are refused.
            part_of: Group of data sets that are disjoint, as the owner declares.
            two_persons: Whether runs need grants that a second person approved.
            people: Sketch of the names of the nodes, by which later data on the same people are found.
            row_total: Total of the private columns of nodes, see :meth:`add_row_total`.

        Raises:
            BookError: If the name is taken, or if the data have another name and this relation.
        """
        check_max_edges(relation, max_edges)
        with self.database.write():
            check_part(
                rows.data_sets(self.database), name, part_of, record_unit, relation, max_edges
            )
            for dataset in rows.data_sets(self.database):
                if dataset.name == name:
                    raise BookError(f"{self.url}: there is a data set {name!r} already")
                if dataset.relation is relation and dataset.name in self.names_of(data.edges):
                    raise BookError(
                        f"{self.url}: these data are registered as {dataset.name!r} already, and one "
                        f"total covers all of their releases\nfit with --dataset {dataset.name}"
                    )
            key = schema.secret(self.database)
            sketch = {} if people is None else {"sketch": seal(key, people)}
            self._record_as_owner(
                "register",
                name=name,
                relation=relation.value,
                record=record_unit,
                words=words,
                epsilon=total.epsilon,
                delta=total.delta,
                max_degree=max_degree,
                edges=data.edges,
                nodes=data.nodes,
                key=key_digest(key),
                part_of=part_of,
                two_persons=two_persons,
                **({} if max_edges is None else {"max_edges": max_edges}),
                **sketch,
                **({"links": data.links} if data.links else {}),
            )
            if row_total is not None:
                self._record_row_total(name, row_total, data.rows)

    def data_set(self, name: str) -> DataSet:
        """A data set by its name.

        Raises:
            BookError: If there is none.
        """
        return rows.data_set(self.database, name)

    def data_sets(self) -> list[DataSet]:
        """All data sets."""
        return rows.data_sets(self.database)

    def runs(self, dataset: str | None = None) -> list[Run]:
        """Runs on a data set, or on all."""
        return rows.runs(self.database, dataset)

    def names_of_rows(self, content: str) -> list[str]:
        """Names of the data sets that are known by this fingerprint of private columns."""
        return rows.names_of_rows(self.database, content)

    def knows_rows_of(self, name: str) -> bool:
        """Return whether the book has seen private columns of a data set."""
        total = self.data_set(name).beside.get(Relation.ATTRIBUTES)
        was_read = self.database.rows(
            "SELECT b.run FROM book_budgets b JOIN book_runs r ON b.run = r.run "
            "WHERE r.dataset = ? AND b.content <> ''",
            name,
        )
        return bool(was_read) or (total is not None and bool(total.content))

    def names_of(self, edges: str) -> list[str]:
        """Names of the data sets that are known by this fingerprint of edges."""
        known = rows.known_edges(self.database)
        return sorted(name for name, fingerprints in known.items() if edges in fingerprints)

    def check(self) -> None:
        """Refuse a book that was changed.

        Raises:
            BookError: If it has a fault since it was verified last.
        """
        if changes := new_faults(self.database):
            raise BookError(
                f"{self.url}: the book was changed, and nothing is spent on it: {changes[0]}\n"
                f"see python -m lightning_dpg budget verify --book {self.url}"
            )

    def reserve(self, name: str, request: Request, *, is_released: bool = False) -> Reservation:
        """Reserve the whole plan of a run, or refuse it with nothing booked.

        Args:
            name: Data set.
            request: The run.
            is_released: Whether all of its releases were made already. The book then has to know
                them, even if they exceed the total.

        Raises:
            BookError: If the plan exceeds what is left, has another relation, or if the book has a
                fault.
        """
        self.check()
        self.reconcile(name)
        with self.database.write():
            dataset, user = self.data_set(name), self.database.user()
            earlier = self.runs(name)
            charge = charge_of(earlier, request)
            entries = charge.entries
            check(dataset, request, entries)
            if not is_released:
                check_open(dataset)
            rules = {}
            for relation in (dataset.relation, *request.beside):
                part = dataset.of(relation)
                spending = spending_of(part, request, entries)
                if not is_released:
                    check_grant(part, self.grants(name), earlier, spending, charge.family, user)
                rule = rule_of(part, earlier, charge.family, spending)
                if rule is None and not is_released:
                    raise too_small(part, earlier, request)
                rules[relation] = rule or part.rule
            number = self._next_run()
            if not self.database.hold(number):
                raise BookError(f"{self.url}: the lock of run {number} is taken: try again")
            record(
                self.database,
                "reserve",
                run=number,
                family=charge.family or number,
                dataset=name,
                method=request.method,
                settings=request.settings,
                folder=request.folder,
                journal=None if request.journal is None else str(request.journal.absolute()),
                who=described(user),
                user=user,
                edges=request.edges,
                epsilon=request.budget.epsilon,
                delta=request.budget.delta,
                rule=rules[dataset.relation],
                before=[entry.to_dict() for entry in charge.before],
                entries=[entry.to_dict() for entry in entries],
                booked=charge.booked,
                **conditions.facts_of(request),
                **_beside(request, rules),
            )
        return Reservation(self.database, number, entries, charge.booked, charge.lost)

    def reconcile(self, name: str | None = None) -> list[int]:
        """Close the runs whose process has ended without closing them; return their numbers.

        Each keeps the steps that the book or its journal shows, whichever are more. A run keeps its
        whole plan if it has no journal, or one that cannot be read. If the journal lies on another
        machine, the run stays reserved until that machine opens the book.

        Args:
            name: Data set; by default all.
        """
        numbers = []
        for run in rows.runs(self.database, name, is_open=True):
            if is_elsewhere(run) or not self.database.hold(run.number):
                continue
            with contextlib.ExitStack() as stack:
                stack.callback(self.database.drop, run.number)
                stack.enter_context(self.database.write())
                # Another process may have closed it, and its own may have booked, since it was read.
                still = rows.runs(self.database, run.dataset, is_open=True)
                now = next((each for each in still if each.number == run.number), None)
                if now is None:
                    continue
                record(
                    self.database,
                    "close",
                    run=run.number,
                    outcome="killed",
                    booked=proved_steps(now),
                    release=None,
                )
            numbers.append(run.number)
        return numbers

    def left(self, name: str, relation: Relation | None = None) -> float:
        """Largest epsilon of one more pure release that would be accepted now.

        Args:
            name: Data set.
            relation: Relation of one of its totals; by default the one of its registration.
        """
        dataset = self.data_set(name)
        part = dataset.of(relation or dataset.relation)
        return pure_left(part, rows.counted(self.runs(name), part.relation))

    def is_exceeded(self, name: str) -> bool:
        """Return whether the runs of a data set count more than one of its totals."""
        dataset, runs = self.data_set(name), self.runs(name)
        for relation in dataset.relations:
            part, together = dataset.of(relation), rows.counted(runs, relation)
            if together.epsilons and not passes(part.total, part.rule, together):
                return True
        return False

    def _next_run(self) -> int:
        ((last,),) = self.database.rows("SELECT MAX(run) FROM book_runs")
        return int(last or 0) + 1


def _beside(request: Request, rules: Mapping[Relation, Rule]) -> dict[str, Any]:
    """Facts of a reservation: budgets for further relations, if it has any."""
    if not request.beside:
        return {}
    beside = {
        relation.value: {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "rule": rules[relation],
            "content": request.contents.get(relation, ""),
        }
        for relation, budget in request.beside.items()
    }
    return {"beside": beside}
