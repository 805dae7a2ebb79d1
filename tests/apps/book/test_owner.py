"""The owner's side of a book: grants, the two-person rule, closed data sets, and the token."""

import os
import stat

import pytest

from lightning_dpg.apps.book import owner as owner_acts
from lightning_dpg.apps.book import sqlite_file, terminal
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.export import csv_text
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.log import Line, lines
from lightning_dpg.apps.book.owner_token import owner_faults
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.refusals import check_record
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.store import faults
from lightning_dpg.errors import BookError, Refusal
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import append_by_hand
from tests.apps.book.test_book import asked, new, pure
from tests.entries import entry


@pytest.fixture
def become(monkeypatch):
    """Change the user that SQLite books see."""

    def change(user):
        monkeypatch.setattr(sqlite_file, "system_user", lambda: user)

    change("owner")
    return change


@pytest.fixture
def file(tmp_path):
    return f"sqlite:///{tmp_path}/book.db"


def spend(book, epsilon, **changes):
    run = book.reserve("crm", asked(pure(epsilon), **changes))
    run.book(pure(epsilon))
    run.close("ended")


def test_no_run_is_let_into_a_closed_data_set_and_open_ones_end(url):
    book = new(url)
    run = book.reserve("crm", asked(pure(0.5)))
    owner_acts.close_data_set(book, "crm")
    with pytest.raises(
        BookError, match=r"crm: closed at 20.* UTC by \w+: no further run"
    ) as refused:
        book.reserve("crm", asked(pure(0.5)))
    assert book.data_set("crm").closed[:16].replace("T", " ") in str(refused.value)
    run.book(pure(0.5))
    run.close("ended")
    assert [run.outcome for run in book.runs("crm")] == ["ended"]
    for again in (
        lambda name: owner_acts.close_data_set(book, name),
        lambda name: owner_acts.grant(book, name, "ann", Budget(1.0, 0.0)),
    ):
        with pytest.raises(BookError, match="crm: closed at"):
            again("crm")
    assert [line.kind for line in lines(book.database)] == [
        "register",
        "reserve",
        "close_data_set",
        "book",
        "close",
    ]
    assert faults(book.database) == []


def test_a_retracted_release_stays_spent_and_the_book_says_why(url):
    book = new(url)
    spend(book, 0.5)
    run = book.reserve("crm", asked(pure(0.25)))
    for number in (2, 3):  # open, and none
        with pytest.raises(Refusal, match=f"run {number} is open, retracted already, or not in"):
            owner_acts.retract(book, number, "names")
    before = summary(book, "crm")
    owner_acts.retract(book, 1, "names of nodes")
    with pytest.raises(Refusal, match="run 1 is open, retracted already"):
        owner_acts.retract(book, 1, "again")
    found = summary(book, "crm")
    assert (found["spent"], found["left"]) == (before["spent"], before["left"]) == (0.5, 1.25)
    assert [each["retracted"] for each in found["releases"]] == ["names of nodes", None]
    shown = terminal.lines(found)
    said = "the release of run 1 was retracted (names of nodes), and stays spent"
    assert said in shown and any("retracted  BTER" in line for line in shown)
    assert f"T{said[1:]}." in page(book, ["crm"])
    assert csv_text(book, ["crm"]).splitlines()[1].count("names of nodes") == 1
    run.close("ended")
    assert faults(book.database) == []


def test_each_user_spends_up_to_the_grant(file, become):
    book = new(file)
    spend(book, 0.25)  # without grants everybody may
    owner_acts.grant(book, "crm", "ann", Budget(0.5, 0.0))
    owner_acts.grant(book, "crm", "bob", Budget(1.75, 0.0))
    with pytest.raises(
        BookError, match="only users with a grant may spend on it, and owner has none"
    ):
        spend(book, 0.25)
    become("ann")
    spend(book, 0.375)
    with pytest.raises(
        BookError, match=r"granted: epsilon 0\.5, delta 0; left: epsilon 0\.125, delta 0"
    ):
        spend(book, 0.25)
    spend(book, 0.125)
    become("bob")  # granted more than is left: the total stays the ceiling
    with pytest.raises(BookError, match=r"left: one pure release of epsilon 1\.25\n"):
        spend(book, 1.5)
    spend(book, 1.25)
    assert book.left("crm") == 0


