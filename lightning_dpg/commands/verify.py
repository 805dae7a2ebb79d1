"""``verify``: whether a release is whole, and says of itself what its entries prove."""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError

DESCRIPTION = """\
Check a release, from its own files alone: checksums of all of them (SHA256SUMS, as sha256sum -c does),
epsilon as recomputed from every read that privacy.json lists, and what privacy.json, the model card
and the tensors' metadata say of each other. Runs no code of a method that is not shipped.

Exit code 0 if all is well, 1 if not. Checksums tell a release that was damaged or edited by accident;
somebody who edits on purpose can write new ones: compare those that the sender has published."""

# Epsilons are stated with four digits behind the point, rounded up.
ROUNDING = 1e-4


def run(args: list[str]) -> None:
    """Print what is wrong, or the guarantee.

    Raises:
        SystemExit: If something is wrong (1).
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

    faults = [*_faults_of_files(release), *_faults_of_statement(release)]
    if faults:
        print("\n".join(faults))
        print(f"{release}: {len(faults)} {'fault' if len(faults) == 1 else 'faults'}")
        raise SystemExit(1)
    from lightning_dpg.callbacks.checksums import files_of
    from lightning_dpg.callbacks.release_writer import STATEMENT

    statement = json.loads((release / STATEMENT).read_text(encoding="utf-8"))
    print(f"{len(files_of(release))} files have their checksums")
    print(f"epsilon {statement['epsilon']} is what the {len(statement['entries'])} entries prove")
    print(f"guarantee: {statement['guarantee']}")


def _faults_of_files(release: Path) -> Iterator[str]:
    """Files that are missing, additional or others than those of the checksums."""
    from lightning_dpg.callbacks.checksums import SUMS, digest, files_of, read_sums

    if not (release / SUMS).is_file():
        yield f"{SUMS}: missing, by an earlier version or on purpose: no file can be checked"
        return
    try:
        sums = read_sums(release / SUMS)
    except ValueError as error:
        yield str(error)
        return
    found = files_of(release)
    for name in sorted({*sums, *found}):
        if name not in found:
            yield f"{name}: missing"
        elif name not in sums:
            yield f"{name}: additional, {SUMS} has no checksum of it"
        elif digest(release / name) != sums[name]:
            yield f"{name}: changed, it does not have its checksum"


def _faults_of_statement(release: Path) -> Iterator[str]:
    """What privacy.json, its own entries, the card and the tensors contradict each other in."""
    from lightning_dpg.callbacks.release_writer import CARD, STATEMENT
    from lightning_dpg.running.releases import check_schema_version

    try:
        statement = json.loads((release / STATEMENT).read_text(encoding="utf-8"))
        check_schema_version(Path(STATEMENT), statement)
        proved = _proved(statement)
        stated = float(statement["epsilon"])
        sentence, assumptions = statement["guarantee"], list(statement["assumptions"])
    except FileNotFoundError:
        yield f"{STATEMENT}: missing"
        return
    except CommandError as error:
        yield str(error)
        return
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        yield f"{STATEMENT}: no privacy statement ({type(error).__name__}: {error})"
        return
    if not stated >= proved - ROUNDING:
        yield f"{STATEMENT}: states epsilon {stated:g}, but its entries prove no less than {proved:g}"
    elif math.isfinite(stated) and stated > proved + 2 * ROUNDING:
        yield f"{STATEMENT}: states epsilon {stated:g}, but its entries prove {proved:g}"
    claim = f"({stated:g}, {statement['delta']:g})-DP" if math.isfinite(stated) else "none: "
    if claim not in sentence:
        yield f"{STATEMENT}: its guarantee does not say {claim!r}"
    yield from _faults_of_card(release / CARD, sentence, assumptions)
    yield from _faults_of_tensors(release, statement)


def _proved(statement: dict[str, Any]) -> float:
    """Epsilon that the entries of a statement prove at its delta."""
    from lightning_dpg.privacy.ledger import PrivacyLedger, Relation

    ledger = PrivacyLedger(Relation(statement["relation"]))
    # Strict JSON has a word for infinity, and no number.
    entries = [
        {key: math.inf if value == "inf" else value for key, value in entry.items()}
        for entry in statement["entries"]
    ]
    ledger.load_state_dict({"relation": ledger.relation.value, "entries": entries})
    if ledger.reasons or not entries:
        return math.inf
    return ledger.headline(float(statement["delta"]))[0]


def _faults_of_card(path: Path, sentence: str, assumptions: list[str]) -> Iterator[str]:
    if not path.is_file():
        yield f"{path.name}: missing"
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.removeprefix("Guarantee: ") for line in lines if line.startswith("Guarantee: ")]
    if said != [sentence]:
        yield f"{path.name}: its guarantee is not that of privacy.json"
    yield from (
        f"{path.name}: does not say what is assumed: {assumption}"
        for assumption in assumptions
        if f"- {assumption}" not in lines
    )


def _faults_of_tensors(release: Path, statement: dict[str, Any]) -> Iterator[str]:
    from lightning_dpg.callbacks.release_writer import GENERATOR, LEARNER
    from lightning_dpg.methods.base import PrivateModule
    from lightning_dpg.running.releases import is_shipped, read_recipe, rebuild

    path = next((release / n for n in (GENERATOR, LEARNER) if (release / n).is_file()), None)
    if path is None:
        yield f"{GENERATOR}: missing"
        return
    try:
        recipe, _ = read_recipe(path)
        if is_shipped(recipe["method"]):
            rebuild(path, PrivateModule)
    except CommandError as error:
        yield str(error).splitlines()[0].removeprefix(f"{release}/")
        return
    if recipe.get("privacy") != statement:
        yield f"{path.name}: its privacy statement is not that of privacy.json"
    if recipe["method"].rpartition(".")[2] != statement.get("method"):
        yield f"{path.name}: its method is {recipe['method']}, not that of privacy.json"
