"""Books of versions 1 and 2 are verified with the tables that they had, and then opened."""

import json
from pathlib import Path

import pytest

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.postgresql import give_role
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.store import connect, faults
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import act_as, entry, reserve, run
from tests.apps.book.test_private_columns import ROWS, asked, row

TABLES = (
    (
        "CREATE TABLE book_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        """CREATE TABLE book_log (
            line BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
            previous TEXT NOT NULL, hash TEXT NOT NULL)""",
        """CREATE TABLE book_datasets (
            name TEXT PRIMARY KEY, relation TEXT NOT NULL, record TEXT NOT NULL,
            words TEXT NOT NULL, epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
            max_degree BIGINT, edges TEXT NOT NULL, nodes TEXT NOT NULL, two_persons BIGINT NOT NULL,
            rule TEXT NOT NULL, created TEXT NOT NULL, part_of TEXT NOT NULL,
            closed TEXT, closed_by TEXT)""",
        """CREATE TABLE book_grants (
            number BIGINT PRIMARY KEY, dataset TEXT NOT NULL, grantee TEXT NOT NULL,
            epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
            made TEXT NOT NULL, made_by TEXT NOT NULL, approved TEXT, approved_by TEXT)""",
        """CREATE TABLE book_runs (
            run BIGINT PRIMARY KEY, family BIGINT NOT NULL, dataset TEXT NOT NULL, method TEXT NOT NULL,
            settings TEXT NOT NULL, folder TEXT NOT NULL, journal TEXT, who TEXT NOT NULL,
            spender TEXT NOT NULL, edges TEXT NOT NULL, epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
            before TEXT NOT NULL,
            opened TEXT NOT NULL, closed TEXT, outcome TEXT NOT NULL, release TEXT)""",
        """CREATE TABLE book_entries (
            run BIGINT NOT NULL, place BIGINT NOT NULL, entry TEXT NOT NULL,
            planned BIGINT NOT NULL, booked BIGINT NOT NULL, PRIMARY KEY (run, place))""",
        "CREATE TABLE book_verified (state TEXT NOT NULL, seal TEXT NOT NULL)",
    ),
    (  # totals of further relations, and a bound on the edges of a record
        """CREATE TABLE book_totals (
            dataset TEXT NOT NULL, relation TEXT NOT NULL, record TEXT NOT NULL,
            epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
            content TEXT NOT NULL, rule TEXT NOT NULL, PRIMARY KEY (dataset, relation))""",
        """CREATE TABLE book_budgets (
            run BIGINT NOT NULL, relation TEXT NOT NULL, epsilon DOUBLE PRECISION NOT NULL,
            delta DOUBLE PRECISION NOT NULL, content TEXT NOT NULL, PRIMARY KEY (run, relation))""",
        "ALTER TABLE book_datasets ADD COLUMN max_edges BIGINT",
        "ALTER TABLE book_grants ADD COLUMN relation TEXT NOT NULL DEFAULT ''",
        """UPDATE book_grants SET relation =
            (SELECT relation FROM book_datasets WHERE name = book_grants.dataset)""",
        "DELETE FROM book_verified",  # the next reservation verifies all
    ),
)

"""Statements that made version 1, and version 2 from it."""


def laid(url, version):
    """The database of a book as this version has written it."""
    tables = json.loads((Path(__file__).parent / f"book_of_version_{version}.json").read_text())
    database = connect(url, is_new=True)
    with database.write():
        for statement in [each for group in TABLES[:version] for each in group]:
            database.rows(statement)
        for table, rows in tables.items():
            for values in rows:
                places = ", ".join("?" * len(values))
                database.rows(f"INSERT INTO {table} VALUES ({places})", *values)
    return database


def opened(url, version):
    """A book of a version, opened by this one."""
    laid(url, version).close()
    book = Book(url)
    book.check()
    names = {name for name in book.database.tables() if name.startswith("book_")}
    assert names == {"book_facts", "book_log", "book_head"}
    return book


def test_a_book_of_version_1_opens_and_verifies_and_gets_a_row_total(url):
    book = opened(url, 1)
    found = summary(book, "crm")
    assert (found["spent"], found["left"], found["beside"]) == (0.5651, 0.7102, [])
    assert [grant.relation for grant in book.grants("crm")] == [Relation.EDGE] * 2
    assert summary(book, "people")["spent"] == 0.25
    owner.add_row_total(book, "crm", Budget(1.0, 0.0))
    eve = owner.grant(act_as(book, "ann"), "crm", "eve", Budget(1.0, 0.0), ROWS)
    owner.approve(act_as(book, "bob"), eve.number)
    act_as(book, "eve").reserve("crm", asked(entry(0.25), row(0.5))).close("stopped")
    assert faults(book.database) == []


def test_a_book_of_version_2_opens_with_all_that_it_held(url):
    """The number that its line states for no condition is ignored."""
    book = opened(url, 2)
    found = summary(book, "crm")
    (rows,) = found["beside"]
    assert (found["spent"], found["reserved"], found["conditional"]) == (1.0, 0.25, True)
    assert (rows["spent"], rows["total"], book.names_of_rows("march")) == (0.25, 1.0, ["crm"])
    assert [each["outcome"] for each in found["releases"]] == ["ended", "killed", "open", "stopped"]
    assert [each["state"] for each in rows["grants"]] == ["in force"]
    assert len(found["measurements"]) == 1
    assert book.is_exceeded("january") and book.data_set("february").closed_by == "ann"
    assert book.data_set("people").max_edges == 20
    run(act_as(book, "eve"), entry(0.25))
    assert faults(book.database) == []


EDITS = [
    "UPDATE book_log SET body = REPLACE(body, '0.5', '0.1') WHERE line = 9",
    "DELETE FROM book_log WHERE line > 20",
    "UPDATE book_facts SET value = '" + "ab" * 32 + "' WHERE name = 'secret'",
    "UPDATE book_datasets SET epsilon = 100 WHERE name = 'crm'",
    "UPDATE book_datasets SET closed = NULL, closed_by = NULL",
    "UPDATE book_datasets SET rule = 'sum' WHERE name = 'crm'",
    "UPDATE book_datasets SET max_edges = 2 WHERE name = 'people'",
    "DELETE FROM book_datasets WHERE name = 'people'",
    "UPDATE book_totals SET epsilon = 100",
    "DELETE FROM book_totals",
    "UPDATE book_grants SET epsilon = 9 WHERE number = 2",
    "UPDATE book_grants SET approved = 'now', approved_by = 'bob' WHERE number = 3",
    "UPDATE book_runs SET outcome = 'ended' WHERE run = 3",
    "UPDATE book_runs SET epsilon = 0 WHERE run = 1",
    "DELETE FROM book_runs WHERE run = 2",
    "UPDATE book_budgets SET epsilon = 0",
    "DELETE FROM book_budgets",
    "UPDATE book_entries SET booked = 0 WHERE run = 1",
    "UPDATE book_entries SET planned = 9 WHERE run = 1",
    "DELETE FROM book_entries",
    "INSERT INTO book_entries SELECT 1, 7, entry, planned, booked FROM book_entries WHERE run = 2",
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_book_of_version_2_is_not_opened_and_keeps_its_tables(tmp_path, edit):
    url = f"sqlite:///{tmp_path}/book.db"
    database = laid(url, 2)
    database.rows(edit)
    before = database.tables()
    with pytest.raises(BookError, match="the book was changed, and is not opened by this version"):
        Book(url)
    assert database.tables() == before


@pytest.mark.parametrize("edit", ["UPDATE book_runs SET epsilon = 0", "DELETE FROM book_grants"])
def test_a_changed_book_of_version_1_is_not_opened(url, edit):
    database = laid(url, 1)
    database.rows(edit)
    with pytest.raises(
        BookError, match=r"is not opened by this version: table (runs|grants): row 1"
    ):
        Book(url)


def test_users_with_a_role_of_version_2_get_it_again(server_url):
    database = laid(server_url, 2)
    database.rows(
        """DO $$ BEGIN CREATE ROLE eve LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"""
    )
    database.rows("GRANT SELECT ON ALL TABLES IN SCHEMA public TO eve")
    database.rows("GRANT INSERT ON book_log, book_runs, book_budgets, book_entries TO eve")
    eve = f"postgresql://eve@{server_url.partition('@')[2]}"
    with pytest.raises(BookError, match=r"must be owner.*\n.*--role spender"):
        Book(eve)  # who made the book opens it first
    book = Book(server_url)
    with pytest.raises(BookError, match=r"permission denied.*\n.*--role spender"):
        reserve(Book(eve), entry(0.25))
    give_role(book.database, "spender", "eve")
    reserve(Book(eve), entry(0.25)).close("stopped")
    assert faults(book.database) == []
