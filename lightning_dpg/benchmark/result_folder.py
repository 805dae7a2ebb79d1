"""The folder of the results of ``compare``: one process at a time, and whole files only."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from lightning_dpg.errors import CommandError


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder; the lock ends with this process, however it ends.

    Args:
        folder: A folder that exists.

    Raises:
        CommandError: If another process is at work in it, or nothing can be written to it.
    """
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise CommandError(f"--out {folder}: another compare is at work in it") from None
    except OSError as error:
        raise CommandError(f"--out {folder}: cannot be written to ({error})") from error
    try:
        yield
    finally:
        lock.release()


def way_on(folder: Path, args: Sequence[str]) -> str:
    """What an early end leaves in a folder, and the command that does the rest.

    Args:
        folder: Folder of all results.
        args: The command line, without the program and the command.
    """
    kept = len(list((folder / "cells").glob("*.json")))
    command = shlex.join(["python", "-m", "lightning_dpg", "compare", *args])
    return f"the results of {kept} fits are kept in {folder}\ngo on with: {command}"


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Path of a scratch file that takes the place of ``path`` when it is complete."""
    scratch = path.with_suffix(".part")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
