"""``verify``: integrity of a release, and agreement of its statement with its ledger entries."""

from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.run_folder import release_in

OLD = 3
"""Exit code of a release without faults whose files have no checksums, as 0.1.0 wrote them."""


def verify(release: Path) -> None:
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

    Raises:
        SystemExit: With code 1, if a fault is found; with code 3, if the release is an old one.
    """
    folder = release.parent if release.is_file() else release_in(release)
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such folder")
    if not any((folder / name).exists() for name in ("privacy.json", "SHA256SUMS")):
        raise CommandError(f"{folder}: no release, it has neither privacy.json nor SHA256SUMS")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.release.verify import faults, is_old, summary, warnings_of

    if problems := faults(folder):
        _print_red(problems)
        print(f"{folder}: {len(problems)} {'fault' if len(problems) == 1 else 'faults'}")
        raise SystemExit(1)
    _print_red(warnings_of(folder))
    print("\n".join(summary(folder)))
    if is_old(folder):
        raise SystemExit(OLD)


def _print_red(lines: list[str]) -> None:
    """Print lines, in red to a terminal."""
    # Start-up time: the other commands print without rich.
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text(line, style="bold red"), soft_wrap=True)
