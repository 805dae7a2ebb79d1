"""Names of the files and folders of a run, and who may read them."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError

RELEASE = "release"
"""What may be published: the guarantee of the run covers it."""
NOT_PRIVATE = "not_private"
"""The same files of a run without a guarantee, which must stay with the owner."""

GENERATOR = "generator.safetensors"
LEARNER = "learner.safetensors"
"""Released tensors of a method that learns labels, in place of a generator of graphs."""
STATEMENT = "privacy.json"
DATABASE = "database.json"
"""Statement of the release of a database, of whose kinds each has a release of its own in it."""
KINDS = "kinds"
"""Folder of the kinds of a database: of their releases in its release, of their runs in its run."""
SCHEMA = "schema.yaml"
"""Copy of the schema in the folder of the run of a database (private), with absolute paths."""
SUMS = "SHA256SUMS"
"""File of a release with the checksums of all other files but its signatures."""
SSH_SIGNATURE, MINISIGN_SIGNATURE = f"{SUMS}.sig", f"{SUMS}.minisig"
"""Signatures of the checksums, see :mod:`lightning_dpg.release.signature`."""
UNSUMMED = frozenset({SUMS, SSH_SIGNATURE, MINISIGN_SIGNATURE})
"""Files of a release that have no checksums."""
CONFIGURATION = "config.yaml"
"""The complete configuration of a run, beside its release."""


@contextlib.contextmanager
def owner_only() -> Iterator[None]:
    """Make new files and folders of this process, and of those it starts, readable by the owner only.

    They are so from the moment they exist, whoever writes them, also if the process is killed. A
    release is opened to all when it is complete. On Windows nothing changes.
    """
    before = os.umask(0o077)
    _forget_umask()
    try:
        yield
    finally:
        os.umask(before)
        _forget_umask()


def _forget_umask() -> None:
    """Let fsspec, which writes checkpoints, ask for the umask again: it keeps its first answer."""
    local = sys.modules.get("fsspec.implementations.local")
    if hasattr(getattr(local, "get_umask", None), "cache_clear"):
        local.get_umask.cache_clear()  # type: ignore[union-attr]


def release_in(folder: Path) -> Path:
    """Find the release of a run; a folder without one is taken for the release itself.

    Args:
        folder: Folder of a run or of a release.
    """
    names = (RELEASE, NOT_PRIVATE)
    return next((folder / name for name in names if (folder / name).is_dir()), folder)


def statement_in(release: Path) -> dict[str, Any]:
    """Read the privacy statement of a release as it is.

    Args:
        release: Folder of the release.
    """
    content: dict[str, Any] = json.loads((release / STATEMENT).read_text(encoding="utf-8"))
    return content


def release_at(place: Path) -> Path:
    """Return the folder of a release.

    Args:
        place: This folder, a file in it, or the folder of a run.

    Raises:
        CommandError: If there is no release.
    """
    folder = place.parent if place.is_file() else release_in(place)
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such folder")
    if not any((folder / name).exists() for name in (STATEMENT, SUMS)):
        raise CommandError(f"{folder}: no release, it has neither {STATEMENT} nor {SUMS}")
    return folder


def release_folder(source: str | Path) -> Path | None:
    """Return the folder with the privacy statement of a release; None if there is none.

    Args:
        source: Folder of a run or of a release.
    """
    places = (release_in(Path(source)), Path(source))
    return next((place for place in places if (place / STATEMENT).is_file()), None)


def released_tensors(folder: Path) -> Path:
    """Return the path of the tensors of a release.

    Args:
        folder: Folder of a release, or of a run with one.

    Raises:
        CommandError: If there is none.
    """
    for release in (folder / RELEASE, folder / NOT_PRIVATE, folder):
        for name in (GENERATOR, LEARNER):
            if (release / name).is_file():
                return release / name
    runs = sorted(path.parent.parent for path in Path().glob(f"runs/*/*/*/{STATEMENT}"))
    near = f"\nruns with a release here: {', '.join(map(str, runs[-3:]))}" if runs else ""
    raise CommandError(f"{folder}: no {RELEASE}/{GENERATOR} in it{near}")


def check_checkpoint_file(command: str, path: str | None) -> None:
    """Refuse a checkpoint that is no file, and none where a command needs one.

    Args:
        command: Subcommand.
        path: ``ckpt_path``.

    Raises:
        CommandError: If there is no such file.
    """
    if path is None and command != "fit":
        raise CommandError(
            f"{command} needs --ckpt_path FILE, a checkpoint of a run\n"
            "to draw graphs from a release: python -m lightning_dpg generate DIR"
        )
    if path is not None and not Path(path).is_file():
        raise CommandError(f"--ckpt_path {path}: no such file{checkpoints_near(Path(path))}")


def by_age(folder: Path) -> list[Path]:
    """Return the checkpoints below a folder, the newest last."""
    return sorted(folder.rglob("*.ckpt"), key=lambda file: file.stat().st_mtime)


def checkpoints_near(path: Path) -> str:
    """Name the newest other checkpoint in the folder of a path, or in the folders of runs."""
    folder = path.parent if path.parent.is_dir() else Path("runs")
    checkpoints = [each for each in by_age(folder) if each != path]
    return f"\nthe newest one there is {checkpoints[-1]}" if checkpoints else ""
