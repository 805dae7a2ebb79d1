"""Model cards of existing releases, written again with other texts of the owner."""

import shutil
from pathlib import Path
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.outcome import note
from lightning_dpg.release.agreement import faults, has_topics
from lightning_dpg.release.card.document import registry_record
from lightning_dpg.release.card.evaluations import findings
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import with_texts
from lightning_dpg.release.signature import sign
from lightning_dpg.release.writer import today, write_card, write_folder, write_nonprivate_card
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE, statement_in


def rewrite_card(release: Path, card: Card) -> None:
    """Write the card of a release again: statement, tensors and graphs stay, and no budget is spent.

    A signature of the earlier files is removed.

    Args:
        release: Folder of the release.
        card: Texts of the owner; those that are not given stay.

    Raises:
        CommandError: If the release is damaged or edited, or if a file of results is none.
    """
    content = _content(release)
    results = findings(card, content["method"])
    content = with_texts(content, card, results.topic)
    version = {"card_date": today(), "card_lightning_dpg": __version__}
    content["administrative"] |= version

    def fill(folder: Path) -> None:
        shutil.copytree(release, folder, dirs_exist_ok=True)
        write_card(content, folder)

    write_folder(release, fill)
    if release.name in (RELEASE, NOT_PRIVATE):
        write_nonprivate_card(content, results, release.parent)
    elif results.private:
        note(f"{release} is in no run folder: results of the private graph are in their files only")


def write_record(release: Path, file: Path) -> str:
    """Write a record of a release for the registry of deployments of differential privacy.

    Args:
        release: Folder of the release, which stays as it is.
        file: File in YAML, by the registry's schema of July 2026.

    Returns:
        What the owner has not stated and the registry asks for, in one sentence; empty for nothing.

    Raises:
        CommandError: If the release is damaged or edited, or has no guarantee.
    """
    content = _content(release)
    if content["epsilon"] == "inf":
        raise CommandError(f"{release}: no record is written, since it has no guarantee")
    record, missing = registry_record(content)
    write_whole(file, record)
    return missing


def sign_release(release: Path, key: Path) -> None:
    """Sign the checksums of a release, whose files stay as they are.

    Args:
        release: Folder of the release.
        key: Private key of SSH or minisign.

    Raises:
        CommandError: If the release is damaged or edited, or if it cannot be signed.
    """
    _refuse_faults(release, "it is not signed", with_cards=True)
    sign(release, key)


def _content(release: Path) -> dict[str, Any]:
    """Return the content of the ``privacy.json`` of a release without faults, with topics."""
    _refuse_faults(release, "no card is written", with_cards=False)
    content = statement_in(release)
    if not has_topics(content):
        raise CommandError(
            f"{release}: of an early version 0.2, whose releases have no card to write"
        )
    return content


def _refuse_faults(release: Path, what: str, *, with_cards: bool) -> None:
    """Refuse a release that has faults, and name three of them."""
    if wrong := faults(release, with_cards=with_cards):
        raise CommandError("\n".join([f"{release}: {what}, since it has faults", *wrong[:3]]))
