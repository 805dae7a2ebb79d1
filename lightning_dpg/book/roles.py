"""Roles on PostgreSQL: what the server lets a spender and an owner do to a book.

A spender reads the book and writes what a run writes: lines of the log that reserve, book and close
runs, those of measurements, and the tables that follow from them. An owner also writes the lines and
tables of data sets and grants. Neither can change or delete a line of the log, nor write a line in the
name of another user. The mark of what was verified is of the user who made the book: a forged one
would hide changed tables from reservations.
The user who made the book owns its tables and is bound by none of this: so is a superuser.
"""

from typing import Literal, get_args

from lightning_dpg.book.database import Database
from lightning_dpg.book.postgresql import PostgreSQL
from lightning_dpg.errors import BookError

Role = Literal["spender", "owner"]

_SPENDER = (
    "GRANT INSERT ON book_log, book_runs, book_budgets, book_entries",
    "GRANT UPDATE (closed, outcome, release) ON book_runs",
    "GRANT UPDATE (booked) ON book_entries",
    "GRANT UPDATE (rule) ON book_datasets, book_totals",
)
_OWNER = (
    *_SPENDER,
    "GRANT INSERT ON book_datasets, book_totals, book_grants",
    "GRANT UPDATE (closed, closed_by) ON book_datasets",
    "GRANT UPDATE (approved, approved_by) ON book_grants",
)
_POLICIES = (
    "ALTER TABLE book_log ENABLE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS book_read ON book_log",
    "CREATE POLICY book_read ON book_log FOR SELECT USING (true)",
    "DROP POLICY IF EXISTS book_append ON book_log",
    # Lines that book and close belong to a run, whose line of reservation names the user.
    """CREATE POLICY book_append ON book_log FOR INSERT WITH CHECK (
        kind IN ('book', 'close') OR body::json->>'user' = session_user
        AND (kind IN ('reserve', 'measure') OR has_table_privilege('book_grants', 'INSERT')))""",
)


def give_role(database: Database, role: str, user: str) -> None:
    """Let a user of the server spend on a book, or own it.

    Args:
        database: The book, opened by the user who made it.
        role: ``spender`` or ``owner``.
        user: User of the server.

    Raises:
        BookError: If the server refuses it, or if the book is a file.
    """
    if role not in get_args(Role):
        raise BookError(f"a role is one of {', '.join(get_args(Role))}, got {role!r}")
    if not isinstance(database, PostgreSQL):
        raise BookError(
            f"{database.url}: roles are permissions of PostgreSQL, and a file has none\n"
            "make the book with a token of its owner: budget init --token FILE"
        )
    name = user.replace('"', '""')
    of_book = ", ".join(sorted(table for table in database.tables() if table.startswith("book_")))
    permissions = (f"GRANT SELECT ON {of_book}", *(_OWNER if role == "owner" else _SPENDER))
    with database.write():
        for statement in (*_POLICIES, *(f'{each} TO "{name}"' for each in permissions)):
            database.rows(statement)
