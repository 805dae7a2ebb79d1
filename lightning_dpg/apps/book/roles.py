"""Roles of the users of a book on PostgreSQL: permissions that the server enforces."""

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.postgresql import PostgreSQL
from lightning_dpg.errors import BookError

_PERMISSIONS = {
    "spender": ("INSERT ON book_log", "UPDATE ON book_head"),
    "owner": ("INSERT ON book_log", "INSERT, UPDATE ON book_head"),
}
"""Permissions of each role beside those to read. Only owners may insert into the table of the head, by
which the policy of the log knows them."""
_POLICIES = (
    "ALTER TABLE book_log ENABLE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS book_read ON book_log",
    "CREATE POLICY book_read ON book_log FOR SELECT USING (true)",
    "DROP POLICY IF EXISTS book_append ON book_log",
    # Lines that book and close belong to a run, whose line of reservation names the user.
    """CREATE POLICY book_append ON book_log FOR INSERT WITH CHECK (
        kind IN ('book', 'close') OR body::json->>'user' = session_user
        AND (kind IN ('reserve', 'measure') OR has_table_privilege('book_head', 'INSERT')))""",
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
    if role not in _PERMISSIONS:
        raise BookError(f"a role is one of {', '.join(_PERMISSIONS)}, got {role!r}")
    if not isinstance(database, PostgreSQL):
        raise BookError(
            f"{database.url}: roles are permissions of PostgreSQL, and a file has none\n"
            "make the book with a token of its owner: budget init --token FILE"
        )
    with database.write():
        give_permissions(database, role, user)


def give_permissions(database: Database, role: str, user: str) -> None:
    """Give the permissions of a role; call it inside of a write."""
    name = user.replace('"', '""')
    permissions = ("SELECT ON book_facts, book_head, book_log", *_PERMISSIONS[role])
    for statement in (*_POLICIES, *(f'GRANT {each} TO "{name}"' for each in permissions)):
        database.rows(statement)
