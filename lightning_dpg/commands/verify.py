"""``verify``: integrity of a release, and agreement of its statement with its ledger entries."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lightning_dpg.errors import CommandError
from lightning_dpg.run_folder import release_in

DESCRIPTION = """\
Check a release, from its own files alone: checksums of all of them (SHA256SUMS, as sha256sum -c does),
epsilon as recomputed from every read that privacy.json lists, by this program and by opacus, and what
privacy.json, both formats of the model card and the tensors' metadata say of each other. A shipped method
is asked for its condition, its relation and the plan of the settings. No code of other methods is run:
the first line then says so in red.

Exit code 0 if all is well, 1 if not, 3 if version 0.1.0 wrote the release: it wrote no checksums, and
nothing else is wrong. Checksums tell a release that was damaged or edited by accident; somebody who edits
on purpose can write new ones: compare those that the sender has published."""

OLD = 3
"""Exit code of a release without faults whose files have no checksums, as 0.1.0 wrote them."""


def run(args: list[str]) -> None:
    """Print the faults of a release, or its guarantee.

    Raises:
        SystemExit: With code 1, if a fault is found; with code 3, if the release is an old one.
    """
    parser = argparse.ArgumentParser(
        prog="lightning_dpg verify",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("release", type=Path, metavar="RELEASE", help="folder or file of a release")
    given = parser.parse_args(args).release
    release = given.parent if given.is_file() else release_in(given)
    if not release.is_dir():
        raise CommandError(f"{release}: no such folder")
    if not any((release / name).exists() for name in ("privacy.json", "SHA256SUMS")):
        raise CommandError(f"{release}: no release, it has neither privacy.json nor SHA256SUMS")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.running.verification import faults, is_old, summary, warnings_of

    if found := faults(release):
        _print_red(found)
        print(f"{release}: {len(found)} {'fault' if len(found) == 1 else 'faults'}")
        raise SystemExit(1)
    _print_red(warnings_of(release))
    print("\n".join(summary(release)))
    if is_old(release):
        raise SystemExit(OLD)


def _print_red(lines: list[str]) -> None:
    """Print lines, in red to a terminal."""
    console = Console(highlight=False)
    for line in lines:
        console.print(Text(line, style="bold red"), soft_wrap=True)
