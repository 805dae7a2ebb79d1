"""``verify``: integrity of a release, and agreement of its statement with its ledger entries."""

import json
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import FINE, OLD, REFUTED, Outcome
from lightning_dpg.run_folder import release_in

_STATED = ("method", "guarantee", "epsilon", "delta", "relation", "conditional")


def verify(release: Path) -> Outcome:
    """Check a release, from its own files alone.

    The command checks the checksums of all files (SHA256SUMS, as sha256sum -c does). It recomputes epsilon
    from every read that privacy.json lists, by this program and by opacus. It compares privacy.json with
    both formats of the model card, with the metadata of the tensors and, for a shipped method, with its
    condition, its relation and the plan of its settings. No code of other methods is run: the first line
    then says so in red.

    Exit code 0 without a fault, 1 with one, 3 if version 0.1.0 wrote the release: it wrote no checksums,
    and nothing else is wrong. Checksums reveal a release that was damaged or edited by accident. Somebody
    who edits on purpose can write new ones: compare them with those that the sender has published.

    Args:
        release: Folder or file of a release.

    Example:
        python -m lightning_dpg verify runs/chung_lu/version_0
    """
    folder = release.parent if release.is_file() else release_in(release)
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such folder")
    if not any((folder / name).exists() for name in ("privacy.json", "SHA256SUMS")):
        raise CommandError(f"{folder}: no release, it has neither privacy.json nor SHA256SUMS")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.release.verify import faults, is_old, summary, warnings_of

    if problems := faults(folder):
        count = f"{len(problems)} {'fault' if len(problems) == 1 else 'faults'}"
        return Outcome(
            [*_red(problems), f"{folder}: {count}"],
            {"release": folder, "faults": problems},
            REFUTED,
        )
    warnings = warnings_of(folder)
    statement = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    stated = {name: statement.get(name) for name in _STATED}
    stated |= {"beside": statement["beside"]} if "beside" in statement else {}
    return Outcome(
        [*_red(warnings), *summary(folder)],
        {"release": folder, "faults": [], "warnings": warnings, **stated},
        OLD if is_old(folder) else FINE,
    )


def _red(lines: list[str]) -> list[str]:
    """Return lines, in red for a terminal."""
    # Start-up time: the other commands print without rich.
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    with console.capture() as capture:
        for line in lines:
            console.print(Text(line, style="bold red"), soft_wrap=True)
    return capture.get().splitlines()
