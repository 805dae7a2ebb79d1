"""A book that was changed is found, with the line, and nothing is spent on it."""

import os
import sqlite3
import stat

import pytest

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.log import lines
from lightning_dpg.apps.book.store import append, faults
from lightning_dpg.errors import BookError
from tests.apps.book.small_book import append_by_hand
from tests.apps.book.test_book import asked, new, pure


@pytest.fixture
def book(url):
    """A book of 7 lines: one of the registration, and three of each of two runs."""
    made = new(url)
    for _ in range(2):
        run = made.reserve("crm", asked(pure(0.5)))
        run.book(pure(0.5))
        run.close("ended")
    assert faults(made.database) == []
    return made


def change(book):
    book.database.rows("UPDATE book_log SET body = REPLACE(body, '0.5', '0.1') WHERE line = ?", 5)


def remove(book):
    book.database.rows("DELETE FROM book_log WHERE line = ?", 3)


def insert(book):
    """A line that shifts all others, with a hash of its own."""
    old = lines(book.database)[3]
    for line in range(7, 3, -1):
        book.database.rows("UPDATE book_log SET line = ? WHERE line = ?", line + 1, line)
    third = lines(book.database)[2]
    new_line = old._replace(previous=third.hash)
    new_line = new_line._replace(hash=new_line.computed)
    book.database.rows("INSERT INTO book_log VALUES (?, ?, ?, ?, ?, ?)", *new_line)


def forge(book):
    """A changed line whose hash is made anew: the next one does not follow."""
    old = lines(book.database)[1]
    forged = old._replace(body=old.body.replace("0.5", "0.4"))
    book.database.rows(
        "UPDATE book_log SET body = ?, hash = ? WHERE line = 2", forged.body, forged.computed
    )


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (change, "line 5: its hash"),
        (remove, "line 3: removed"),
        (insert, "line 5: its hash"),
        (forge, "line 3: does not follow line 2"),
    ],
)
def test_tampered_logs_are_found_with_the_line(book, tamper, expected):
    tamper(book)
    found = faults(book.database)
    assert found[0].startswith(expected), found
    with pytest.raises(BookError, match=f"nothing is spent on it: {expected}"):
        book.reserve("crm", asked(pure(0.5)))


def test_lines_cut_off_at_the_end_are_found(book):
    book.database.rows("DELETE FROM book_log WHERE line >= 6")
    assert faults(book.database) == ["line 6: removed, with all lines up to 7"]
    with pytest.raises(BookError, match="nothing is spent on it: line 6: removed"):
        book.reserve("crm", asked(pure(0.5)))


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE book_head SET hash = '0'",
        "UPDATE book_head SET line = 6",
        "DELETE FROM book_head",
        "INSERT INTO book_head SELECT * FROM book_head",
    ],
)
def test_an_edited_head_is_found(book, edit):
    book.database.rows(edit)
    with pytest.raises(BookError, match="nothing is spent on it: line 7: is not the last"):
        book.reserve("crm", asked(pure(0.5)))


def test_a_change_of_an_early_line_is_found_at_the_next_reservation_of_an_open_book(book):
    """Although the book has read all lines before, and reads only new ones in between."""
    other = Book(book.url)
    book.database.rows("UPDATE book_log SET body = REPLACE(body, '2.0', '9.0') WHERE line = 1")
    assert book.left("crm") == 1.0
    assert other.left("crm") == 8.0  # what it shows, with a warning
    for place in (book, other):
        with pytest.raises(BookError, match="nothing is spent on it: line 1: its hash"):
            place.reserve("crm", asked(pure(0.5)))


@pytest.mark.parametrize(
    "exchange",
    ["DELETE FROM book_log WHERE line = 7", "UPDATE book_log SET hash = '0' WHERE line = 7"],
)
def test_an_open_book_refuses_another_history(book, exchange):
    book.database.rows(exchange)
    with pytest.raises(BookError, match="line 7 is gone, or is another one"):
        book.left("crm")


