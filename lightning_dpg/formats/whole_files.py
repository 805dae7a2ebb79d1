"""Files that appear complete or not at all."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that replaces ``path`` when it is complete.

    Args:
        path: Place of the file; what was there stays until then.

    Raises:
        OSError: Where the disk is full, with the bytes that are needed and that are free.
    """
    scratch = scratch_of(path)
    try:
        with naming_full_disk(path, scratch):
            yield scratch
            scratch.replace(path.resolve())
    finally:
        scratch.unlink(missing_ok=True)


def scratch_of(path: Path) -> Path:
    """Return the path of the scratch file that becomes ``path``; a link stays one."""
    target = path.resolve()
    return target.with_name(f"{target.name}.part")


def write_whole(path: Path, content: str) -> None:
    """Write a text that appears complete or not at all; line ends stay as they are.

    Args:
        path: File to write, or a device.
        content: The text.

    Raises:
        OSError: Where the disk is full, with the bytes that are needed and that are free.
    """
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        path.write_text(content, encoding="utf-8", newline="")
        return
    with whole_file(path) as scratch:
        scratch.write_text(content, encoding="utf-8", newline="")


@contextmanager
def naming_full_disk(path: Path, part: Path) -> Iterator[None]:
    """Explain that a disk is full, and remove the unfinished file or folder.

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
        size = sum(file.stat().st_size for file in files if file.is_file())
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise OSError(
            f"{path}: the disk is full: it needs more than {size:,} bytes, {free:,} are free\n"
            "nothing of it was left behind: free some space, or write to another disk"
        ) from error
