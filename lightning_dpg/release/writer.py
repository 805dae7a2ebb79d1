"""The files of a release that need no tensors: statement, card and checksums, in a folder."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.whole_files import naming_full_disk
from lightning_dpg.release.card.document import nonprivate_page, pages
from lightning_dpg.release.card.evaluations import Findings
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.recipe import SCHEMA_VERSION
from lightning_dpg.run_folder import RELEASE, STATEMENT

KEY = "node_names.csv"
"""Key file of numbers and node names, in the run folder and outside of the release."""
FEATURES = "features.npz"
ATTRIBUTE_TABLE = "node_attributes.parquet"
ATTRIBUTES = "node_attributes.npz"
"""Public attributes of the nodes of a release, which has synthetic graphs. They are a file of their
own: the file of the tensors stays what the method has released, earlier versions open a release
without looking at them, and a bag of words is sparse, which tensors there are not."""
NONPRIVATE_CARD = "nonprivate-card.html"
"""Page beside the release with results of audits and attacks that read the private graph."""


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder that appears complete or not at all, in place of an older one.

    It is as readable as that one. All users may read a new ``release``, whatever the umask.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new = scratch / "new"
        new.mkdir()
        with naming_full_disk(folder, new):
            fill(new)
        mode = folder.stat().st_mode if folder.exists() else 0o755
        if folder.exists() or folder.name == RELEASE:
            for path in (new, *new.rglob("*")):
                path.chmod(mode if path.is_dir() else mode & 0o666)
        if folder.exists():
            folder.rename(scratch / "old")
        new.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_card(content: dict[str, Any], folder: Path) -> None:
    """Write ``privacy.json``, the card in all formats, and the checksums of the whole release.

    Args:
        content: Statement and topics.
        folder: The release.
    """
    write_statement(content, folder)
    for name, text in pages(content).items():
        (folder / name).write_text(text, encoding="utf-8")
    write_sums(folder)


def write_nonprivate_card(content: dict[str, Any], results: Findings, folder: Path) -> None:
    """Write results that read the private graph into the run folder, if there are any."""
    if results.private:
        page = folder / NONPRIVATE_CARD
        page.write_text(nonprivate_page(content, results.private), encoding="utf-8")
        print(f"card with private results, for you only: {page}")


def today() -> str:
    """Return the day, year first, by universal time, or that of ``SOURCE_DATE_EPOCH`` if set.

    Raises:
        Refusal: If the variable is no number of seconds.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds and not seconds.isdecimal():
        raise Refusal(f"SOURCE_DATE_EPOCH must be a number of seconds, got {seconds!r}")
    now = datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
    return now.date().isoformat()


def with_version(statement: dict[str, Any]) -> dict[str, Any]:
    """Add the version of its form to a statement."""
    return {"schema_version": SCHEMA_VERSION, **statement}


def write_statement(statement: dict[str, Any], folder: Path) -> None:
    """Write ``privacy.json`` into a folder."""
    text = json.dumps(statement, indent=2, allow_nan=False)
    (folder / STATEMENT).write_text(text + "\n", encoding="utf-8")
