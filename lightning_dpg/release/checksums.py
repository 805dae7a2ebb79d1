"""Checksums of the files of a release, in the format of ``sha256sum``."""

import hashlib
import re
from pathlib import Path

from lightning_dpg.errors import Refusal
from lightning_dpg.run_folder import SUMS, UNSUMMED

_OF_BOOK = re.compile(
    rb"^  (book|dataset): .*\n(?:    .*\n)*", re.MULTILINE
)  # also if it is folded
_LINE = re.compile(r"([0-9a-f]{64})[ ][ *](.+)")


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def public_digest(configuration: Path) -> str:
    r"""Return the SHA-256 digest of a configuration as it would be without a budget book.

    The published digest must not depend on the name of the data in the book: ``book`` and
    ``dataset`` count as ``null``. Without a book, it is the digest of the file; otherwise other
    programs get it with ``sed -E 's/^  (book|dataset): .*/  \1: null/' config.yaml | sha256sum``.
    """
    text = _OF_BOOK.sub(rb"  \1: null\n", configuration.read_bytes())
    return hashlib.sha256(text).hexdigest()


def files_of(folder: Path) -> list[str]:
    """Return names of all files of a folder that have checksums, in their order."""
    paths = (path for path in folder.rglob("*") if not path.is_dir())
    names = {path.relative_to(folder).as_posix() for path in paths}
    return sorted(names - UNSUMMED)


def write_sums(folder: Path) -> None:
    """Write the checksums of the files of a folder, for ``sha256sum -c``; remove earlier signatures."""
    lines = [f"{digest(folder / name)}  {name}\n" for name in files_of(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
    for name in UNSUMMED - {SUMS}:
        (folder / name).unlink(missing_ok=True)


def read_sums(path: Path) -> dict[str, str]:
    """Read checksums by names of files.

    Raises:
        Refusal: If a line is not one of ``sha256sum``.
    """
    sums = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise Refusal(f"{path}, line {number}: {line[:80]!r} is no checksum of a file")
        sums[match[2]] = match[1]
    return sums