def test_a_later_grant_replaces_an_earlier_one(file, become):
    book = new(file)
    owner_acts.grant(book, "crm", "owner", Budget(0.5, 0.0))
    spend(book, 0.5)
    assert owner_acts.grant(book, "crm", "owner", Budget(0.75, 0.0)).number == 2
    with pytest.raises(BookError, match=r"left: epsilon 0\.25,"):
        spend(book, 0.5)
    owner_acts.grant(book, "crm", "owner", Budget(0.0, 0.0))
    with pytest.raises(BookError, match="granted: epsilon 0, delta 0; nothing is left"):
        spend(book, 0.125)
    assert faults(book.database) == []


def test_a_resumed_run_counts_once_against_a_grant(file, become, tmp_path):
    """Gaussian releases count by the budget of the run, which a resumed run shares."""
    book = new(file)
    owner_acts.grant(book, "crm", "owner", Budget(1.0, 1e-7))
    noise = entry(name="steps", noise_multiplier=50.0)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    values = {"epsilon": 0.75, "delta": 1e-7}
    run = book.reserve("crm", asked(noise, noise, journal=first, **values))
    run.book(noise)
    run.close("stopped")
    resumed = asked(noise, noise, journal=second, previous=first, before=[noise], **values)
    book.reserve("crm", resumed).close("stopped")
    with pytest.raises(BookError, match=r"left: epsilon 0\.25, delta 0\n"):
        book.reserve("crm", asked(noise, **values))


def test_a_grant_pays_when_a_second_person_approved_it(file, become):
    book = new(file, two_persons=True)
    with pytest.raises(BookError, match="owner has none"):  # not even before the first grant
        spend(book, 0.5)
    owner_acts.grant(book, "crm", "owner", Budget(0.5, 0.0))
    with pytest.raises(BookError, match="grant 1 waits for approval by a second person"):
        spend(book, 0.5)
    with pytest.raises(BookError, match="owner made it, and another user"):
        owner_acts.approve(book, 1)
    become("officer")
    assert owner_acts.approve(book, 1).approved_by == "officer"
    with pytest.raises(BookError, match="grant 1: approved by officer"):
        owner_acts.approve(book, 1)
    with pytest.raises(BookError, match="no grant 2"):
        owner_acts.approve(book, 2)
    become("owner")
    owner_acts.grant(book, "crm", "owner", Budget(2.0, 0.0))  # not in force yet
    with pytest.raises(BookError, match=r"granted: epsilon 0\.5,"):
        spend(book, 0.75)
    spend(book, 0.5)
    owner_acts.close_data_set(book, "crm")
    become("officer")
    with pytest.raises(BookError, match="crm: closed at"):
        owner_acts.approve(book, 2)
    assert faults(book.database) == []


def test_an_approval_by_the_maker_that_was_written_by_hand_is_found(file, become):
    book = new(file, two_persons=True)
    owner_acts.grant(book, "crm", "owner", Budget(0.5, 0.0))
    append_by_hand(book, "approve", {"number": 1, "user": "owner"})
    with pytest.raises(BookError, match="grant 1 is approved by owner, who made it"):
        spend(book, 0.5)


