"""``card``: the model card of a release, written again with other texts of the owner."""

from pathlib import Path
from typing import Annotated

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome
from lightning_dpg.run_folder import release_in


def card(
    release: Path,
    *,
    operator: str | None = None,
    purpose: str | None = None,
    recipient: str | None = None,
    contact: str | None = None,
    licence: str | None = None,
    data: str | None = None,
    settings_chosen_on: Annotated[
        str | None, "--settings-chosen-on", "--settings_chosen_on"
    ] = None,
    audit: str | None = None,
    attack: str | None = None,
    method: str | None = None,
) -> Outcome:
    """Write the model card of a release again, with other texts of its owner.

    The command writes MODEL_CARD.md, MODEL_CARD.html, the texts of privacy.json and SHA256SUMS. It costs
    nothing, and statement, tensors and graphs stay. Texts that are not given stay as they are; fit has the
    same texts as --card.operator and so on, and as the section card of a configuration. All given texts
    are published. Results that read the private graph are not: their numbers go to nonprivate-card.html
    beside the release, for the operator only.

    Args:
        release: Folder of a release or of a run.
        operator: See :class:`lightning_dpg.release.card.texts.Card`.
        purpose: See :class:`lightning_dpg.release.card.texts.Card`.
        recipient: See :class:`lightning_dpg.release.card.texts.Card`.
        contact: See :class:`lightning_dpg.release.card.texts.Card`.
        licence: See :class:`lightning_dpg.release.card.texts.Card`.
        data: See :class:`lightning_dpg.release.card.texts.Card`.
        settings_chosen_on: See :class:`lightning_dpg.release.card.texts.Card`.
        audit: See :class:`lightning_dpg.release.card.texts.Card`.
        attack: See :class:`lightning_dpg.release.card.texts.Card`.
        method: Class of an older release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.

    Example:
        python -m lightning_dpg card runs/chung_lu/version_0 --operator "Bank of Utopia"
    """
    folder = release_in(release)
    if not (folder / "privacy.json").is_file():
        raise CommandError(f"{folder}: no release, it has no privacy.json")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.callbacks import Card
    from lightning_dpg.release.cards import rewrite_card
    from lightning_dpg.release.reader import imported

    texts = Card(
        operator=operator,
        purpose=purpose,
        recipient=recipient,
        contact=contact,
        licence=licence,
        data=data,
        settings_chosen_on=settings_chosen_on,
        audit=audit,
        attack=attack,
    )
    rewrite_card(folder, texts, None if method is None else imported(method))
    files = [folder / "MODEL_CARD.md", folder / "MODEL_CARD.html"]
    return Outcome([*map(str, files)], {"release": folder, "files": files})
