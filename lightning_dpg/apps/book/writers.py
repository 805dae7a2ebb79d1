"""The user, machine and process that write to a book, for its lines."""

import getpass
import os
import socket

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
