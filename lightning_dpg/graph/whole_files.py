"""Files that appear complete or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside its place, and move it there once it is complete.

    Args:
        path: Place of the file; what was there stays until then.

    Raises:
        OSError: Where the disk is full, with the bytes that are needed and that are free.
    """
    part = path.with_name(path.name + ".part")
    try:
        with naming_full_disk(path, part):
            with part.open("wb") as file:
                yield file
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def naming_full_disk(path: Path, part: Path) -> Iterator[None]:
    """Say what does not fit where a disk is full, and remove what was written so far.

    Args:
        path: File or folder that an error names.
        part: File or folder that is written in its place.

    Raises:
        OSError: With the bytes that are needed and that are free.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        files = [part, *part.rglob("*")] if part.is_dir() else [part]
        written = sum(file.stat().st_size for file in files if file.is_file())
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise OSError(
            f"{path}: the disk is full: it needs more than {written:,} bytes, {free:,} are free\n"
            "nothing of it was left behind: free some space, or write to another disk"
        ) from error
