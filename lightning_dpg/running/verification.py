"""Checks of a release from its own files: checksums, epsilon, and agreement of its parts."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from lightning_dpg import __version__
from lightning_dpg.callbacks.card.pages import CARD, PAGE, in_markdown, pages
from lightning_dpg.callbacks.card.topics import TOPICS, parameters_of, statement_of
from lightning_dpg.callbacks.checksums import SUMS, digest, files_of, read_sums
from lightning_dpg.callbacks.release_writer import GENERATOR, STATEMENT
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.running.releases import (
    check_schema_version,
    is_shipped,
    read_recipe,
    rebuild,
    released_tensors,
)

# Stated epsilons have four digits after the point, rounded up.
ROUNDING = 1e-4
SEARCH = 2e-6  # relative tolerance of the search for the proved epsilon, twice
# Statements have schema versions since tight epsilons are stated, and topics of a card since 3.
TIGHT, WITH_TOPICS = 2, 3
_INCOMPLETE = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(ArithmeticError, UndefinedError),  # of numbers that are too large, and of the card
)


def faults(release: Path, *, with_cards: bool = True) -> list[str]:
    """Find all faults of a release; empty for a correct one.

    Args:
        release: Folder of the release.
        with_cards: Whether the card has to be there, as a page too, and has to have checksums.
    """
    found = [*_faults_of_files(release), *_faults_of_statement(release, with_cards)]
    if with_cards:
        return found
    allowed = (f"{CARD}: ", f"{PAGE}: ", f"{SUMS}: missing")
    return [fault for fault in found if not fault.startswith(allowed)]


def summary(release: Path) -> list[str]:
    """Summarize the statement of a release without faults, as lines.

    Args:
        release: Folder of the release.
    """
    content = json.loads((release / STATEMENT).read_text(encoding="utf-8"))
    return [
        f"{len(files_of(release))} files have their checksums",
        f"epsilon {content['epsilon']} is what the {len(content['entries'])} entries prove",
        *_compared(content),
        f"guarantee: {content['guarantee']}",
    ]


def _compared(content: dict[str, Any]) -> list[str]:
    """Say how much of the card was compared; nothing for a release of an earlier version."""
    if not has_topics(content):
        return []
    made_by = content["administrative"]["card_lightning_dpg"]
    if made_by == __version__:
        return [f"{CARD} and {PAGE} are the card of {STATEMENT}"]
    return [
        f"{CARD} was written by version {made_by}: only guarantee and assumptions were compared"
    ]


def _faults_of_files(release: Path) -> Iterator[str]:
    """Find files that are missing, additional or different from their checksums."""
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


def _faults_of_statement(release: Path, with_cards: bool) -> Iterator[str]:
    """Find contradictions between privacy.json, its own entries, the card and the tensors."""
    try:
        content = json.loads((release / STATEMENT).read_text(encoding="utf-8"))
        statement = statement_of(content)
        check_schema_version(Path(STATEMENT), statement)
        proved = _proved(statement)
        stated = float(statement["epsilon"])
        sentence, assumptions = statement["guarantee"], list(statement["assumptions"])
        if wrong := [text for text in (sentence, *assumptions) if not isinstance(text, str)]:
            raise TypeError(f"{wrong[0]!r} is no text")
        claim = f"({stated:.15g}, {statement['delta']:.15g})-DP"
        earlier = f"({stated:g}, {statement['delta']:g})-DP"  # up to version 0.1.0
    except FileNotFoundError:
        yield f"{STATEMENT}: missing"
        return
    except CommandError as error:
        yield str(error)
        return
    except _INCOMPLETE as error:
        yield f"{STATEMENT}: no privacy statement ({type(error).__name__}: {error})"
        return
    # An earlier version may have stated more than the current sharper accounting proves.
    is_ours = statement.get("schema_version", 1) >= TIGHT
    if not stated >= proved * (1 - SEARCH) - ROUNDING:
        yield f"{STATEMENT}: states epsilon {stated:g}, but its entries prove no less than {proved:g}"
    elif is_ours and math.isfinite(stated) and stated > proved + 2 * ROUNDING:
        yield f"{STATEMENT}: states epsilon {stated:g}, but its entries prove {proved:g}"
    claim = claim if math.isfinite(stated) else "none: "
    if claim not in sentence and earlier not in sentence:
        yield f"{STATEMENT}: its guarantee does not say {claim!r}"
    if has_topics(content):
        yield from _faults_of_topics(content)
    if with_cards:
        yield from _faults_of_card(release / CARD, sentence, assumptions)
        yield from _faults_of_pages(release, content)
    yield from _faults_of_tensors(release, statement)


def _proved(statement: dict[str, Any]) -> float:
    """Epsilon that the entries of a statement prove at its delta."""
    ledger = PrivacyLedger(Relation(statement["relation"]))
    # Strict JSON has a word, and no number, for infinity.
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
    if said not in ([sentence], [in_markdown(sentence)]):
        yield f"{path.name}: its guarantee is not that of privacy.json"
    yield from (
        f"{path.name}: does not say what is assumed: {assumption}"
        for assumption in assumptions
        if not {f"- {assumption}", f"- {in_markdown(assumption)}"} & {*lines}
    )


def has_topics(content: dict[str, Any]) -> bool:
    """Whether a ``privacy.json`` has to have topics, or has some of them."""
    return content.get("schema_version", 1) >= WITH_TOPICS or not content.keys().isdisjoint(TOPICS)


def _faults_of_topics(content: dict[str, Any]) -> Iterator[str]:
    """Find contradictions between the statement and the topics."""
    try:
        parameters, assumed = content["privacy_parameters"], content["exposure"]
        if parameters != parameters | parameters_of(content):
            yield f"{STATEMENT}: its privacy_parameters are not those of its epsilon and delta"
        if assumed["unprotected_quantities"] != content["assumptions"]:
            yield f"{STATEMENT}: its unprotected_quantities are not its assumptions"
        pages(content)
    except _INCOMPLETE as error:
        missing = [topic for topic in TOPICS if topic not in content]
        said = f"no {missing[0]}" if missing else f"{type(error).__name__}: {error}"
        yield f"{STATEMENT}: its topics are incomplete ({said})"


def _faults_of_pages(release: Path, content: dict[str, Any]) -> Iterator[str]:
    """Find formats of the card that are missing, or are not those of the topics."""
    try:
        expected = pages(content)
        made_by = content["administrative"]["card_lightning_dpg"]
    except _INCOMPLETE:  # topics that are incomplete have been named
        return
    if not (release / PAGE).is_file():
        yield f"{PAGE}: missing"
    for name, kind in ((CARD, "card"), (PAGE, "page")):
        # Another version may have other words for the same content.
        path = release / name
        if made_by == __version__ and path.is_file() and path.read_text("utf-8") != expected[name]:
            yield f"{STATEMENT}: the {kind} of this content is not the {kind} in the folder"


def _faults_of_tensors(release: Path, statement: dict[str, Any]) -> Iterator[str]:
    try:
        path = released_tensors(release)
    except CommandError:
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
