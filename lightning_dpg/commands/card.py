"""``card``: the model card of a release, written again with other texts of the owner."""

import argparse
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.run_folder import release_in

DESCRIPTION = """\
Write the model card of a release again: MODEL_CARD.md, MODEL_CARD.html, the texts of privacy.json
and SHA256SUMS. It costs nothing, and statement, tensors and graphs stay. Texts that are not given
stay as they are; fit has the same texts as --card.operator and so on, and as the section card of a
configuration. Everything that is given is published, but for results that read the private graph:
their numbers go to nonprivate-card.html beside the release, for the operator only."""

TEXTS = {
    "operator": "who made the release",
    "purpose": "what the release is made for",
    "recipient": "who receives it",
    "contact": "whom to ask about it",
    "licence": "terms of use",
    "data": "name and description of the data",
    "settings_chosen_on": "data on which method and settings were chosen",
}
FILES = {"audit": "file that audit --output has written", "attack": "file of attack --json"}


def run(args: list[str]) -> None:
    """Write the card of a release."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg card",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("release", type=Path, metavar="RELEASE", help="folder of a release or run")
    for name, meaning in TEXTS.items():
        add(f"--{name}", metavar="TEXT", help=meaning)
    for name, meaning in FILES.items():
        add(f"--{name}", metavar="FILE", help=meaning)
    add("--method", metavar="MODULE.CLASS", help="import the method of an older release from here")
    options = parser.parse_args(args)
    release = release_in(options.release)
    if not (release / "privacy.json").is_file():
        raise CommandError(f"{release}: no release, it has no privacy.json")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.callbacks import Card
    from lightning_dpg.running.release_cards import rewrite_card
    from lightning_dpg.running.releases import imported

    card = Card(**{name: getattr(options, name) for name in (*TEXTS, *FILES)})
    method_class = None if options.method is None else imported(options.method)
    rewrite_card(release, card, method_class)
    print(f"{release / 'MODEL_CARD.md'}\n{release / 'MODEL_CARD.html'}")
