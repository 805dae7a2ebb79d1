"""The budget book of data sets: runs reserve their whole plan, book each release, and give back.

A book is a log and the tables that follow from it. Each of its writes appends lines and changes the
tables in one transaction, and the database lets writes of all processes follow one another: two runs
at the same instant never overspend together.
"""

import contextlib
from pathlib import Path

from lightning_dpg.book import conditions, owner_token, rows, schema
from lightning_dpg.book.checkpoint import new_faults
from lightning_dpg.book.connection import connect
from lightning_dpg.book.filter import passes
from lightning_dpg.book.grants import check_grant
from lightning_dpg.book.identity import Fingerprint, fingerprint, key_digest
from lightning_dpg.book.owner import OwnerSide
from lightning_dpg.book.projection import record
from lightning_dpg.book.refusals import check_open, check_part, too_small
from lightning_dpg.book.request import Request, asked, check, pure_left, rule_of
from lightning_dpg.book.reservation import Reservation
from lightning_dpg.book.rows import DataSet, Run
from lightning_dpg.book.sketch import Marks, marks, sealed
from lightning_dpg.book.unfinished import is_elsewhere, proved_steps
from lightning_dpg.book.writers import described
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
        found = schema.version(self.database)
        if is_new and found:
            raise BookError(f"{self.url}: there is a book already")
        if not is_new and not found:
            raise BookError(
                f"{self.url}: no book\n"
                f"make one: python -m lightning_dpg budget init --book {self.url}"
            )
        made = owner_token.make_token(token) if is_new and token is not None else None
        schema.migrate(self.database)
        if made is not None:
            with self.database.write():
                owner_token.begin(self.database, made)

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
        found: Fingerprint,
        *,
        relation: Relation,
        total: Budget,
        record_unit: str,
        words: str = "",
        max_degree: int | None = None,
        part_of: str = "",
        two_persons: bool = False,
        people: Marks | None = None,
    ) -> None:
        """Register data under a name, with the total that all of their releases may spend.

        Args:
            name: New name.
            found: Fingerprint of the data.
            relation: Neighboring relation of the total.
            total: Total of all releases.
            record_unit: What is one record.
            words: The owner's words.
            max_degree: Largest number of edges of a node (public).
            part_of: Group of data sets that are disjoint, as the owner declares.
            two_persons: Whether runs need grants that a second person approved.
            people: Sketch of the names of the nodes, by which later data on the same people are found.

        Raises:
            BookError: If the name is taken, or if the data have another name and this relation.
        """
        with self.database.write():
            check_part(rows.data_sets(self.database), name, part_of, relation, record_unit)
            for known in rows.data_sets(self.database):
                if known.name == name:
                    raise BookError(f"{self.url}: there is a data set {name!r} already")
                if known.relation is relation and known.name in self.names_of(found.edges):
                    raise BookError(
                        f"{self.url}: these data are registered as {known.name!r} already, and one "
                        f"total covers all of their releases\nfit with privacy.dataset {known.name}"
                    )
            key = schema.secret(self.database)
            sketch = {} if people is None else {"sketch": sealed(key, people)}
            self._record_as_owner(
                "register",
                name=name,
                relation=relation.value,
                record=record_unit,
                words=words,
                epsilon=total.epsilon,
                delta=total.delta,
                max_degree=max_degree,
                edges=found.edges,
                nodes=found.nodes,
                key=key_digest(key),
                part_of=part_of,
                two_persons=two_persons,
                **sketch,
            )

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

    def names_of(self, edges: str) -> list[str]:
        """Names of the data sets that are known by this fingerprint of edges."""
        found = self.database.rows(
            "SELECT name FROM book_datasets WHERE edges = ? "
            "UNION SELECT dataset FROM book_runs WHERE edges = ?",
            edges,
            edges,
        )
        return sorted(name for (name,) in found)

    def check(self) -> None:
        """Refuse a book that was changed.

        Raises:
            BookError: If it has a fault since it was verified last.
        """
        if found := new_faults(self.database):
            raise BookError(
                f"{self.url}: the book was changed, and nothing is spent on it: {found[0]}\n"
                f"see python -m lightning_dpg budget verify --book {self.url}"
            )

    def reserve(self, name: str, request: Request, *, is_made: bool = False) -> Reservation:
        """Reserve the whole plan of a run, or refuse it with nothing booked.

        Args:
            name: Data set.
            request: The run.
            is_made: Whether all of its releases were made already, so that the book has to know them
                even if they exceed the total.

        Raises:
            BookError: If the plan exceeds what is left, has another relation, or if the book has a
                fault.
        """
        self.check()
        self.reconcile(name)
        with self.database.write():
            known, user = self.data_set(name), self.database.user()
            earlier = self.runs(name)
            one = asked(earlier, request)
            entries = one.spending.entries
            check(known, request, entries)
            if not is_made:
                check_open(known)
                made = self.grants(name)
                check_grant(known, made, earlier, one.spending, one.family, user)
            rule = rule_of(known, earlier, one)
            if rule is None and is_made:
                rule = known.rule
            if rule is None:
                raise too_small(known, earlier, request)
            number = self._next_run()
            if not self.database.hold(number):
                raise BookError(f"{self.url}: the lock of run {number} is taken: try again")
            record(
                self.database,
                "reserve",
                run=number,
                family=one.family or number,
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
                rule=rule,
                before=[entry.to_dict() for entry in one.before],
                entries=[entry.to_dict() for entry in entries],
                booked=one.booked,
                **conditions.facts_of(request),
            )
        return Reservation(self.database, number, entries, one.booked, one.unseen)

    def reconcile(self, name: str | None = None) -> list[int]:
        """Close the runs whose process has ended without a word; return their numbers.

        Each keeps what the book or its journal shows, whichever is more. A run without a journal, or
        whose journal cannot be read, keeps its whole plan. A run of another machine whose journal is
        there stays reserved until that machine looks at the book.

        Args:
            name: Data set; by default all.
        """
        closed = []
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
            closed.append(run.number)
        return closed

    def left(self, name: str) -> float:
        """Largest epsilon of one more pure release that would be let in now."""
        return pure_left(self.data_set(name), rows.counted(self.runs(name)))

    def is_exceeded(self, name: str) -> bool:
        """Whether the runs of a data set count more than its total."""
        known = self.data_set(name)
        counted = rows.counted(self.runs(name))
        return bool(counted.epsilons) and not passes(known.total, known.rule, counted)

    def _next_run(self) -> int:
        ((last,),) = self.database.rows("SELECT MAX(run) FROM book_runs")
        return int(last or 0) + 1
