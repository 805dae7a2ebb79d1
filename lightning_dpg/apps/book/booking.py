"""A run in a budget book: reserved before its first release, booked event by event, and closed."""

import contextlib
import hashlib
import json
import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytorch_lightning import Trainer

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.filter import as_booked
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.refusals import SAME_PEOPLE, check_record, in_common
from lightning_dpg.apps.book.request import Request, continued
from lightning_dpg.apps.book.reservation import Reservation
from lightning_dpg.apps.book.sketch import same_people
from lightning_dpg.apps.book.state import DataSet
from lightning_dpg.apps.book.urls import has_password
from lightning_dpg.budget_book import BOOK_VARIABLE, NO_BOOK
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import HasIdentity, Identity, Released, public_path
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.composition import fits
from lightning_dpg.privacy.events import Approximate, LedgerEntry, Relation


def book_url(setting: str | None, dataset: str | None) -> str:
    """URL of the book of a run, from its setting or from the environment.

    Args:
        setting: ``privacy.book``.
        dataset: ``privacy.dataset``.

    Raises:
        BookError: If the setting has a password, which would end in the file of the configuration,
            or if the user names a data set of a book, and no book.
    """
    if setting is not None and has_password(setting):
        raise BookError(
            "privacy.book has a password, and the run folder keeps all settings\n"
            f"leave it out, and set PGPASSWORD, or {BOOK_VARIABLE} to the whole URL"
        )
    url = setting or os.environ.get(BOOK_VARIABLE)
    if not url:
        raise BookError(
            f"privacy.dataset is {dataset}, and there is no budget book\n"
            f"set privacy.book or {BOOK_VARIABLE}; privacy.book {NO_BOOK} leaves the book out"
        )
    return url


class BookedRun:
    """A run that a book has accepted.

    Args:
        book: The book.
        dataset: Name of the data set.
        relation: Relation of its total.
        reservation: What was reserved.

    Attributes:
        dataset: Name of the data set.
    """

    def __init__(
        self, book: Book, dataset: str, relation: Relation, reservation: Reservation
    ) -> None:
        self.dataset = dataset
        self._relation = relation
        self._book = book
        self._reservation = reservation
        self._is_open = True

    def record(self, *entries: LedgerEntry) -> None:
        """Book a read before it is paid: one entry for each relation that it costs."""
        self._reservation.book(*as_booked(entries, self._relation))

    def affords(self, entries: Sequence[LedgerEntry]) -> bool:
        """Return whether one more release of each is reserved."""
        return self._reservation.affords(as_booked(entries, self._relation))

    def close(self, outcome: str, release: str | None = None) -> str | None:
        """Give back the rest of the plan; the first time, return a line on the budget that is left.

        Args:
            outcome: ``ended`` or ``stopped``.
            release: Digest of the release, if the run has written one.
        """
        if not self._is_open:
            return None
        self._is_open = False
        # A notebook lives on: a book that is not closed would hold the lock of the run as long.
        with contextlib.closing(self._book):
            self._reservation.close(outcome, release)
            dataset = self._book.data_set(self.dataset)
            texts = [self._left(dataset.for_relation(relation)) for relation in dataset.relations]
        return f"budget book: {self.dataset} has {'; '.join(texts)}"

    def _left(self, dataset: DataSet) -> str:
        """Say what is left of one total."""
        of_rows = " for private columns of nodes" * (dataset.relation is Relation.ATTRIBUTES)
        total = f"epsilon {dataset.total.epsilon:g}, delta {dataset.total.delta:g}"
        epsilon = int(self._book.left(self.dataset, dataset.relation) * 1e4) / 1e4
        left = f"left is one pure release of epsilon {epsilon:g}" if epsilon else "nothing is left"
        return f"a total of {total}{of_rows}; {left}"


def reserve(
    setting: str | None,
    dataset: str | None,
    trainer: Trainer,
    method: Released,
    steps: float,
    lost_steps: int,
    previous: Path | None,
    folder: str | None,
) -> BookedRun:
    """Reserve the whole plan of a run.

    Args:
        setting: URL of the book; None takes that of the environment.
        dataset: Name of the data set; None recognizes the data.
        trainer: Trainer of the run.
        method: Method with its budget.
        steps: Private steps of the whole run.
        lost_steps: Steps of the run that this one continues which neither its ledger nor a journal
            shows. They are booked even if the total does not pay for them.
        previous: Journal of the run that this one continues, if any.
        folder: Folder of the run, if it has one.

    Raises:
        BookError: If the book refuses it. Nothing but the lost steps is booked then.
    """
    url = book_url(setting, dataset)
    plan = whole_plan(method, steps, lost_steps)
    data, ledger = typed(trainer).datamodule, method.ledger
    if not isinstance(data, HasIdentity):
        raise BookError(
            f"{type(data).__name__} has no identity(), by which the budget book recognizes data\n"
            f"write it, or leave the book out (privacy.book: {NO_BOOK})"
        )
    relations = [method.relation, *ledger.beside]
    with _account(url, dataset, data.identity(), relations) as (book, name, total, fingerprint):
        assert ledger.budget is not None  # the preflight has set it
        request = Request(
            method=type(method).__name__,
            settings=_digest(method),
            budget=ledger.budget,
            plan=lambda budget: as_booked(plan(budget), total),
            edges=fingerprint.edges,
            folder=str(Path(folder).absolute()) if folder else "",
            journal=ledger.journal,
            before=as_booked(ledger.entries, total),
            previous=previous,
            condition=method.condition(),
            other_budgets=ledger.beside,
            contents={Relation.ATTRIBUTES: fingerprint.rows},
        )
        steps_lost = method.step_entries() if lost_steps else []
        if lost := [replace(entry, steps=lost_steps) for entry in steps_lost]:
            request = book_lost(book, name, request, as_booked(lost, total))
        reservation = book.reserve(name, request)
        for entry in reservation.lost:  # as steps after the last checkpoint, they are lost
            ledger.book_lost(entry if method.relation == total else entry.by_edge())
        return BookedRun(book, name, total, reservation)


