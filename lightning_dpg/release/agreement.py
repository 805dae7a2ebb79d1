"""Whether the files of a release agree, without PyTorch: checksums, epsilon, card and tensors."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from lightning_dpg import __version__
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy.budget import digits_down
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.privacy.second_opinion import OPACUS, SecondOpinion
from lightning_dpg.release.card.document import CARD, PAGE, in_markdown, pages
from lightning_dpg.release.card.sentences import say
from lightning_dpg.release.card.topics import (
    ADDED_UP,
    LEFT_OUT,
    NOT_ADDED_UP,
    OF_THE_OWNER,
    TOPICS,
    Facts,
    parameters_of,
    statement_of,
    topics,
)
from lightning_dpg.release.checksums import digest, files_of, read_sums
from lightning_dpg.release.recipe import check_schema_version, is_shipped, read_recipe
from lightning_dpg.release.signature import signatures
from lightning_dpg.release.statement import NO_GUARANTEE, Proved, claims_of, entries_of, proved_by
from lightning_dpg.release.writer import ATTRIBUTE_TABLE, ATTRIBUTES, FEATURES
from lightning_dpg.run_folder import (
    GENERATOR,
    LEARNER,
    STATEMENT,
    SUMS,
    UNSUMMED,
    released_tensors,
    statement_in,
)

# Stated epsilons have four digits after the point, rounded up.
ROUNDING = 1e-4
SEARCH = 2e-6  # relative tolerance of the search for the proved epsilon, twice
WITH_TOPICS = 3
"""Version of the statement since which it has the topics of a card."""
INCOMPLETE = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(ArithmeticError, UndefinedError),  # of numbers that are too large, and of the card
)
"""Errors of a statement that was edited."""
GRAPH = re.compile(r"synthetic-([0-9]+)\.(edges|graphml|npz|parquet)")
DRAWN = re.compile(
    rf"{GRAPH.pattern}|people-[0-9]+\.csv|transfers-[0-9]+\.(csv|parquet)|"
    + "|".join(map(re.escape, (FEATURES, ATTRIBUTES, ATTRIBUTE_TABLE)))
)
_WRITTEN = frozenset({GENERATOR, LEARNER, STATEMENT, CARD, PAGE}) | UNSUMMED
# Topics whose texts the owner gives, or whose findings come from files of the owner.
_GIVEN = {
    "administrative": {*OF_THE_OWNER, "card_date", "card_lightning_dpg"},
    "data": {"description", "settings_chosen_on"},
    "evaluation": {"audit", "attack"},
}
_OPINION = ("rdp", "prv", "is_part")
NOT_DRAWN = (
    "its graphs were not drawn again: they may be other ones than its tensors draw. Nor were its reads "
    "compared with the plan of its method, nor computed by opacus"
)
"""What is not checked without PyTorch."""


@dataclass(frozen=True)
class Verification:
    """Findings of :func:`~lightning_dpg.release.verify.verify`. It is true if and only if the release is in order.

    Attributes:
        folder: Folder of the release.
        faults: Everything that is wrong, each in one line; empty for a correct release.
        warnings: What a reader of a release without faults has to know, such as a method that only
            its author has proved.
        checks: What was found to be right, in lines; empty where there are faults.
        epsilon: Epsilon of the statement, infinite without a guarantee; None where there are faults.
        guarantee: Guarantee of the statement in one paragraph; empty where there are faults.
    """

    folder: Path
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    checks: tuple[str, ...]
    epsilon: float | None
    guarantee: str

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def __bool__(self) -> bool:
        """Return :attr:`ok`."""
        return self.ok

    def __str__(self) -> str:
        """Return what the command ``verify`` prints."""
        count = len(self.faults)
        total = f"{self.folder}: {count} {'fault' if count == 1 else 'faults'}"
        ends = (*self.faults, total) if self.faults else (*self.warnings, *self.checks)
        return "\n".join(ends)


def agreement(release: Path, signed_by: str | Path | None = None) -> Verification:
    """Check a release without drawing its graphs again.

    Args:
        release: Folder of the release.
        signed_by: Key whose signature it must have, see :func:`~lightning_dpg.release.verify.verify`.
    """
    return found_in(release, faults(release), [NOT_DRAWN], signed_by)


def found_in(
    release: Path, found: Sequence[str], more: Sequence[str], signed_by: str | Path | None
) -> Verification:
    """Return the findings of a release.

    Args:
        release: Folder of the release.
        found: Its faults.
        more: What else was checked, and what was not, in lines.
        signed_by: Key whose signature it must have.
    """
    key = None if signed_by is None else Path(signed_by).expanduser()
    bad, signed = signatures(release, key)
    if found := [*found, *bad]:
        return Verification(release, tuple(dict.fromkeys(found)), (), (), None, "")
    content = statement_in(release)
    recipe, _ = read_recipe(released_tensors(release))
    method, warnings = recipe["method"], list[str]()
    if not is_shipped(method):
        warnings.append(f"{method}: {say('product.not_shipped')}")
    if content["epsilon"] == "inf":
        warnings.append(NO_GUARANTEE)
    return Verification(
        release,
        (),
        tuple(warnings),
        (*_summary(release, content), *signed, *more),
        float(content["epsilon"]),
        content["guarantee"],
    )


def faults(release: Path, *, with_cards: bool = True) -> list[str]:
    """Find all faults of a release that its files alone show; empty for a correct one.

    Args:
        release: Folder of the release.
        with_cards: Whether the card has to be there, as a page too, and has to have checksums.
    """
    if odd := list(odd_files(release)):
        return odd
    found = [*faults_of_files(release), *_faults_of_statement(release, with_cards)]
    allowed = () if with_cards else (f"{CARD}: ", f"{PAGE}: ", f"{SUMS}: missing")
    return [fault for fault in found if not fault.startswith(allowed)]


def _summary(release: Path, content: dict[str, Any]) -> list[str]:
    """Summarize the statement of a release without faults, as lines."""
    main, *others = proved_by(content)
    reads = "the read proves" if main.reads == 1 else f"the {main.reads} reads prove"
    return [
        f"{len(files_of(release))} files have their checksums",
        f"epsilon {content['epsilon']} is what {reads}",
        *(
            f"epsilon {other.epsilon:g} of the relation {other.relation} is what its reads prove"
            for other in others
        ),
        *_compared(content),
        f"guarantee: {content['guarantee']}",
    ]


def _compared(content: dict[str, Any]) -> list[str]:
    """Say how much of the card was compared; nothing for an early release of 0.2."""
    if not has_topics(content):
        return []
    lines = []
    made_by = content["administrative"]["card_lightning_dpg"]
    if made_by == __version__:
        lines.append(f"{CARD} and {PAGE} are the card of {STATEMENT}")
    else:
        lines.append(
            f"{CARD} was written by version {made_by}: only guarantee and assumptions were compared"
        )
    written_by = content["administrative"]["lightning_dpg"]
    if written_by != __version__:
        version = "an earlier version" if written_by is None else f"version {written_by}"
        lines.append(
            f"the release was written by {version}: its reads were not compared with the plan of its "
            "settings"
        )
    return lines


def odd_files(release: Path) -> Iterator[str]:
    """Find links, folders and devices, which are not read."""
    for path in sorted(release.iterdir()):
        if path.is_symlink() or not path.is_file():
            yield f"{path.name}: no plain file, and a release has no links and no folders: remove it"


def is_foreign(name: str) -> bool:
    """Return whether no writer of releases makes a file of this name."""
    return name not in _WRITTEN and DRAWN.fullmatch(name) is None


def faults_of_files(release: Path, is_foreign: Callable[[str], bool] = is_foreign) -> Iterator[str]:
    """Find files that are missing, additional or different from their checksums.

    Args:
        release: Folder of a release.
        is_foreign: Whether no writer makes a file of a name.
    """
    if not (release / SUMS).is_file():
        yield f"{SUMS}: missing: no file can be checked"
        return
    try:
        sums = read_sums(release / SUMS)
    except ValueError as error:
        yield str(error)
        return
    files = files_of(release)
    for name in sorted({*sums, *files}):
        if name not in files:
            yield f"{name}: missing"
        elif is_foreign(name):
            yield f"{name}: no file of a release, which nothing in it proves: remove it"
        elif name not in sums:
            yield f"{name}: additional, {SUMS} has no checksum of it"
        elif digest(release / name) != sums[name]:
            yield f"{name}: changed, it does not have its checksum"


def _faults_of_statement(release: Path, with_cards: bool) -> Iterator[str]:
    """Find contradictions between privacy.json, its own entries, the card and the tensors."""
    try:
        content = statement_in(release)
        statement = statement_of(content)
        check_schema_version(Path(STATEMENT), statement)
        proved = _proved(statement)
        main, *others = stated = proved_by(statement)
        epsilon = main.epsilon
        sentence, assumptions = statement["guarantee"], list(statement["assumptions"])
        if wrong := [text for text in (sentence, *assumptions) if not isinstance(text, str)]:
            raise TypeError(f"{wrong[0]!r} is no text")
        claims = [f"({epsilon:.15g}, {main.delta:.15g})-DP"]
        claims += claims_of(statement) if others else []
    except FileNotFoundError:
        yield f"{STATEMENT}: missing"
        return
    except CommandError as error:
        yield str(error)
        return
    except INCOMPLETE as error:
        yield f"{STATEMENT}: no privacy statement ({type(error).__name__}: {error})"
        return
    for each in stated:
        yield from _faults_of_number(each, proved.pop(each.relation, 0.0), each is main)
    if proved:
        yield f"{STATEMENT}: it has reads of the relation {min(proved)}, and states no epsilon of it"
    if len({math.isinf(each.epsilon) for each in stated}) > 1:
        yield f"{STATEMENT}: it states an epsilon of one relation, and none of another one"
    for claim in claims if math.isfinite(epsilon) else ["none: "]:
        if claim not in sentence:
            yield f"{STATEMENT}: its guarantee does not say {claim!r}"
    yield from _faults_of_condition(statement, sentence)
    if has_topics(content):
        yield from _faults_of_topics(content)
    if with_cards:
        yield from _faults_of_card(release / CARD, sentence, assumptions)
        yield from _faults_of_pages(release, content)
    yield from _faults_of_tensors(release, content)


def _faults_of_condition(statement: dict[str, Any], sentence: str) -> Iterator[str]:
    """Find a condition that the sentence of the guarantee does not have, or has alone."""
    condition = statement.get("condition")
    if bool(statement.get("conditional")) != (condition is not None):
        yield f"{STATEMENT}: it does not say whether its guarantee has a condition"
    if condition is not None and f"-DP if {condition} (" not in sentence:
        yield f"{STATEMENT}: its guarantee does not say its condition"
    elif condition is None and "-DP if " in sentence:
        yield f"{STATEMENT}: its guarantee has a condition that the statement lacks"


def _faults_of_number(stated: Proved, proved: float, is_main: bool) -> Iterator[str]:
    """Find an epsilon that is not what the entries of its relation prove."""
    epsilon, of = stated.epsilon, "" if is_main else f" of the relation {stated.relation}"
    if not epsilon >= proved * (1 - SEARCH) - ROUNDING:
        yield (
            f"{STATEMENT}: states epsilon {epsilon:g}{of}, but its entries prove no less than "
            f"{proved:g}"
        )
    elif math.isfinite(epsilon) and epsilon > proved + 2 * ROUNDING:
        yield f"{STATEMENT}: states epsilon {epsilon:g}{of}, but its entries prove {proved:g}"


def _proved(statement: dict[str, Any]) -> dict[Relation, float]:
    """Return the epsilon that the entries of a statement prove for each relation, at its delta."""
    ledger = PrivacyLedger(Relation(statement["relation"]))
    entries = entries_of(statement)
    ledger.load_state_dict(
        {"relation": ledger.relation.value, "entries": [entry.to_dict() for entry in entries]}
    )
    if ledger.reasons or not entries:
        return dict.fromkeys(ledger.relations, math.inf)
    deltas = {each.relation: each.delta for each in proved_by(statement)}
    return {
        relation: ledger.headline(deltas.get(relation, 0.0), relation)[0]
        for relation in ledger.relations
    }


def _faults_of_card(path: Path, sentence: str, assumptions: list[str]) -> Iterator[str]:
    if not path.is_file():
        yield f"{path.name}: missing"
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    sentences = [
        line.removeprefix("Guarantee: ") for line in lines if line.startswith("Guarantee: ")
    ]
    if sentences not in ([sentence], [in_markdown(sentence)]):
        yield f"{path.name}: its guarantee is not that of privacy.json"
    yield from (
        f"{path.name}: does not say what is assumed: {assumption}"
        for assumption in assumptions
        if not {f"- {assumption}", f"- {in_markdown(assumption)}"} & {*lines}
    )


def has_topics(content: dict[str, Any]) -> bool:
    """Return whether a ``privacy.json`` has topics, or must have them."""
    version = content.get("schema_version", WITH_TOPICS)
    return version >= WITH_TOPICS or not content.keys().isdisjoint(TOPICS)


def _faults_of_topics(content: dict[str, Any]) -> Iterator[str]:
    """Find contradictions between the statement and the topics."""
    try:
        parameters, assumed = content["privacy_parameters"], content["exposure"]
        if parameters != parameters | parameters_of(content):
            yield f"{STATEMENT}: its privacy_parameters are not those of its epsilon and delta"
        if assumed["unprotected_quantities"] != content["assumptions"]:
            yield f"{STATEMENT}: its unprotected_quantities are not its assumptions"
        recorded = content["accounting"].get("second_opinion")
        if recorded is not None:
            yield from faults_of_bound(content, SecondOpinion(*map(recorded.get, _OPINION)))
        pages(content)
    except INCOMPLETE as error:
        missing_topics = [topic for topic in TOPICS if topic not in content]
        reason = f"no {missing_topics[0]}" if missing_topics else f"{type(error).__name__}: {error}"
        yield f"{STATEMENT}: its topics are incomplete ({reason})"


def faults_of_bound(content: dict[str, Any], opinion: SecondOpinion) -> Iterator[str]:
    """Find an epsilon below the lower bound of opacus, which the card may have from the run."""
    if opinion.lower_bound() > float(content["epsilon"]) + ROUNDING:
        yield (
            f"{STATEMENT}: states epsilon {content['epsilon']:g}, but by {OPACUS} its entries cost "
            f"{digits_down(opinion.lower_bound(), 4)} or more"
        )


def _faults_of_pages(release: Path, content: dict[str, Any]) -> Iterator[str]:
    """Find formats of the card that are missing, or are not those of the topics."""
    try:
        expected = pages(content)
        made_by = content["administrative"]["card_lightning_dpg"]
    except INCOMPLETE:  # topics that are incomplete have been named
        return
    if not (release / PAGE).is_file():
        yield f"{PAGE}: missing"
    for name, kind in ((CARD, "card"), (PAGE, "page")):
        # Another version may have other words for the same content.
        path = release / name
        if made_by == __version__ and path.is_file() and path.read_text("utf-8") != expected[name]:
            yield f"{STATEMENT}: the {kind} of this content is not the {kind} in the folder"


def _faults_of_tensors(release: Path, content: dict[str, Any]) -> Iterator[str]:
    statement = statement_of(content)
    try:
        path = released_tensors(release)
    except CommandError:
        yield f"{GENERATOR}: missing"
        return
    try:
        recipe, _ = read_recipe(path)
    except CommandError as error:
        yield str(error).splitlines()[0].removeprefix(f"{release}/")
        return
    if recipe.get("privacy") != statement:
        yield f"{path.name}: its privacy statement is not that of privacy.json"
    if recipe["method"].rpartition(".")[2] != statement.get("method"):
        yield f"{path.name}: its method is {recipe['method']}, not that of privacy.json"
    about, shipped = content.get("administrative"), is_shipped(recipe["method"])
    if isinstance(about, dict) and about.get("method") != recipe["method"]:
        yield f"{STATEMENT}: its settings are of {about.get('method')}, not of {recipe['method']}"
    if isinstance(about, dict) and about.get("shipped", shipped) is not shipped:
        yield f"{STATEMENT}: it is wrong on whether the method is one of lightning_dpg"
    if shipped and isinstance(about, dict):
        yield from faults_of_settings(release, recipe, content)


def faults_of_settings(
    release: Path, recipe: dict[str, Any], content: dict[str, Any], is_set: bool | None = None
) -> Iterator[str]:
    """Find settings that are not those of the tensors, and topics that do not follow from them.

    Args:
        release: Folder of the release.
        recipe: Recipe of its tensors.
        content: Content of ``privacy.json``.
        is_set: Whether its method reads a set of graphs; None where the class is not imported, and
            the texts may be those of either.
    """
    about = content["administrative"]
    if about.get("settings") != recipe["hparams"]:
        yield f"{STATEMENT}: its settings are not those of its tensors"
    if about.get("card_lightning_dpg") != __version__:
        return  # another version may have other words
    graphs = {path.stem for path in release.glob("synthetic-*")}
    try:
        kinds = (False, True) if is_set is None else (is_set,)
        found = [list(_faults_of_texts(content, len(graphs), each)) for each in kinds]
        yield from min(found, key=len)
    except INCOMPLETE as error:
        yield f"{STATEMENT}: its topics are incomplete ({type(error).__name__}: {error})"


def _faults_of_texts(content: dict[str, Any], num_graphs: int, is_set: bool) -> Iterator[str]:
    """Compare the topics of a ``privacy.json`` with those of its statement and settings.

    Texts of the owner are left out, and epsilon by opacus, which needs PyTorch.
    """
    about, accounting = content["administrative"], content["accounting"]
    other_runs, versions = accounting.get("other_runs"), about.get("drawn_with")
    if other_runs not in (None, ADDED_UP, LEFT_OUT, NOT_ADDED_UP):
        yield f"{STATEMENT}: its accounting says of other runs what no run says"
    facts = Facts(
        method_path=about["method"],
        settings=about["settings"],
        is_set=is_set,
        max_occurrences=content["privacy_unit"]["max_occurrences"],
        num_graphs=num_graphs or None,
        date=about["date"],
        version=about["lightning_dpg"],
        configuration=about["configuration_sha256"],
        other_runs=other_runs,
        drawn_with=versions,
    )
    expected = topics(statement_of(content), facts, has_opinion=False)
    for topic in TOPICS:
        given = _GIVEN.get(topic, set()) | {"second_opinion"}
        said, ours = content[topic], expected[topic]
        for name in sorted((said.keys() | ours.keys()) - given):
            if name not in ours or said.get(name) != ours[name]:
                yield f"{STATEMENT}: its {topic}.{name} is not what its statement and settings say"
