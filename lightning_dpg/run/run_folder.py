"""Folder of a run, which is reserved at its start and removed if it is refused."""

import contextlib
import os
import re
import shutil
from pathlib import Path

from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from lightning_dpg.privacy.ledger import JOURNAL, journal_beside

_BEFORE_THE_START = {"config.yaml", "hparams.yaml", "wandb", JOURNAL}


_WORDS = re.compile(
    "NetGAN|PrivCom|PrivGraph|GraphRNN|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+"
)


def folder_name(method: str) -> str:
    """Return the name of the folder of a method's runs: the words of its class, such as ``chung_lu``."""
    return "_".join(_WORDS.findall(method)).lower()


def is_other_rank() -> bool:
    """Return whether this process is not rank 0, also before the trainer knows the nodes."""
    node = os.environ.get("NODE_RANK", os.environ.get("GROUP_RANK", "0"))
    return bool(getattr(rank_zero_only, "rank", 0)) or node != "0"


class RunFolder:
    """A folder for one run only: ``root/name/version_K``, or the one that the user has chosen.

    Args:
        root: Folder of all runs.
        name: Folder of the method's runs.
        ckpt_path: Checkpoint of a resumed run, if any.
        leaves_files: Whether to make it; other ranks receive the folder of rank 0.
        out: New or empty folder that the user has chosen.

    Attributes:
        logger: Logger into the folder.
    """

    def __init__(
        self,
        root: str,
        name: str,
        ckpt_path: str | None,
        *,
        leaves_files: bool,
        out: Path | None = None,
    ) -> None:
        self._made: list[Path] = []
        journal = journal_beside(ckpt_path)
        self._booked_before = journal.stat().st_size if journal else 0
        while True:
            chosen = None if out is None else CSVLogger(out.parent, name="", version=out.name)
            self.logger = chosen or CSVLogger(root, name=name)
            self.path = Path(self.logger.log_dir)
            if not leaves_files:
                return
            new_folders = [path for path in (self.path, *self.path.parents) if not path.exists()]
            try:
                self.path.mkdir(parents=True, exist_ok=out is not None)
            except FileExistsError:  # another run starts at the same time
                continue
            self._made = new_folders
            return

    @property
    def has_booked(self) -> bool:
        """Whether this run has made a release of a private graph."""
        journal = self.path / JOURNAL
        return journal.is_file() and journal.stat().st_size > self._booked_before

    def remove_unused(self) -> None:
        """Remove the folder of a run without a release and without a result."""
        if not self._made or self.has_booked:
            return
        files = [path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file()]
        if all(path.parts[0] in _BEFORE_THE_START for path in files):
            shutil.rmtree(self.path, ignore_errors=True)
            for folder in self._made[1:]:
                with contextlib.suppress(OSError):  # another run may have a folder there
                    folder.rmdir()
