"""A run and those that continue it share one budget, and no release is left out of it."""

import pytest

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.request import Request
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from tests.apps.book.test_book import asked, new, pure
from tests.entries import entry

SIGMA = 10 * calibrate_gaussian(Budget(0.5, 1e-7))  # a hundred steps are (0.5, 1e-7)


def steps(number, **changes):
    return entry(**({"name": "steps", "noise_multiplier": SIGMA, "steps": number} | changes))


def training(journal, *made, previous=None, epsilon=0.5, plan=None):
    """A run of a hundred steps; ``made`` is what its checkpoint and the journal beside it show."""
    whole = [steps(100)] if plan is None else plan
    budget = Budget(epsilon, 1e-7)
    return Request(
        "GAN", "", budget, lambda _: whole, "e", "", journal, before=made, previous=previous
    )


@pytest.fixture
def book(tmp_path):
    return new(f"sqlite:///{tmp_path}/book.db", epsilon=0.5)


@pytest.fixture
def stopped(book, tmp_path):
    """The journal of a run that was stopped after 40 of its 100 steps, which use up the total."""
    journal = tmp_path / "ledger.jsonl"
    run = book.reserve("crm", training(journal))
    run.book(steps(40))
    run.close("stopped")
    return journal


def shown(book):
    return sum(entry.steps for run in book.runs("crm") for entry in run.owed_entries)


def test_a_resumed_run_shares_the_budget(book, stopped, tmp_path):
    again = tmp_path / "again.jsonl"
    run = book.reserve("crm", training(again, steps(40), previous=stopped))
    assert shown(book) == 100
    run.book(steps(50))
    run.close("stopped")
    book.reserve("crm", training(tmp_path / "last.jsonl", steps(90), previous=again))
    assert [run.family for run in book.runs("crm")] == [1, 1, 1]
    assert shown(book) == 100


def test_two_runs_that_go_on_from_one_checkpoint_do_not_share_it(book, stopped, tmp_path):
    """RunCosts they would make 160 steps at the price of 100."""
    request = training(tmp_path / "one.jsonl", steps(40), previous=stopped)
    book.reserve("crm", request)
    with pytest.raises(BookError, match="does not pay for GAN"):
        book.reserve("crm", request._replace(journal=tmp_path / "other.jsonl"))
    assert shown(book) == 100


@pytest.mark.parametrize(
    "changed", [{"plan": [steps(101)]}, {"plan": [steps(99, noise_multiplier=0.999 * SIGMA)]}]
)
def test_another_plan_is_another_run(book, stopped, tmp_path, changed):
    """It was chosen after the first steps were seen, which no accountant of fixed plans covers."""
    request = training(tmp_path / "again.jsonl", steps(40), previous=stopped, **changed)
    with pytest.raises(BookError, match="does not pay for GAN"):
        book.reserve("crm", request)


def test_a_journal_in_the_folder_of_an_earlier_run_is_that_of_the_last(book, tmp_path):
    journal = tmp_path / "ledger.jsonl"
    for epsilon in (0.1, 0.2):  # both in one folder
        run = book.reserve("crm", asked(pure(epsilon, steps=2), journal=journal))
        run.book(pure(epsilon))
        run.close("stopped")
    resumed = asked(pure(0.2, steps=2), journal=journal, before=[pure(0.2)], previous=journal)
    book.reserve("crm", resumed)
    assert [run.family for run in book.runs("crm")] == [1, 2, 2]


def test_a_step_that_only_the_book_shows_is_lost(stopped, book, tmp_path):
    """As of a run that was killed after it had booked a step, and before it wrote the journal."""
    run = book.reserve("crm", training(tmp_path / "again.jsonl", steps(37), previous=stopped))
    assert run.lost == [steps(3)]
    assert shown(book) == 100
    run.book(steps(59))
    assert run.affords([steps(1)])
    run.book(steps(1))
    assert not run.affords([steps(1)])  # so that training ends before the step is refused


