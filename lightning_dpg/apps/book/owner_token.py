"""The token of an owner: a file that every change of totals, grants and data sets needs.

The book holds a keyed digest of the token. Each line of an owner has a seal: HMAC-SHA-256 of its kind,
its other facts and the hash of the line before, under the token. A user who writes to the database
without the token can change everything, but cannot make a seal. ``budget verify --token`` finds lines
of owners without a valid seal.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import FIRST, Line, lines
from lightning_dpg.apps.book.state import OWNER_KINDS
from lightning_dpg.apps.book.store import append, state_of
from lightning_dpg.errors import BookError

VARIABLE = "LIGHTNING_DPG_BOOK_TOKEN"
"""Variable that holds the path of the file."""

_HEXADECIMAL = 64  # digits of 256 bits


def refuse_existing(path: Path) -> None:
    """Refuse to overwrite a file by a new token.

    Raises:
        BookError: If there is such a file.
    """
    if path.exists():
        raise BookError(f"{path}: there is such a file already, and no token is overwritten")


def make_token(path: Path) -> bytes:
    """Write a new token to a file that only its owner can read.

    Raises:
        BookError: If there is such a file.
    """
    refuse_existing(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    token = secrets.token_hex(_HEXADECIMAL // 2)
    with os.fdopen(file, "w") as stream:
        stream.write(f"{token}\n")
    return bytes.fromhex(token)


def read_token(path: Path) -> bytes:
    """Read a token.

    Raises:
        BookError: If the file holds none, or if others can read it. The message has no part of it.
    """
    try:
        text = path.read_text().strip()
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        raise BookError(f"{path}: the token cannot be read ({type(error).__name__})") from None
    if os.name == "posix" and mode & 0o077:
        raise BookError(f"{path}: others can read the token (mode {mode:o})\nchmod 600 {path}")
    if len(text) != _HEXADECIMAL or set(text) - set("0123456789abcdef"):
        raise BookError(f"{path}: the file holds no token of an owner")
    return bytes.fromhex(text)


def begin(database: Database, token: bytes) -> None:
    """Write the first line of a book whose owners need a token; call it inside of a write."""
    _append(database, token, "init", {"token": _digest(token), "user": database.user()})


def append_sealed(database: Database, path: Path | None, kind: str, facts: dict[str, Any]) -> None:
    """Append a line of an owner, sealed if the book has a token; call it inside of a write.

    Args:
        database: The book.
        path: File of the token, if one was given.
        kind: Kind of the line.
        facts: Its facts.

    Raises:
        BookError: If the book has a token, and this is another one or none.
    """
    if (digest := _expected(database)) is None:
        append(database, kind, **facts)
    else:
        _append(database, _checked(database, path, digest), kind, facts)


def owner_faults(database: Database, path: Path | None) -> list[str]:
    """Say which lines of an owner were written without the token.

    Args:
        database: The book.
        path: File of the token.

    Raises:
        BookError: If the book has no token, or if the file holds another one or is not given.
    """
    if (digest := _expected(database)) is None:
        raise BookError(
            f"{database.url}: the book was made without a token, or its first line is gone"
        )
    token = _checked(database, path, digest)
    return [
        f"line {line.line}: {line.kind} without the seal of the owner"
        for line in lines(database)
        if line.kind in OWNER_KINDS and not _is_sealed(line, token)
    ]


def _expected(database: Database) -> str | None:
    """Digest of the book's token, or None if it was made without one."""
    rows = database.rows("SELECT body FROM book_log WHERE line = 1 AND kind = 'init'")
    return str(json.loads(rows[0][0])["token"]) if rows else None


def _checked(database: Database, path: Path | None, digest: str) -> bytes:
    if path is None:
        raise BookError(
            f"{database.url}: owners of this book need its token\n"
            f"give --token FILE, or set {VARIABLE} to its path"
        )
    token = read_token(path)
    if not hmac.compare_digest(_digest(token), digest):
        raise BookError(f"{path}: this is not the token of {database.url}")
    return token


def _append(database: Database, token: bytes, kind: str, facts: dict[str, Any]) -> None:
    last = state_of(database).last
    previous = last.hash if last else FIRST
    append(database, kind, **facts, seal=_seal(token, previous, kind, facts))


def _is_sealed(line: Line, token: bytes) -> bool:
    facts = line.facts
    seal = str(facts.pop("seal", ""))
    return hmac.compare_digest(seal, _seal(token, line.previous, line.kind, facts))


def _digest(token: bytes) -> str:
    return _keyed(token, b"owner")


def _seal(token: bytes, previous: str, kind: str, facts: dict[str, Any]) -> str:
    """Seal of a line that follows the line of a hash."""
    content = json.dumps([previous, kind, facts], sort_keys=True, separators=(",", ":"))
    return _keyed(token, b"line\0" + content.encode())


def _keyed(token: bytes, content: bytes) -> str:
    return hmac.new(token, content, hashlib.sha256).hexdigest()