def test_owners_need_the_token_of_a_book_that_was_made_with_one(url, tmp_path):
    token, other = tmp_path / "owner.token", tmp_path / "other.token"
    Book(url, is_new=True, token=token).close()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    other.write_text(f"{'0' * 64}\n")
    other.chmod(0o600)
    secret = token.read_text().strip()
    for path, message in [(None, "owners of this book need its token"), (other, "not the token")]:
        book = Book(url, token=path)
        for act in (register, lambda book: owner_acts.grant(book, "crm", "ann", Budget(1.0, 0.0))):
            with pytest.raises(BookError, match=message if act is register else "no data set"):
                act(book)
        book.close()
    owner = Book(url, token=token)
    register(owner)
    user = owner.database.user()
    owner_acts.grant(owner, "crm", user, Budget(1.0, 0.0))
    book = Book(url)  # spenders need none
    spend(book, 0.5)
    for act in (
        lambda: owner_acts.grant(book, "crm", user, Budget(2.0, 0.0)),
        lambda: owner_acts.close_data_set(book, "crm"),
    ):
        with pytest.raises(BookError, match="owners of this book need its token"):
            act()
    assert owner_faults(owner.database, token) == faults(book.database) == []
    everything = [*lines(book.database), *book.database.rows("SELECT * FROM book_facts")]
    assert secret not in str(everything)


def register(book):
    known = Fingerprint("e", "n")
    owner_acts.register(book, "crm", known, total=Budget(2.0, 1e-6), relation=Relation.EDGE)


def test_owner_lines_that_were_forged_without_the_token_are_found(file, tmp_path, become):
    """The forger repairs all hashes and the head, so that only the seals show it."""
    token = tmp_path / "owner.token"
    book = Book(file, is_new=True, token=token)
    register(book)
    owner_acts.grant(book, "crm", "owner", Budget(0.5, 0.0))
    previous = None
    for line in lines(book.database):
        body = line.body.replace('"epsilon":0.5', '"epsilon":2.0')
        changed = Line(*line)._replace(body=body, previous=previous or line.previous)
        previous = changed.computed
        book.database.rows(
            "UPDATE book_log SET body = ?, previous = ?, hash = ? WHERE line = ?",
            body,
            changed.previous,
            previous,
            line.line,
        )
    book.database.rows("UPDATE book_head SET hash = ?", previous)
    assert faults(book.database) == []
    assert owner_faults(book.database, token) == ["line 3: grant without the seal of the owner"]


def test_a_token_that_others_can_read_is_refused_and_none_is_overwritten(file, tmp_path):
    token = tmp_path / "owner.token"
    Book(file, is_new=True, token=token).close()
    with pytest.raises(BookError, match="no token is overwritten"):
        Book(f"sqlite:///{tmp_path}/second.db", is_new=True, token=token)
    assert not (tmp_path / "second.db").exists()
    token.chmod(0o640)
    with pytest.raises(BookError, match="others can read the token") as refused:
        register(Book(file, token=token))
    assert token.read_text().strip() not in str(refused.value)
    token.chmod(0o600)
    token.write_text("secret words")
    with pytest.raises(BookError, match="holds no token") as refused:
        register(Book(file, token=token))
    assert "secret words" not in str(refused.value)
    os.unlink(token)
    with pytest.raises(BookError, match="cannot be read"):
        register(Book(file, token=token))


@pytest.mark.parametrize(
    ("relation", "unit"),
    [
        (Relation.EDGE, "directed edge"),
        (Relation.NODE, "every directed edge of a node"),
        (Relation.LOCAL_GRAPH, "graph of a client"),
    ],
)
def test_a_run_on_edges_of_another_kind_is_refused(file, relation, unit):
    """One undirected edge can be two directed ones, so that their totals are not the same."""
    book = Book(file, is_new=True)
    directed = Fingerprint("e", "n", "directed edge")
    owner_acts.register(book, "crm", directed, relation=relation, total=Budget(2.0, 0.0))
    known = book.data_set("crm")
    assert known.record == unit
    check_record(known, "directed edge")
    if relation is Relation.LOCAL_GRAPH:  # the whole graph of a client, of whatever edges
        check_record(known, "undirected edge")
        return
    for record in ("undirected edge", "edge between the two sides"):
        with pytest.raises(BookError, match=f"registered with the record '{unit}', and the run"):
            check_record(known, record)
