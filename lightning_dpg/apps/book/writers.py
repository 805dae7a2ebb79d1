"""The user, machine and process that write to a book, for its lines and for those that wait."""

import contextlib
import getpass
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

try:
    import pwd
except ImportError:  # Windows
    pwd = None  # type: ignore[assignment]


def system_user() -> str:
    """Name of the user that the system runs this process as; no variable changes it."""
    if pwd is None:
        return getpass.getuser()
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container without a name for the number
        return str(number)


def described(user: str) -> str:
    """A user with the machine and the number of this process."""
    return f"{user}@{socket.gethostname()}, process {os.getpid()}"


def machine_of(who: str) -> str:
    """Machine of a process that was described.

    Args:
        who: Text of :func:`described` on that machine.
    """
    return who.rpartition(", process ")[0].rpartition("@")[2]


class WriterNote:
    """File beside a book that names the process whose write is under way.

    Its content is a hint for people. The database holds the lock.

    Args:
        book: File of the book.
    """

    def __init__(self, book: Path) -> None:
        self._book = book
        self.path = Path(f"{book}.writer")
        self._file: int | None = None

    def write(self) -> None:
        """Name this process; a folder that takes no note is no reason not to write to the book."""
        text = f"{described(system_user())}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        with contextlib.suppress(OSError):
            if self._file is None:  # open to those who may open the book
                mode = self._book.stat().st_mode & 0o666
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, mode)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.ftruncate(self._file, os.write(self._file, text.encode()))

    def clear(self) -> None:
        """Name nobody."""
        with contextlib.suppress(OSError):
            if self._file is not None:
                os.ftruncate(self._file, 0)

    def read(self) -> str:
        """Name the process whose write is under way."""
        with contextlib.suppress(OSError):
            return self.path.read_text() or "another program"
        return "another program"

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
