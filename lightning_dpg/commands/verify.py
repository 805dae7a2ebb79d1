"""``verify``: integrity of a release, and agreement of its statement with its ledger entries."""

import argparse
from pathlib import Path

from lightning_dpg.errors import CommandError

DESCRIPTION = """\
Check a release, from its own files alone: checksums of all of them (SHA256SUMS, as sha256sum -c does),
epsilon as recomputed from every read that privacy.json lists, and what privacy.json, both formats
of the model card and the tensors' metadata say of each other. Runs no code of a method that is not
shipped.

Exit code 0 if all is well, 1 if not. Checksums tell a release that was damaged or edited by accident;
somebody who edits on purpose can write new ones: compare those that the sender has published."""


def run(args: list[str]) -> None:
    """Print the faults of a release, or its guarantee.

    Raises:
        SystemExit: With code 1, if a fault is found.
    """
    parser = argparse.ArgumentParser(
        prog="lightning_dpg verify",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("release", type=Path, metavar="RELEASE", help="folder of a release or run")
    folder = parser.parse_args(args).release
    release = folder / "release" if (folder / "release").is_dir() else folder
    if not release.is_dir():
        raise CommandError(f"{release}: no such folder")
    if not any((release / name).exists() for name in ("privacy.json", "SHA256SUMS")):
        raise CommandError(f"{release}: no release, it has neither privacy.json nor SHA256SUMS")

    # Start-up time: a wrong folder is refused before PyTorch is imported.
    from lightning_dpg.running.verification import faults, summary

    if found := faults(release):
        print("\n".join(found))
        print(f"{release}: {len(found)} {'fault' if len(found) == 1 else 'faults'}")
        raise SystemExit(1)
    print("\n".join(summary(release)))