def test_a_restored_book_takes_the_steps_of_a_journal_that_began_elsewhere(book, tmp_path):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = tmp_path / "ledger.jsonl"
    ledger.spend(pure(0.05, steps=3))  # before there was a book
    request = asked(pure(0.05, steps=8), journal=ledger.journal, before=list(ledger.entries))
    book.reserve("crm", request)
    ledger.spend(pure(0.05, steps=2))  # booked, and lost with the end of the book's file
    book.close()
    other = Book(book.url)
    other.reconcile()
    assert other.left("crm") == pytest.approx(0.5 - 5 * 0.05)


def test_steps_without_the_book_are_counted_after_a_second_resume(book, stopped, tmp_path):
    """40 steps of the first run and 20 of the second are in the book, and 10 more are not."""
    again = tmp_path / "again.jsonl"
    run = book.reserve("crm", training(again, steps(40), previous=stopped))
    run.book(steps(20))
    run.close("stopped")
    book.reserve("crm", training(tmp_path / "last.jsonl", steps(70), previous=again)).close(
        "stopped"
    )
    assert shown(book) == 70


def test_a_family_that_began_in_another_one_loses_its_block_only(tmp_path):
    """A second run has another budget, and is killed with 20 steps in the book beyond its journal."""
    book = new(f"sqlite:///{tmp_path}/book.db", epsilon=1.0)
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    run = book.reserve("crm", training(first))
    run.book(steps(30))
    run.close("stopped")
    run = book.reserve("crm", training(again, steps(30), previous=first, epsilon=0.51))
    run.book(steps(40))
    run.close("stopped")
    resumed = training(tmp_path / "last.jsonl", steps(50), previous=again, epsilon=0.51)
    run = book.reserve("crm", resumed)
    assert [each.family for each in book.runs("crm")] == [1, 2, 2]
    assert run.lost == [steps(20)]
    assert run.unreleased == [steps(30)]


def test_a_block_that_was_lost_is_lost_once(book, stopped, tmp_path):
    """The journal of a resumed run shows the lost steps, which are no steps of its own."""
    again = tmp_path / "again.jsonl"
    run = book.reserve("crm", training(again, steps(30), previous=stopped))
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = again
    for made in (steps(30), *run.lost, steps(20)):  # 10 steps are lost
        ledger.spend(made)
    run.book(steps(20))
    book.close()
    other = Book(book.url)
    other.reconcile()
    assert shown(other) == 40 + 20


def test_a_killed_run_of_another_machine_waits_for_it(book, tmp_path, monkeypatch):
    """Its journal is on a disk of that machine: here it would keep its whole plan."""
    run = book.reserve("crm", training(tmp_path / "ledger.jsonl"))
    run.book(steps(1))
    book.close()
    (tmp_path / "ledger.jsonl").write_text("")  # nothing was released
    other = Book(book.url)
    with monkeypatch.context() as there:
        there.setattr("socket.gethostname", lambda: "elsewhere")
        (tmp_path / "ledger.jsonl").rename(tmp_path / "away")
        assert other.reconcile() == []
    (tmp_path / "away").rename(tmp_path / "ledger.jsonl")
    assert other.reconcile() == [1]
    assert shown(other) == 1


@pytest.mark.parametrize("original_first", [True, False])
def test_a_copied_run_folder_shares_no_budget_with_the_original(
    book, stopped, tmp_path, original_first
):
    """RunCosts they would make 160 steps at the price of 100."""
    copied = tmp_path / "copy" / "ledger.jsonl"
    copied.parent.mkdir()
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = stopped
    ledger.spend(steps(40))
    copied.write_bytes(stopped.read_bytes())
    places = [stopped, copied] if original_first else [copied, stopped]
    made = 40
    for place in places:
        request = training(place, steps(40), previous=place)
        try:
            run = book.reserve("crm", request)
        except BookError:
            continue
        for _ in range(60):
            if run.affords([steps(1)]):
                run.book(steps(1))
                made += 1
        run.close("ended")
    assert made <= 100
    assert shown(book) >= made
