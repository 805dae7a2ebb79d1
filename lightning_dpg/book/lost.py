"""Booking of lost releases: an earlier run made them, and no journal shows them."""

from collections.abc import Sequence

from lightning_dpg.book.book import Book
from lightning_dpg.book.request import Request, continued
from lightning_dpg.errors import BookError
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry

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
    others = [entry for entry in released if entry.relation not in request.beside]
    beside = {
        relation: _that_holds([each for each in released if each.relation is relation], budget)
        for relation, budget in request.beside.items()
    }
    budget = _that_holds(others, request.budget)
    stopped = request._replace(plan=lambda _: released, budget=budget, beside=beside)
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