def test_what_a_write_that_failed_has_said_is_forgotten(book):
    with pytest.raises(RuntimeError), book.database.write():
        append(book.database, "close_data_set", name="crm", user="ann")
        assert book.data_set("crm").closed
        raise RuntimeError
    assert book.data_set("crm").closed is None
    assert faults(book.database) == []


def test_a_clock_that_runs_back_is_refused(book):
    with book.database.write():
        book.database.rows("UPDATE book_log SET time = '2999-01-01T00:00:00+00:00' WHERE line = 7")
    book = Book(book.url)
    with pytest.raises(BookError, match="set the clock"), book.database.write():
        append(book.database, "close_data_set", name="crm", user="ann")
    assert len(lines(book.database)) == 7


def test_times_never_decrease(book):
    log = lines(book.database)
    late = log[0]._replace(time="2998-01-01T00:00:00+00:00")
    late = late._replace(hash=late.computed)
    after = log[1]._replace(previous=late.hash)
    after = after._replace(hash=after.computed)
    assert after.fault_after(late).startswith("line 2: its time")


def test_a_damaged_file_spends_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    book = new(url)
    for _ in range(40):
        book.reserve("crm", asked(pure(0.01))).close("stopped")
    book.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    ((page,),) = book.database.rows("SELECT rootpage FROM sqlite_master WHERE name = 'book_log'")
    book.close()
    with open(tmp_path / "book.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    book = Book(url)
    assert faults(book.database)[0].startswith("line 1: cannot be read")
    with pytest.raises(BookError, match="nothing is spent"):
        book.reserve("crm", asked(pure(0.5)))


def test_other_files_and_urls_are_refused(tmp_path, monkeypatch):
    with pytest.raises(BookError, match="no such book"):
        Book(f"sqlite:///{tmp_path}/none.db")
    (tmp_path / "graph.txt").write_text("1 2\n" * 100)
    with pytest.raises(BookError, match="not a database"):
        Book(f"sqlite:///{tmp_path}/graph.txt")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").close()
    with pytest.raises(BookError, match="no book\n"):
        Book(f"sqlite:///{tmp_path}/other.db")
    assert (tmp_path / "graph.txt").read_text() == "1 2\n" * 100


LATER = [
    ("close", {"run": 1, "outcome": "stopped", "booked": [0], "release": None}),
    ("close", {"run": 3, "outcome": "stopped", "booked": [-1], "release": None}),
    ("close", {"run": 3, "outcome": "stopped", "booked": [], "release": None}),
    ("book", {"run": 3, "place": 0, "steps": -1}),
    ("book", {"run": 1, "place": 0, "steps": -1}),
]


@pytest.mark.parametrize(("kind", "facts"), LATER)
def test_no_later_line_takes_back_what_was_spent(book, kind, facts):
    """As of somebody who can write to the file: hashes that were kept elsewhere stay true."""
    book.reserve("crm", asked(pure(0.5)))
    with pytest.raises(ValueError), book.database.write():
        append(book.database, kind, **facts)
    append_by_hand(book, kind, facts)
    assert faults(book.database)[0].startswith("line 9: cannot be read (")


def test_another_key_of_the_book_is_found(book):
    """With it the data are unknown, and could be registered once more."""
    book.database.rows("UPDATE book_facts SET value = ? WHERE name = 'secret'", "ab" * 32)
    assert faults(book.database) == ["line 1: registered under another key than that of the book"]
    with pytest.raises(BookError, match="nothing is spent"):
        book.reserve("crm", asked(pure(0.5)))
    book.database.rows("UPDATE book_facts SET value = 'no key' WHERE name = 'secret'")
    with pytest.raises(BookError, match="the key of the book is gone"):
        book.reserve("crm", asked(pure(0.5)))


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are those of POSIX")
def test_users_of_one_file_can_take_the_lock_of_a_killed_run(tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    new(url).close()
    (tmp_path / "book.db").chmod(0o660)
    book = Book(url)
    before = os.umask(0o077)
    try:
        book.reserve("crm", asked(pure(0.5)))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "book.db.run-1.lock").stat().st_mode) == 0o660
