"""Roles on a real PostgreSQL server: what it lets a spender do, and what it refuses."""

from types import SimpleNamespace

import pytest

from lightning_dpg.apps.book import owner as owner_acts
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.postgresql import give_role
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.store import faults
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import append_by_hand
from tests.apps.book.test_book import asked, new, pure

USERS = ("ann", "Bob's", 'of"ficer')


on_a_server = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@pytest.fixture
def place(url):
    """A book on a server, with its owner's connection and URLs of other users."""
    owner = new(url)
    for user in USERS:
        name = user.replace('"', '""')
        owner.database.rows(
            f"""DO $$ BEGIN CREATE ROLE "{name}" LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"""
        )
    host = url.partition("@")[2]
    urls = {"ann": f"postgresql://ann@{host}", "bob": f"postgresql://Bob%27s@{host}"}
    return SimpleNamespace(owner=owner, officer=f"postgresql://of%22ficer@{host}", **urls)


@on_a_server
def test_a_spender_runs_books_reconciles_and_shows(place):
    with pytest.raises(BookError, match=r"permission denied.*\n.*--role spender"):
        Book(place.ann)
    give_role(place.owner.database, "spender", "ann")
    book = Book(place.ann)
    run = book.reserve("crm", asked(pure(0.5), pure(0.25)))
    run.book(pure(0.5))
    run.close("ended")
    owner_acts.add_row_total(place.owner, "crm", Budget(1.0, 0.0))
    rows = pure(0.5, relation=Relation.ATTRIBUTES)
    others = {Relation.ATTRIBUTES: Budget(0.5, 0.0)}
    book.reserve("crm", asked(pure(0.25), rows, epsilon=0.25, other_budgets=others))
    book.close()  # the server gives its locks back, and the run is dead
    book = Book(place.ann)
    assert book.reconcile() == [2]
    assert [run.spender for run in book.runs()] == ["ann", "ann"]
    found = summary(book, "crm")
    assert (found["spent"], found["beside"][0]["spent"]) == (0.75, 0.5)
    assert faults(book.database) == []


@on_a_server
def test_the_server_refuses_all_else_of_a_spender(place):
    give_role(place.owner.database, "spender", "ann")
    place.owner.reserve("crm", asked(pure(0.5)))
    book = Book(place.ann)
    for statement in (
        "DELETE FROM book_log",
        "UPDATE book_log SET body = '{}'",
        "TRUNCATE book_log",
        "INSERT INTO book_head VALUES (1, '')",
        "DELETE FROM book_head",
        "UPDATE book_facts SET value = '0'",
        "ALTER TABLE book_log DISABLE ROW LEVEL SECURITY",
        "DROP POLICY book_append ON book_log",
        "ALTER TABLE book_log ADD COLUMN more TEXT",
        "DROP TABLE book_log",
        "SET SESSION AUTHORIZATION owner",
    ):
        with pytest.raises(BookError, match=r"permission denied|must be owner"):
            book.database.rows(statement)
    for kind, user in [
        ("register", "ann"),
        ("total", "ann"),
        ("grant", "ann"),
        ("approve", "ann"),
        ("close_data_set", "ann"),
        ("retract", "ann"),
        ("init", "ann"),
        ("reserve", "owner"),  # in the name of another user
    ]:
        with (
            pytest.raises(BookError, match="row-level security"),
            book.database.write(),
        ):
            append_by_hand(book, kind, {"user": user})
    for act in (
        lambda: owner_acts.grant(book, "crm", "ann", Budget(1.0, 0.0)),
        lambda: owner_acts.close_data_set(book, "crm"),
    ):
        with pytest.raises(BookError, match="row-level security"):
            act()
    assert faults(book.database) == []


@on_a_server
def test_users_of_the_server_keep_to_grants_that_two_of_them_made(place):
    owner = place.owner
    owner_acts.register(
        owner,
        "people",
        Fingerprint("f", "n"),
        relation=owner.data_set("crm").relation,
        total=Budget(2.0, 0.0),
        two_persons=True,
    )
    for user, role in zip(USERS, ("spender", "owner", "owner"), strict=True):
        give_role(owner.database, role, user)
    ann, bob, officer = Book(place.ann), Book(place.bob), Book(place.officer)
    assert owner_acts.grant(bob, "people", "ann", Budget(1.0, 0.0)).made_by == "Bob's"
    with pytest.raises(BookError, match="Bob's made it, and another user"):
        owner_acts.approve(bob, 1)
    with pytest.raises(BookError, match="waits for approval"):
        ann.reserve("people", asked(pure(0.5)))
    # Not by hand either: no line in the name of another user.
    with pytest.raises(BookError, match="row-level security"), bob.database.write():
        append_by_hand(bob, "approve", {"number": 1, "user": 'of"ficer'})
    for statement in ("DELETE FROM book_log", "INSERT INTO book_facts VALUES ('a', 'b')"):
        with pytest.raises(BookError, match="permission denied"):
            bob.database.rows(statement)
    assert owner_acts.approve(officer, 1).approved_by == 'of"ficer'
    ann.reserve("people", asked(pure(1.0))).close("stopped")
    owner_acts.close_data_set(officer, "people")
    with pytest.raises(BookError, match='by of"ficer: no further run'):
        ann.reserve("people", asked(pure(0.5)))
    assert faults(owner.database) == []


def test_roles_are_refused_for_a_file_and_by_other_names(tmp_path):
    book = new(f"sqlite:///{tmp_path}/book.db")
    with pytest.raises(BookError, match="roles are permissions of PostgreSQL"):
        give_role(book.database, "spender", "ann")
    with pytest.raises(BookError, match="a role is one of spender, owner, got 'king'"):
        give_role(book.database, "king", "ann")


def test_runs_of_books_in_two_schemas_do_not_wait_for_each_other(server_url):
    """And a stricter isolation of the database does not let a write read what was before it."""
    book = new(server_url)
    book.reserve("crm", asked(pure(0.5)))
    name = server_url.rpartition("/")[2]
    book.database.rows("CREATE SCHEMA other")
    book.database.rows(f"ALTER DATABASE {name} SET search_path = other")
    book.database.rows(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    other = new(server_url)
    with other.database.write():
        assert other.database.rows("SHOW transaction_isolation") == [("read committed",)]
    other.reserve("crm", asked(pure(0.5)))
    other.close()
    assert Book(server_url).reconcile() == [1]
    assert [run.outcome for run in book.runs()] == ["open"]
