"""Tables of a book."""

import re
import secrets

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import FIRST
from lightning_dpg.errors import BookError

VERSION = 3
"""Version of the tables of this program."""

HEAD = "CREATE TABLE book_head (line BIGINT NOT NULL, hash TEXT NOT NULL)"
"""Table of one row, which names the last line of the log."""

_TABLES = (
    "CREATE TABLE book_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE book_log (
        line BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    HEAD,
)


def make(database: Database) -> None:
    """Make the tables of a new book; call it inside of a write."""
    for statement in _TABLES:
        database.rows(statement)
    database.rows("INSERT INTO book_head VALUES (0, ?)", FIRST)
    database.rows("INSERT INTO book_facts VALUES ('secret', ?)", secrets.token_hex(32))
    database.rows("INSERT INTO book_facts VALUES ('version', ?)", str(VERSION))


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
    if number > VERSION:
        raise BookError(
            f"{database.url}: a book of version {number}, and this program knows versions up to "
            f"{VERSION}\ninstall a newer lightning_dpg"
        )
    return number
