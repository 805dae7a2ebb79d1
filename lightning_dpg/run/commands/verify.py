"""``verify``: integrity of a release, and agreement of its statement with its ledger entries."""

import json
from pathlib import Path

from lightning_dpg.outcome import REFUTED, Outcome
from lightning_dpg.run_folder import release_at

_STATED = ("method", "guarantee", "epsilon", "delta", "relation", "conditional")


def verify(release: Path, *, no_redraw: bool = False, method: str | None = None) -> Outcome:
    """Check a release, from its own files alone.

    The command checks the checksums of all files (SHA256SUMS, as sha256sum -c does), and refuses files
    that no release has. It recomputes epsilon from every read that privacy.json lists, by this program and
    by opacus. It compares privacy.json with both formats of the model card, with the metadata of the
    tensors and, for a shipped method, with its condition, its relation and the plan of its settings. It
    draws all graphs, people and transfers again from the tensors, and compares them with the files. No
    code of other methods is run: the first line then says so in red.

    Exit code 0 without a fault, 1 with one. Tensors and statement can be those of another release: compare
    the checksums with those that the sender has published.

    Args:
        release: Folder or file of a release.
        no_redraw: Do not draw graphs again, which takes as long as generate.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.

    Example:
        python -m lightning_dpg verify runs/chung_lu/version_0
    """
    folder = release_at(release)
    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.release.reader import imported
    from lightning_dpg.release.verify import verify as check

    method_class = None if method is None else imported(method)
    found = check(folder, redraw=not no_redraw, method_class=method_class)
    if found.faults:
        count = f"{len(found.faults)} {'fault' if len(found.faults) == 1 else 'faults'}"
        return Outcome(
            [*_red(list(found.faults)), f"{folder}: {count}"],
            {"release": folder, "faults": list(found.faults)},
            REFUTED,
        )
    warnings = list(found.warnings)
    statement = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    stated = {name: statement.get(name) for name in _STATED}
    stated |= {"beside": statement["beside"]} if "beside" in statement else {}
    return Outcome(
        [*_red(warnings), *found.checks],
        {"release": folder, "faults": [], "warnings": warnings, "redrawn": not no_redraw, **stated},
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