def reserve_at_once(
    setting: str | None,
    dataset: str | None,
    content: Identity,
    method: str,
    entries: Sequence[LedgerEntry],
    folder: Path,
) -> BookedRun:
    """Book a run of several parts at its whole cost, before the first of them.

    Args:
        setting: URL of the book; None takes that of the environment.
        dataset: Name of the data set; None recognizes the data.
        content: Canonical content of the data (private).
        method: Name of the run.
        entries: One pure or approximate entry for each relation; that of the data set is the first.
        folder: Folder of the run.

    Raises:
        BookError: If the book refuses it. Nothing is booked then.
    """
    url, relations = book_url(setting, dataset), [each.relation for each in entries]
    with _account(url, dataset, content, relations) as (book, name, total, fingerprint):
        first, *others = entries

        def plan(budget: Budget) -> list[LedgerEntry]:
            return as_booked([replace(first, event=Approximate(*budget)), *others], total)

        budget, *others_of = (Budget(e.event.pure_epsilon, e.event.total_delta) for e in entries)
        request = Request(
            method=method,
            settings=hashlib.sha256(method.encode()).hexdigest(),
            budget=budget,
            plan=plan,
            edges=fingerprint.edges,
            folder=str(folder.absolute()),
            other_budgets=dict(zip(relations[1:], others_of, strict=True)),
            contents={Relation.ATTRIBUTES: fingerprint.rows},
        )
        reservation = book.reserve(name, request)
        reservation.book(*plan(budget))
        return BookedRun(book, name, total, reservation)


@contextlib.contextmanager
def _account(
    url: str, dataset: str | None, content: Identity, relations: Sequence[Relation]
) -> Iterator[tuple[Book, str, Relation, Fingerprint]]:
    """Open a book at the data set of a run, and close it if the run is refused."""
    book = Book(url)
    try:
        fingerprint = book.fingerprint(content)
        name = _data_set(book, dataset, fingerprint, content, relations[0])
        if relations[1:]:
            _check_rows(book, name, fingerprint.rows)
        yield book, name, book.data_set(name).relation, fingerprint
    except BaseException:
        book.close()
        raise


def whole_plan(
    method: Released, steps: float, lost_steps: int = 0
) -> Callable[[Budget], list[LedgerEntry]]:
    """All releases of a run by its budget; a resumed run goes on with the noise of its checkpoint.

    Args:
        method: The method.
        steps: Private steps of the whole run.
        lost_steps: Steps that were made and are made again, as far as the budget pays for them.

    Raises:
        BookError: If their number is not known.
    """
    if steps == float("inf"):
        raise BookError("a budget book reserves whole plans: set trainer.max_epochs")
    now = {entry.key: entry for entry in method.step_entries()} if method.ledger.entries else {}

    def planned(budget: Budget, count: int) -> list[LedgerEntry]:
        entries: list[LedgerEntry] = method.plan(budget, count)
        return [
            replace(now[each.key], steps=each.steps) if each.key in now else each
            for each in entries
        ]

    def affords(budget: Budget, count: int) -> bool:
        try:
            return fits(planned(budget, count), budget)
        except BudgetTooSmall:
            return False

    def plan(budget: Budget) -> list[LedgerEntry]:
        more = range(int(steps) + 1, int(steps) + lost_steps + 1)
        paid = bisect_left(more, True, key=lambda count: not affords(budget, count))
        return planned(budget, int(steps) + paid)

    return plan


