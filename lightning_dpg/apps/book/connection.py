"""The database of a URL: an SQLite file, or PostgreSQL."""

from pathlib import Path

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.postgresql import PostgreSQL
from lightning_dpg.apps.book.sqlite_file import SQLite
from lightning_dpg.apps.book.urls import FORMS, without_password
from lightning_dpg.errors import BookError

_SCHEMES = ("postgresql", "postgres")


def connect(url: str, *, is_new: bool = False) -> Database:
    """Open the database of a URL.

    Args:
        url: ``sqlite:///`` and a path, or ``postgresql://user@host/database``.
        is_new: Whether to make the file.

    Raises:
        BookError: If it cannot be opened. No message has a password.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and rest != "/":
        return SQLite(Path(rest[1:]).expanduser(), is_new=is_new)
    if scheme in _SCHEMES:
        return PostgreSQL(url)
    raise BookError(f"a book is a URL of the form {FORMS}, got {without_password(url)}")
