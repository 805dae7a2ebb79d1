"""The journal of a run: the releases that were made, beside the checkpoints."""

import shutil
from pathlib import Path
from typing import Any

from lightning_dpg.privacy.ledger import PrivacyLedger

JOURNAL = "ledger.jsonl"


def journal_state(checkpoint: str | Path | None) -> dict[str, Any] | None:
    """Return the state of the ledger of the journal beside a checkpoint; None without one."""
    journal = journal_beside(checkpoint)
    return None if journal is None else replay(journal)


def journal_beside(checkpoint: str | Path | None) -> Path | None:
    """Return the journal in the run folder of a checkpoint."""
    if checkpoint is None:
        return None
    folders = Path(checkpoint).absolute().parents[:2]
    return next((path / JOURNAL for path in folders if (path / JOURNAL).is_file()), None)


def replay(journal: Path) -> dict[str, Any] | None:
    """Return the state of the ledger that wrote ``journal``; None if it booked nothing."""
    return PrivacyLedger.replay(journal) if b"\n" in journal.read_bytes() else None


def open_journal(folder: Path | None, previous: Path | None) -> Path | None:
    """Open the journal of this run.

    A resumed run continues the file of the earlier run under a second name: every later resume,
    from either folder, finds all steps. Without a folder it continues the file itself.
    """
    if folder is None:
        return previous
    journal = folder / JOURNAL
    folder.mkdir(parents=True, exist_ok=True)
    if previous is not None and previous.exists():
        if journal.exists() and journal.samefile(previous):
            return journal
        _set_aside(journal)
        _link(journal, previous)
    else:
        _set_aside(journal)
    return journal


def _link(journal: Path, previous: Path) -> None:
    """Give a file a second name: of a copy, neither of two resumed runs would see the other."""
    try:
        journal.hardlink_to(previous)
    except OSError:  # another file system
        try:
            journal.symlink_to(previous.resolve())
        except OSError:  # a file system without links
            shutil.copy(previous, journal)


def _set_aside(journal: Path) -> None:
    """Keep the file of another run of the same name."""
    if journal.exists():
        count = len(list(journal.parent.glob(f"{journal.stem}-*{journal.suffix}")))
        journal.rename(journal.with_stem(f"{journal.stem}-{count + 1}"))
