"""Books that cannot be used say why, and how to go on; no message has a password."""

import os
import traceback

import pytest

from lightning_dpg.apps.book import database
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.store import connect
from lightning_dpg.apps.book.urls import address, has_password, without_password
from lightning_dpg.apps.book.writers import described
from lightning_dpg.errors import BookError
from tests.apps.book.test_book import asked, new, pure


def test_a_locked_book_is_waited_for_and_its_holder_is_named(url, monkeypatch):
    new(url)
    monkeypatch.setattr(database, "WAIT", 0.1)
    first, second = Book(url), Book(url)
    user, here = first.database.user(), described("").removeprefix("@")
    with (
        first.database.write(),
        pytest.raises(BookError, match=r"locked for 0\.1 seconds by") as refused,
    ):
        second.reserve("crm", asked(pure(0.5)))
    text = str(refused.value)
    if url.startswith("postgresql"):
        assert user in text
        assert here[-30:] in text  # machine and process
        assert ", since 20" in text
    else:  # the module of Python does not tell whose lock it is
        assert "by another program\n" in text
    second.reserve("crm", asked(pure(0.5))).close("stopped")


@pytest.fixture
def without_rights():
    """Let the superuser act as an ordinary user, whom permissions of files bind."""
    if os.name != "posix":
        pytest.skip("permissions of files are those of POSIX")
    before = os.geteuid()

    def drop():
        if before == 0:
            os.seteuid(65534)

    yield drop
    os.seteuid(before)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_book_that_cannot_be_written_is_refused(tmp_path, what, without_rights):
    url = f"sqlite:///{tmp_path}/book.db"
    new(url).close()
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 0o1:
            parent.chmod(parent.stat().st_mode | 0o011)
    tmp_path.chmod(0o777 if what == "file" else 0o555)
    (tmp_path / "book.db").chmod(0o444 if what == "file" else 0o666)
    without_rights()
    with pytest.raises(BookError, match="a run has to write to the book and to its folder"):
        Book(url).reserve("crm", asked(pure(0.5)))


URLS = (
    "postgresql://me:hush/silent@host/db",
    "postgresql://me:hush#silent@host/db",
    "postgresql://me:hush?silent@host/db",
    "postgresql://me:hush@silent@host/db",
    "postgresql://me:hush://silent@host/db",
    "postgresql://me:[hush]silent@host/db",
    "postgresql://me:hush-silent@127.0.0.1:1/db",
    "postgresql://host/db?password=hush-silent",
    "mysql://me:hush-silent@host/db",
    "me:hush-silent@host",
)


@pytest.mark.parametrize("url", URLS)
def test_no_message_and_no_traceback_has_a_password(url):
    with pytest.raises(BookError) as refused:
        connect(url)
    said = "".join(traceback.format_exception(refused.value))
    assert "hush" not in said
    assert "silent" not in said
    assert len(str(refused.value).splitlines()) <= 5


def test_passwords_are_seen_whatever_characters_they_have():
    assert all(map(has_password, URLS))
    assert not has_password("postgresql://me@host:5432/db")
    assert not has_password("sqlite:////folder/book.db")
    assert without_password("postgresql://me:pass@host/db") == "postgresql://host/db"


def test_quoted_parts_of_a_url_are_read():
    found = address("postgresql://m%40e:p%2Fw%23@host:5433/b?host=/run/postgresql")
    assert found.shown == "postgresql://m%40e@host:5433/b"
    assert found[1:] == ("m@e", "p/w#", "host", 5433, "b", "/run/postgresql")
