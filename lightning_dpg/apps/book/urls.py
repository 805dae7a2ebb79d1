"""URLs of books on PostgreSQL: their parts, and their form without passwords."""

from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from lightning_dpg.errors import BookError

FORMS = "sqlite:///book.db, sqlite:////folder/book.db or postgresql://user@host/database"


class Address(NamedTuple):
    """Parts of a URL of PostgreSQL.

    Attributes:
        shown: The URL as it may be printed, without a password.
        user: User, if the URL names one.
        password: Password, if the URL has one.
        host: Machine.
        port: Port.
        database: Database, if the URL names one.
        socket: Folder of the server's socket, if the URL names one, as in libpq.
    """

    shown: str
    user: str | None
    password: str | None
    host: str
    port: int
    database: str | None
    socket: str | None


def address(url: str) -> Address:
    """Take the URL of a book on PostgreSQL apart.

    Raises:
        BookError: If it has another form. The message has no part of the password.
    """
    shown = without_password(url)
    try:
        parts = urlsplit(url)
        port, query = parts.port or 5432, parse_qs(parts.query)
    except ValueError:
        raise _unreadable(shown) from None
    # A slash or another separator in a password ends the address too early.
    if "@" in parts.path + parts.query + parts.fragment:
        raise _unreadable(shown)
    if parts.fragment or set(query) - {"host"}:
        raise BookError(f"a book is a URL of the form {FORMS}, got {shown}")
    return Address(
        shown=_shown(parts),
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        host=unquote(parts.hostname or "localhost"),
        port=port,
        database=unquote(parts.path.lstrip("/")) or None,
        socket=query["host"][0] if "host" in query else None,
    )


def without_password(url: str) -> str:
    """A URL as it may be printed: without user, password and query."""
    scheme, mark, rest = _scheme_and_rest(url)
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"


def has_password(url: str) -> bool:
    """Return whether a URL has a password, perhaps with characters that ought to be quoted."""
    rest = _scheme_and_rest(url)[2]
    return ":" in rest.rpartition("@")[0] or "password=" in rest.partition("?")[2].lower()


def _scheme_and_rest(url: str) -> tuple[str, str, str]:
    return url.partition("://") if "://" in url else ("", "", url)


def _shown(parts: SplitResult) -> str:
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"


def _unreadable(shown: str) -> BookError:
    return BookError(
        f"the URL of the book cannot be read: ...{shown.partition('://')[2]}\n"
        "quote special characters of the password (%2F for /, %40 for @), or leave it out and set "
        "PGPASSWORD"
    )
