"""The budget book of data sets: runs reserve their whole plan, book each release, and give back.

A book is a log and the tables that follow from it. Each of its writes appends lines and changes the
tables in one transaction, and the database lets writes of all processes follow one another: two runs
at the same instant never overspend together.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning_dpg.apps.book import owner_token, store
from lightning_dpg.apps.book.earlier_versions import upgrade
from lightning_dpg.apps.book.filter import Rule, passes
from lightning_dpg.apps.book.grants import check_grant
from lightning_dpg.apps.book.identity import Fingerprint, fingerprint
from lightning_dpg.apps.book.refusals import check_open, too_small
from lightning_dpg.apps.book.request import (
    Request,
    charge_of,
    check,
    pure_left,
    rule_of,
    spending_of,
)
from lightning_dpg.apps.book.reservation import Reservation
from lightning_dpg.apps.book.sketch import Marks, marks
from lightning_dpg.apps.book.state import DataSet, Grant, Run, cost_of_runs
from lightning_dpg.apps.book.store import append, connect, faults, state_of
from lightning_dpg.apps.book.unfinished import is_elsewhere, proved_steps
from lightning_dpg.apps.book.writers import described
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.events import Relation


class Book:
    """An open book.

    Args:
        url: Its database.
        is_new: Whether to make it.
        token: File with the owner's token. A new book is made with it, and the file too.

    Attributes:
        database: Its database.
        token: File with the owner's token, if one was given.

    Raises:
        BookError: If there is none, if it has a newer version, or if it has an earlier one and was
            changed.
    """

    def __init__(self, url: str, *, is_new: bool = False, token: Path | None = None) -> None:
        if is_new and token is not None:
            owner_token.refuse_existing(token)
        self.database, self.token = connect(url, is_new=is_new), token
        version = store.version(self.database)
        if is_new and version:
            raise BookError(f"{self.url}: there is a book already")
        if not is_new and not version:
            raise BookError(
                f"{self.url}: no book\n"
                f"make one: python -m lightning_dpg budget init --book {self.url}"
            )
        new_token = owner_token.make_token(token) if is_new and token is not None else None
        if version not in (0, store.VERSION):
            upgrade(self.database)
        elif is_new:
            with self.database.write():
                store.make(self.database)
                if new_token is not None:
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
        return fingerprint(store.secret(self.database), content)

    def marks(self, content: Identity) -> Marks:
        """Sketch of the names of the nodes under the key of this book; a microsecond per node.

        Args:
            content: Canonical content of the data (private).
        """
        return marks(store.secret(self.database), content.names)

    def data_set(self, name: str) -> DataSet:
        """A data set by its name.

        Raises:
            BookError: If there is none.
        """
        return store.data_set(self.database, name)

    def data_sets(self) -> list[DataSet]:
        """All data sets, in the order of their registration."""
        return [*state_of(self.database).data_sets.values()]

    def runs(self, dataset: str | None = None) -> list[Run]:
        """Runs on a data set, or on all."""
        return state_of(self.database).runs(dataset)

    def grants(self, dataset: str | None = None) -> list[Grant]:
        """Grants on a data set, or on all, in the order of their numbers."""
        grants = state_of(self.database).grants
        return [each for _, each in sorted(grants.items()) if dataset in (None, each.dataset)]

    def names_of_rows(self, content: str) -> list[str]:
        """Names of the data sets that are known by this fingerprint of private columns."""
        known = state_of(self.database).columns
        return sorted(name for name, contents in known.items() if content in contents)

    def knows_rows_of(self, name: str) -> bool:
        """Return whether the book has seen private columns of a data set."""
        return name in state_of(self.database).columns

    def names_of(self, edges: str) -> list[str]:
        """Names of the data sets that are known by this fingerprint of edges."""
        known = state_of(self.database).edges
        return sorted(name for name, fingerprints in known.items() if edges in fingerprints)

    def check(self) -> None:
        """Refuse a book that was changed.

        Raises:
            BookError: If any of its lines was changed.
        """
        if changes := faults(self.database):
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
            for relation in (dataset.relation, *request.other_budgets):
                part = dataset.for_relation(relation)
                spending = spending_of(part, request, entries)
                if not is_released:
                    check_grant(part, self.grants(name), earlier, spending, charge.family, user)
                rule = rule_of(part, earlier, charge.family, spending)
                if rule is None and not is_released:
                    raise too_small(part, earlier, request)
                rules[relation] = rule or part.rule
            number = state_of(self.database).next_run
            if not self.database.hold(number):
                raise BookError(f"{self.url}: the lock of run {number} is taken: try again")
            append(
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
                **({} if request.condition is None else {"condition": request.condition}),
                **_other_budgets(request, rules),
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
        for run in state_of(self.database).runs(name, is_open=True):
            if is_elsewhere(run) or not self.database.hold(run.number):
                continue
            with contextlib.ExitStack() as stack:
                stack.callback(self.database.drop, run.number)
                stack.enter_context(self.database.write())
                # Another process may have closed it, and its own may have booked, since it was read.
                now = state_of(self.database).run(run.number)
                if not now.is_open:
                    continue
                append(
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
        part = dataset.for_relation(relation or dataset.relation)
        return pure_left(part, cost_of_runs(self.runs(name), part.relation))

    def is_exceeded(self, name: str) -> bool:
        """Return whether the runs of a data set count more than one of its totals."""
        dataset, runs = self.data_set(name), self.runs(name)
        for relation in dataset.relations:
            part, together = dataset.for_relation(relation), cost_of_runs(runs, relation)
            if together.epsilons and not passes(part.total, part.rule, together):
                return True
        return False


def _other_budgets(request: Request, rules: Mapping[Relation, Rule]) -> dict[str, Any]:
    """Facts of a reservation: budgets for further relations, if it has any."""
    if not request.other_budgets:
        return {}
    others = {
        relation.value: {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "rule": rules[relation],
            "content": request.contents.get(relation, ""),
        }
        for relation, budget in request.other_budgets.items()
    }
    return {"beside": others}
