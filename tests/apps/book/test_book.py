"""Runs on one data set share one total, whatever they are and wherever they run."""

from dataclasses import replace

import pytest

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.request import Request
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Gaussian, Relation
from tests.entries import entry


def pure(epsilon, steps=1, **changes):
    return entry("pure", epsilon=epsilon, steps=steps, **({"name": "counts"} | changes))


def asked(*plan, epsilon=None, delta=0.0, **changes):
    """A run that plans some releases."""
    epsilon = sum(entry.pure_epsilon for entry in plan) if epsilon is None else epsilon
    budget = Budget(epsilon, delta)
    return Request("BTER", "settings", budget, lambda budget: plan, edges="e", **changes)


def new(url, epsilon=2.0, delta=1e-6, relation=Relation.EDGE, **changes):
    book = Book(url, is_new=True)
    total = Budget(epsilon, delta)
    owner.register(book, "crm", Fingerprint("e", "n"), total=total, relation=relation, **changes)
    return book


def test_runs_are_added_up_and_refused_beyond_the_total(url):
    book = new(url)
    for _ in range(2):
        run = book.reserve("crm", asked(pure(0.75)))
        assert book.left("crm") == pytest.approx(2 - 0.75 * run.run)  # reserved counts
        run.book(pure(0.75))
        run.close("ended", "digest")
    with pytest.raises(BookError, match=r"one pure release of epsilon 0\.5\n"):
        book.reserve("crm", asked(pure(0.75)))
    assert [run.outcome for run in book.runs("crm")] == ["ended", "ended"]
    last = book.reserve("crm", asked(pure(0.5)))
    assert last.run == 3
    assert book.left("crm") == 0


def test_a_run_gives_back_what_it_did_not_release(url):
    book = new(url)
    run = book.reserve("crm", asked(pure(0.5), pure(0.25, steps=4, name="steps")))
    run.book(pure(0.25, name="steps"))
    run.book(pure(0.25, steps=2, name="steps"))
    assert book.left("crm") == pytest.approx(0.5)
    run.close("stopped")
    assert book.left("crm") == pytest.approx(1.25)
    assert [(e.event.pure_epsilon, e.steps) for e in book.runs("crm")[0].booked] == [(0.25, 3)]


def test_a_release_that_was_not_reserved_is_refused(url):
    book = new(url)
    run = book.reserve("crm", asked(pure(0.5)))
    with pytest.raises(BookError, match="more than the run has reserved"):
        run.book(pure(0.5, steps=2))
    run.book(pure(0.5))
    with pytest.raises(BookError, match="more than the run has reserved"):
        run.book(pure(0.5))
    run.close("ended")
    assert book.left("crm") == 1.5


def test_what_cannot_be_booked_is_refused_and_books_nothing(url):
    book = new(url)
    noise = replace(pure(0.0), event=Gaussian(1e3))  # delta underflows
    for request, message in [
        (asked(pure(0.5, relation=Relation.NODE)), "relation edge.*relation node"),
        (asked(), "plans no release"),
        (asked(pure(1.0), epsilon=0.5), "more than its own budget"),
        (asked(noise, epsilon=0.5), "more than its own budget"),
        (asked(pure(0.5, record="directed edge")), "one directed edge only"),
    ]:
        with pytest.raises(BookError, match=message):
            book.reserve("crm", request)
    with pytest.raises(BookError, match="no data set 'crn', did you mean crm"):
        book.reserve("crn", asked(pure(0.5)))
    assert not book.runs()


def test_the_refusal_names_the_largest_budget_that_is_left(url):
    book = new(url)
    book.reserve("crm", asked(pure(1.5)))
    request = Request("BTER", "", Budget(1.0, 0.0), lambda budget: [pure(budget.epsilon)], "e")
    with pytest.raises(BookError, match=r"set privacy\.epsilon to 0\.5 or less") as refused:
        book.reserve("crm", request)
    assert "reserved now by run 1 of" in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 5


def test_the_same_data_have_one_total_for_each_relation(url):
    book = new(url)
    same, other = Fingerprint("e", "other nodes"), Fingerprint("f", "n")
    values = {"total": Budget(1.0, 0.0)}
    with pytest.raises(BookError, match="registered as 'crm' already"):
        owner.register(book, "again", same, relation=Relation.EDGE, **values)
    with pytest.raises(BookError, match="there is a data set 'crm'"):
        owner.register(book, "crm", other, relation=Relation.EDGE, **values)
    owner.register(book, "people", same, relation=Relation.NODE, **values)
    assert book.names_of("e") == ["crm", "people"]
    book.reserve("people", asked(pure(1.0, relation=Relation.NODE)))
    assert book.left("crm") == 2.0


def test_a_book_is_made_once_and_found_by_others(url):
    book = new(url)
    with pytest.raises(BookError, match="there is a book already"):
        Book(url, is_new=True)
    again = Book(url)
    assert again.data_set("crm") == book.data_set("crm")
    content = Identity(b"edges", b"nodes")
    assert again.fingerprint(content) == book.fingerprint(content)


def test_a_book_of_a_newer_version_is_refused(url):
    book = new(url)
    book.database.rows("UPDATE book_facts SET value = '99' WHERE name = 'version'")
    with pytest.raises(BookError, match="a book of version 99"):
        Book(url)
