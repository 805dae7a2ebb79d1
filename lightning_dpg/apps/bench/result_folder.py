"""The folder of the results: one process at a time, and complete files only."""

import contextlib
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from lightning_dpg.errors import CommandError

DRAWN = "synthetic-0.npz"
"""File of what was drawn, which stays of run 0: the graph of the release, or a whole set."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class BrokenOffError(CommandError):
    """Early end of a benchmark; the results of finished jobs are kept."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the lock ends with this process in any case.

    A network folder that has no locks is used without one.

    Args:
        folder: An existing folder.

    Raises:
        CommandError: If another process uses the folder, or if it is not writable.
    """
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise CommandError(f"{folder}: another benchmark is at work in it") from None
    except NotImplementedError:  # as filelock says it where the system has no locks
        pass
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise CommandError(f"{folder}: cannot be written to ({error})") from error
    try:
        yield
    finally:
        lock.release()


def record_of(folder: Path, name: str) -> Path:
    """Return the path of a job's result file.

    Args:
        folder: Folder of all results.
        name: Name of the job.
    """
    return folder / "cells" / f"{name}.json"


def count_records(folder: Path) -> int:
    """Return the number of recorded results."""
    return len(list(record_of(folder, "*").parent.glob("*.json")))


def drawn_by(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the path of the data drawn by jobs; None if they have no edge, or without a file.

    Args:
        folder: Folder of all results.
        names: Names of the jobs.
    """
    paths = [path for name in names for path in (folder / "runs" / name).rglob(DRAWN)]
    return paths[0] if paths else None


def keep_only(folder: Path, names: Sequence[str]) -> None:
    """Remove checkpoints, curves and all other files of a run except the kept ones.

    Args:
        folder: Folder of a run.
        names: Names of the kept files.
    """
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif path.name not in names:
            path.unlink()
