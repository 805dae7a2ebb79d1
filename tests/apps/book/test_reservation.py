"""A run books blocks of steps ahead: the book never knows less than was made, and is exact at the end."""

import shutil
from pathlib import Path

import pytest

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.store import faults
from lightning_dpg.errors import BookError
from tests.apps.book.test_book import asked, new, pure

COST = 0.001


class Clock:
    """Time of a run whose steps take as long as the test says."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("lightning_dpg.apps.book.reservation.time", made)
    return made


def shown(book):
    """Steps that others see as booked."""
    (run,) = book.runs("crm")
    return [each.booked for each in run.planned]


def test_blocks_grow_to_half_a_second_and_shrink_with_slow_steps(url, clock):
    book = new(url)
    other, run = Book(url), book.reserve("crm", asked(pure(COST, steps=30)))
    ahead = []
    for seconds in [0.125] * 20 + [0.75] * 7:
        run.book(pure(COST))
        ahead.append(shown(other)[0])
        clock.now += seconds
    # Blocks of 1, 2, and of the four steps that half a second makes; of one when steps are slow.
    fours = [booked for booked in (7, 11, 15, 19, 23) for _ in range(4)]
    assert ahead == [1, 3, 3, *fours, 24, 25, 26, 27]
    assert all(booked >= made for made, booked in enumerate(ahead, start=1))
    run.close("ended")
    assert shown(other) == [27]
    assert faults(book.database) == []


def test_each_release_of_a_step_has_blocks_of_its_own_within_the_plan(url, clock):
    book = new(url)
    first, second = pure(COST, name="degrees"), pure(2 * COST, name="gradients")
    plan = [pure(COST, steps=6, name="degrees"), pure(2 * COST, steps=6, name="gradients")]
    other, run = Book(url), book.reserve("crm", asked(*plan))
    for step in range(6):
        for release in (first, second):
            run.book(release)
        assert shown(other) == [[1, 1], [3, 3], [3, 3], [6, 6], [6, 6], [6, 6]][step]
        clock.now += 0.01
    for release in (first, second):
        with pytest.raises(BookError, match="more than the run has reserved"):
            run.book(release)


def test_a_release_of_many_steps_is_booked_whole(url, clock):
    book = new(url)
    other, run = Book(url), book.reserve("crm", asked(pure(COST, steps=9)))
    run.book(pure(COST, steps=7))
    assert shown(other) == [7]


def test_a_killed_run_keeps_its_block_whatever_its_journal_shows(url, clock, tmp_path):
    """Its user can cut the journal off; the book was told first."""
    book = new(url)
    journal = tmp_path / "ledger.jsonl"
    journal.write_text("")
    run = book.reserve("crm", asked(pure(COST, steps=30), journal=journal))
    for _ in range(5):
        run.book(pure(COST))
    book.close()  # as the end of a process does
    other = Book(url)
    assert other.reconcile() == [1]
    assert other.left("crm") == pytest.approx(2 - 7 * COST)


def removed(path):
    path.unlink()


def exchanged(path):
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def after_two_of_30_steps(book):
    run = book.reserve("crm", asked(pure(COST, steps=30)))
    for _ in range(2):
        run.book(pure(COST))
    return run


@pytest.mark.parametrize("lose", [removed, exchanged])
def test_a_run_whose_book_is_removed_or_exchanged_stops_before_its_next_step(lose, tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    run = after_two_of_30_steps(new(url))
    lose(Path(tmp_path / "book.db"))
    with pytest.raises(BookError, match="removed or exchanged while it was in use") as stopped:
        run.book(pure(COST))  # is within the block
    assert len(str(stopped.value).splitlines()) <= 5
    with pytest.raises(BookError, match="removed or exchanged"):
        run.close("ended")


def test_a_run_whose_book_goes_back_in_time_stops_before_its_next_block(url, clock):
    """As after a backup was restored into the same file or database."""
    book = new(url)
    run = after_two_of_30_steps(book)
    with book.database.write():
        book.database.rows("DELETE FROM book_log WHERE line = 4")
        book.database.rows("UPDATE book_head SET line = 3")
    run.book(pure(COST))  # was booked before
    with pytest.raises(BookError, match="line 4 is gone, or is another one") as stopped:
        run.book(pure(COST))
    assert len(str(stopped.value).splitlines()) <= 5


def test_a_run_that_loses_its_server_stops_within_its_block(server_url, clock):
    book = new(server_url)
    run = after_two_of_30_steps(book)
    ((backend,),) = book.database.rows("SELECT pg_backend_pid()")
    other = Book(server_url)
    other.database.rows(f"SELECT pg_terminate_backend({backend}, 5000)")
    run.book(pure(COST))  # was booked before
    with pytest.raises(BookError) as stopped:
        run.book(pure(COST))
    assert len(str(stopped.value).splitlines()) <= 5
    with pytest.raises(BookError):
        run.close("stopped")
    book.close()
    assert other.reconcile() == [1]
    assert shown(other) == [30]  # it had no journal
