"""Files that appear complete or not at all."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that replaces ``path`` when it is complete."""
    scratch = scratch_of(path)
    try:
        yield scratch
        scratch.replace(path.resolve())
    finally:
        scratch.unlink(missing_ok=True)


def scratch_of(path: Path) -> Path:
    """Path of the scratch file that becomes ``path``; a link stays one."""
    target = path.resolve()
    return target.with_name(f"{target.name}.part")


def write_whole(path: Path, content: str) -> None:
    """Write a text that appears complete or not at all; line ends stay as they are.

    Args:
        path: File to write, or a device.
        content: The text.
    """
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        path.write_text(content, encoding="utf-8", newline="")
        return
    with whole_file(path) as scratch:
        scratch.write_text(content, encoding="utf-8", newline="")
