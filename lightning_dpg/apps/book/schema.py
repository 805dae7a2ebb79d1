"""Tables of a book. A new version appends a migration; no migration ever changes."""

import re
import secrets

from lightning_dpg.apps.book.database import Database
from lightning_dpg.errors import BookError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
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
"""Statements that lead from one version to the next; the version is how many were run."""

TABLES = (
    *("book_datasets", "book_totals", "book_grants"),
    *("book_runs", "book_budgets", "book_entries"),
)
"""Tables that follow from the log."""


def migrate(database: Database) -> None:
    """Bring a book to this version.

    Raises:
        BookError: If the book has a newer version.
    """
    if version(database) == len(MIGRATIONS):
        return
    with database.write():
        before = version(database)  # another process may have been first
        for number in range(before, len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                database.rows(statement)
        if not before:
            key = secrets.token_hex(32)
            database.rows("INSERT INTO book_facts VALUES ('secret', ?)", key)
            database.rows("INSERT INTO book_facts VALUES ('version', ?)", str(len(MIGRATIONS)))
        database.rows(
            "UPDATE book_facts SET value = ? WHERE name = 'version'", str(len(MIGRATIONS))
        )


def secret(database: Database) -> str:
    """Key of a book, as hexadecimal digits.

    Raises:
        BookError: If there is none.
    """
    for (key,) in database.rows("SELECT value FROM book_facts WHERE name = 'secret'"):
        if re.fullmatch("[0-9a-f]{64}", key):
            return str(key)
    raise BookError(f"{database.url}: the key of the book is gone; take its last backup")


def version(database: Database) -> int:
    """Version of a book; 0 of an empty database.

    Raises:
        BookError: If it is newer than this program.
    """
    if "book_facts" not in database.tables():
        return 0
    rows = database.rows("SELECT value FROM book_facts WHERE name = 'version'")
    number = int(rows[0][0]) if rows else 0
    if number > len(MIGRATIONS):
        raise BookError(
            f"{database.url}: a book of version {number}, and this program knows versions up to "
            f"{len(MIGRATIONS)}\ninstall a newer lightning_dpg"
        )
    return number
