"""Budgets that a plan names are let in by the book, and slightly larger ones are not."""

import pytest

from lightning_dpg.book.book import Book
from lightning_dpg.book.database import BookError
from lightning_dpg.book.outlook import Steps, gaussian_share, pure_share
from lightning_dpg.book.request import Request
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import LedgerEntry, Relation
from tests.small_book import entry, new_book, run

SAMPLED, SINGLE = Steps(sample_rate=0.1, count=50), Steps()


def share(book, releases, steps):
    known, runs = book.data_set("crm"), book.runs("crm")
    if steps is None:
        return pure_share(known, runs, releases)
    return gaussian_share(known, runs, releases, steps)


def let_in(book, budget, releases, steps):
    """How many runs of a budget the book lets in, one after another."""

    def plan(budget):
        if steps is None:
            return [entry(budget.epsilon)]
        rate, count = steps
        sigma = calibrate_noise_multiplier(budget, sample_rate=rate, steps=count)
        return [
            LedgerEntry(
                name="steps",
                mechanism="gaussian",
                noise_multiplier=sigma,
                sample_rate=rate,
                steps=count,
                relation=Relation.EDGE,
                sensitivity=1.0,
                proof="by hand",
            )
        ]

    request = Request("DPNetGAN", "settings", budget, plan, edges="edges of crm")
    for done in range(releases):
        try:
            made = book.reserve("crm", request)
        except BookError:
            return done
        made.book(plan(budget)[0])
        made.close("ended")
    return releases


@pytest.mark.parametrize("before", [None, 0.5])
@pytest.mark.parametrize(
    ("steps", "releases"),
    [(None, 1), (None, 2), (None, 12), (SINGLE, 1), (SINGLE, 4), (SAMPLED, 2)],
)
def test_what_is_named_is_let_in_and_little_more_is_not(tmp_path, before, steps, releases):
    books = []
    for name in ("named", "more"):
        book = new_book(f"sqlite:///{tmp_path}/{name}.db")
        if before:
            run(book, entry(before))
        books.append(book)
    found = share(books[0], releases, steps)
    assert found.budget.epsilon > 0
    assert let_in(books[0], found.budget, releases, steps) == releases
    more = Budget(found.budget.epsilon * 1.011, found.budget.delta)
    assert let_in(books[1], more, releases, steps) < releases


def test_pure_shares_of_a_small_total_are_equal_parts(tmp_path):
    """Renyi composition gains nothing for few releases: the parts are those of a sum."""
    book = new_book(f"sqlite:///{tmp_path}/book.db", epsilon=2.0)
    run(book, entry(0.5))
    parts = [share(book, releases, None).budget.epsilon for releases in (1, 2, 4)]
    assert parts == [1.5, 0.75, 0.375]


def test_nothing_is_left(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db", delta=0.0)
    assert share(book, 2, SINGLE).budget.epsilon == 0
    run(book, entry(2.0))
    assert share(book, 1, None).budget.epsilon == 0


def test_the_rest_of_delta_is_shared_after_a_run_with_all_of_it(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    assert let_in(book, Budget(1.0, 9e-7), 1, SINGLE) == 1
    again = Book(f"sqlite:///{tmp_path}/book.db")
    assert again.data_set("crm").rule in ("split", "sum")
    found = share(again, 1, SINGLE)
    assert let_in(again, found.budget, 1, SINGLE) == 1
