"""Names of the files and folders of a run."""

from pathlib import Path

RELEASE = "release"
"""What may be published: the guarantee of the run covers it."""
NOT_PRIVATE = "not_private"
"""The same files of a run without a guarantee, which must stay with the owner."""

CONFIGURATION = "config.yaml"
"""The complete configuration of a run, beside its release."""


def release_in(folder: Path) -> Path:
    """Find the release of a run; a folder without one is taken for the release itself.

    Args:
        folder: Folder of a run or of a release.
    """
    names = (RELEASE, NOT_PRIVATE)
    return next((folder / name for name in names if (folder / name).is_dir()), folder)
