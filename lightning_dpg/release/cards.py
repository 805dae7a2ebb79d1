"""Model cards of existing releases, written again with other texts of the owner."""

import shutil
from pathlib import Path
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.outcome import note
from lightning_dpg.release.card.document import registry_record
from lightning_dpg.release.card.evaluations import findings
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import Facts, topics, with_texts
from lightning_dpg.release.reader import (
    read_recipe,
    rebuild,
)
from lightning_dpg.release.verify import faults, has_topics
from lightning_dpg.release.writer import (
    today,
    write_card,
    write_folder,
    write_nonprivate_card,
)
from lightning_dpg.run_folder import GENERATOR, NOT_PRIVATE, RELEASE, released_tensors, statement_in


def rewrite_card(
    release: Path, card: Card, method_class: type[PrivateModule] | None = None
) -> None:
    """Write the card of a release again: statement, tensors and graphs stay, and no budget is spent.

    Args:
        release: Folder of the release.
        card: Texts of the owner; those that are not given stay.
        method_class: Class of the method of a release without topics, if it is not shipped.

    Raises:
        CommandError: If the release is damaged or edited, or if a file of results is none.
    """
    content = _content(release, method_class)
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


def write_record(release: Path, file: Path, method_class: type[PrivateModule] | None = None) -> str:
    """Write a record of a release for the registry of deployments of differential privacy.

    Args:
        release: Folder of the release, which stays as it is.
        file: File in YAML, by the registry's schema of July 2026.
        method_class: Class of the method of a release without topics, if it is not shipped.

    Returns:
        What the owner has not stated and the registry asks for, in one sentence; empty for nothing.

    Raises:
        CommandError: If the release is damaged or edited, or has no guarantee.
    """
    content = _content(release, method_class)
    if content["epsilon"] == "inf":
        raise CommandError(f"{release}: no record is written, since it has no guarantee")
    record, missing = registry_record(content)
    write_whole(file, record)
    return missing


def _content(release: Path, method_class: type[PrivateModule] | None) -> dict[str, Any]:
    """Return the content of the ``privacy.json`` of a release without faults, with topics."""
    if wrong := faults(release, with_cards=False):
        raise CommandError(
            "\n".join([f"{release}: no card is written, since it has faults", *wrong[:3]])
        )
    content = statement_in(release)
    return (
        content if has_topics(content) else content | topics(content, _facts(release, method_class))
    )


def _facts(release: Path, method_class: type[PrivateModule] | None) -> Facts:
    """Collect the facts of an early release of 0.2 from its tensors and files."""
    path = released_tensors(release)
    recipe, _ = read_recipe(path)
    reads: Any = rebuild(path, (PrivateModule,), method_class).capabilities.reads
    graphs = {file.stem for file in release.glob("synthetic-*.*")}
    return Facts(
        method_path=recipe["method"],
        settings=recipe["hparams"],
        is_set=reads is GraphSetRecords,
        max_occurrences=None if reads is GraphSetRecords else 1,
        num_graphs=len(graphs) if path.name == GENERATOR else None,
        date=None,
        version=None,
        configuration=None,
    )
