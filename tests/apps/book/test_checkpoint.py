"""A reservation verifies from the last verified line on, and finds what moves its decision."""

import pytest

from lightning_dpg.apps.book import checkpoint, log
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.checkpoint import new_faults
from lightning_dpg.apps.book.verification import faults, faults_of
from lightning_dpg.errors import BookError
from tests.apps.book.test_book import asked, new, pure


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book verified up to line 9, of an open run, and with six lines after it."""
    monkeypatch.setattr(checkpoint, "EVERY", 1)
    made = new(f"sqlite:///{tmp_path}/book.db")
    for _ in range(2):
        spend(made)
    made.reserve("crm", asked(pure(0.25, steps=2))).book(pure(0.25))
    assert new_faults(made.database) == []
    monkeypatch.setattr(checkpoint, "EVERY", 100)
    for _ in range(2):
        spend(made)
    return made


def spend(book):
    run = book.reserve("crm", asked(pure(0.125)))
    run.book(pure(0.125))
    run.close("ended", "digest")


def edit(statement):
    return lambda book: book.database.rows(statement)


@pytest.mark.parametrize(
    "tamper",
    [
        edit("UPDATE book_datasets SET epsilon = 100"),
        edit("UPDATE book_entries SET booked = 0 WHERE run = 1"),  # closed when it was verified
        edit("UPDATE book_entries SET booked = 0 WHERE run = 3"),  # open then
        edit("UPDATE book_entries SET booked = 0 WHERE run = 4"),  # began later
        edit("DELETE FROM book_runs WHERE run = 2"),
        edit("UPDATE book_runs SET outcome = 'ended' WHERE run = 3"),
        edit("UPDATE book_log SET body = REPLACE(body, '125', '1') WHERE line = 10"),
        edit("UPDATE book_log SET body = REPLACE(body, 'steps', 'step') WHERE line = 9"),
        edit("DELETE FROM book_log WHERE line = 11"),
        edit("DELETE FROM book_log WHERE line > 12"),
        edit("DELETE FROM book_log WHERE line > 5"),
    ],
)
def test_what_moves_a_decision_is_found(book, tamper):
    tamper(book)
    assert new_faults(book.database) == faults(book.database) != []
    with pytest.raises(BookError, match="nothing is spent"):
        book.reserve("crm", asked(pure(0.125)))


def test_a_change_of_an_earlier_line_is_found_by_verify_only(book):
    edit("UPDATE book_log SET body = REPLACE(body, '125', '1') WHERE line = 2")(book)
    assert new_faults(book.database) == []
    assert faults(book.database)[0].startswith("line 2: its hash")
    assert book.left("crm") == 1.0  # as before: the tables are what counts


def test_a_checkpoint_that_the_key_has_not_sealed_is_not_used(book):
    state = book.database.rows("SELECT state FROM book_verified")[0][0]
    book.database.rows("UPDATE book_datasets SET epsilon = 100")
    assert "2.0" in state
    book.database.rows("UPDATE book_verified SET state = ?", state.replace("2.0", "100.0"))
    assert new_faults(book.database) == faults(book.database) != []


def test_only_later_lines_are_read(book, monkeypatch):
    hashed = []
    compute = log._hash
    monkeypatch.setattr(
        log, "_hash", lambda line, *rest: hashed.append(line) or compute(line, *rest)
    )
    assert new_faults(book.database) == []
    assert set(hashed) == set(range(9, 16))


def test_checkpoints_move_on_with_all_that_runs_do(url, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 1)
    monkeypatch.setattr(checkpoint, "faults_of", lambda found: used.append(1) or faults_of(found))
    used = []
    book = new(url)
    first = book.reserve("crm", asked(pure(0.25, steps=2)))
    killed = Book(url)
    killed.reserve("crm", asked(pure(0.25)))
    killed.close()
    spend(book)
    first.book(pure(0.25))
    first.close("stopped")
    spend(book)
    assert new_faults(book.database) == []
    assert [run.outcome for run in book.runs()] == ["stopped", "killed", "ended", "ended"]
    assert len(used) == 1  # everything was verified once, at the first reservation