def _data_set(
    book: Book, chosen: str | None, fingerprint: Fingerprint, content: Identity, relation: str
) -> str:
    """Name of the data set of a run.

    Raises:
        BookError: If the data are not registered, or under another name than the one asked for.
    """
    names = book.names_of(fingerprint.edges)
    own, *others = (
        [name for name in names if book.data_set(name).relation == total]
        for total in _totals(relation)
    )
    if chosen is None:
        found = own or [name for each in others for name in each]
        if len(found) == 1:
            return found[0]
        raise _unregistered(book, fingerprint, content, relation)
    check_record(book.data_set(chosen), fingerprint.record)
    if own and not any(chosen in each for each in (own, *others)):
        raise BookError(
            f"{book.url}: these data are registered as {own[0]!r}, and privacy.dataset is "
            f"{chosen!r}\nset privacy.dataset to {own[0]}"
        )
    if chosen not in names:
        alike = [
            each.name
            for each in same_people(
                book.database, fingerprint, book.marks(content), *_totals(relation)
            )
        ]
        is_of_other = bool(alike) and chosen not in alike
        warnings.warn(
            f"the data differ from those registered as {chosen!r}: the run is booked on its total, "
            "as on a new version of data on the same people; register other data under another name"
            + (
                f" (they have the nodes of {alike[0]!r}, or most: did you mean --dataset {alike[0]}?)"
                * is_of_other
            ),
            stacklevel=2,
        )
    return chosen


def _totals(relation: str) -> list[str]:
    """Relations of the totals that a run can spend on, its own first: transfers pay for edges."""
    return [relation, *([Relation.TRANSFER] if relation == Relation.EDGE else [])]


def _check_rows(book: Book, name: str, content: str) -> None:
    """Refuse private columns that are on the total of other data; warn of a new version of them.

    Args:
        book: The book.
        name: Data set of the run.
        content: Fingerprint of the private columns.

    Raises:
        BookError: If another data set has a total of these columns.
    """
    names = book.names_of_rows(content)
    if names and name not in names:
        raise BookError(
            f"{book.url}: the private columns of these data are on the total of {names[0]!r}, and "
            f"the data set is {name!r}\ntwo totals of one person's columns add up: fit the data of "
            f"{names[0]!r}"
        )
    if not names and book.knows_rows_of(name):
        warnings.warn(
            f"the private columns differ from those of {name!r} before: they are booked on its total, "
            "as a new version of the columns of the same people",
            stacklevel=3,
        )


def _unregistered(
    book: Book, fingerprint: Fingerprint, content: Identity, relation: str
) -> BookError:
    """Say how to fit data that are not registered; the same people never get a new total."""
    lines = [f"{book.url}: these data are not registered for the relation {relation}"]
    alike = same_people(book.database, fingerprint, book.marks(content), *_totals(relation))
    dataset = next(iter(alike), None)
    register = "python -m lightning_dpg budget register NAME FILE ..."
    if dataset is not None:
        lines += [in_common(dataset, fingerprint, content), SAME_PEOPLE.format(dataset.name)]
    if dataset is None:
        lines.append(f"register them: {register}")
    elif not content.names:
        lines.append(f"other people: {register} --other-people")
    elif dataset.part_of:
        lines.append(f"if no edge is in both: {register} --part-of {dataset.part_of}")
    lines.append("or leave the book out: --no-book")
    return BookError("\n".join(lines))


def _digest(method: Released) -> str:
    """Digest of the class and the settings of a method."""
    settings = {key: value for key, value in method.hparams.items() if not key.startswith("_")}
    text = json.dumps([public_path(type(method)), settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


_SEARCH = 1 + 1e-4  # the smallest epsilon that is proved is searched for up to a tolerance


def book_lost(book: Book, name: str, request: Request, lost: Sequence[LedgerEntry]) -> Request:
    """Book releases of the run that a request continues, as a run that was stopped.

    Args:
        book: The book.
        name: Data set.
        request: Run that goes on.
        lost: Releases that its ledger does not hold.

    Returns:
        The request of the releases that are still to be made.

    Raises:
        BookError: If they are booked, and the total does not pay for them.
    """
    released = [*request.before, *lost]
    others = [entry for entry in released if entry.relation not in request.other_budgets]
    other_budgets = {
        relation: _that_holds([each for each in released if each.relation is relation], budget)
        for relation, budget in request.other_budgets.items()
    }
    budget = _that_holds(others, request.budget)
    stopped = request._replace(plan=lambda _: released, budget=budget, other_budgets=other_budgets)
    run = book.reserve(name, stopped, is_released=True)
    for entry in run.unreleased:  # the book may know some of them already
        run.book(entry)
    run.close("stopped")
    if book.is_exceeded(name):
        steps = sum(entry.steps for entry in lost)
        raise BookError(
            f"{name}: {steps} lost steps are booked, and exceed the total: the run does not go on"
        )
    earlier = [each for each in book.runs(name) if each.number != run.run]
    is_known = continued(earlier, request) is not None
    previous = request.previous if is_known else request.journal
    return request._replace(before=released, previous=previous)


def _that_holds(released: Sequence[LedgerEntry], budget: Budget) -> Budget:
    """The budget, or a larger one if the releases have exceeded it."""
    if composition.fits(released, budget):
        return budget
    return Budget(composition.headline(released, budget.delta)[0] * _SEARCH, budget.delta)
