"""Checks of a release from its own files: checksums, epsilon, agreement of its parts, and its draws.

A release of a shipped method is also compared with its class: the condition of its guarantee, its
relation, and the plan of its settings at the stated epsilon. Each read of the plan has to be there,
by the same mechanism, and must not cost less than in the plan. It may cost more, because a stopped run
has spent less than its budget, which the statement does not name. Two things are not compared:
sensitivities, which may follow from released values, and noise that was solved for a number of steps.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from lightning_dpg import __version__
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.budget import Budget, digits_down
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.second_opinion import OPACUS, SecondOpinion, second_opinion
from lightning_dpg.release.card.document import CARD, PAGE, in_markdown, pages
from lightning_dpg.release.card.sentences import say
from lightning_dpg.release.card.topics import TOPICS, parameters_of, statement_of
from lightning_dpg.release.checksums import digest, files_of, read_sums
from lightning_dpg.release.reader import (
    check_schema_version,
    is_shipped,
    read_recipe,
    rebuild,
)
from lightning_dpg.release.redraw import faults_of_draws, faults_of_texts, is_foreign, odd_files
from lightning_dpg.release.release import NO_GUARANTEE
from lightning_dpg.release.signature import signatures
from lightning_dpg.release.statement import Proved, claims_of, entries_of, proved_by
from lightning_dpg.run_folder import (
    GENERATOR,
    STATEMENT,
    SUMS,
    release_at,
    released_tensors,
    statement_in,
)

# Stated epsilons have four digits after the point, rounded up.
ROUNDING = 1e-4
SEARCH = 2e-6  # relative tolerance of the search for the proved epsilon, twice
_OF_PLAN = 1e-3  # relative tolerance of searches for noise
WITH_TOPICS = 3
"""Version of the statement since which it has the topics of a card."""
_INCOMPLETE = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(ArithmeticError, UndefinedError),  # of numbers that are too large, and of the card
)


@dataclass(frozen=True)
class Verification:
    """Findings of :func:`verify`. It is true if and only if the release is in order.

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


def verify(
    folder: str | Path,
    *,
    redraw: bool = True,
    method_class: type[PrivateModule] | None = None,
    signed_by: str | Path | None = None,
) -> Verification:
    """Check a release from its own files alone, as the command ``verify`` does.

    Checksums reveal a release that was damaged or edited by accident. Whoever edits it on purpose can
    write new ones. So its graphs, and all that is drawn beside them, are drawn again from the tensors.
    Tensors and statement can still be those of another release: compare the checksums with those that
    the sender has published.

    Args:
        folder: Folder of a release or of a run, or a file of a release.
        redraw: Whether to draw again, which takes as long as ``generate``.
        method_class: Class of its method, if it is not shipped: it is code, and runs.
        signed_by: Public key of SSH or minisign, or file of allowed signers of SSH, whose signature
            of the checksums it must have.

    Returns:
        The findings, which are true if and only if the release is in order.

    Raises:
        CommandError: If there is no release or no key, or if the tool of the key is not installed.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> release = dpg.fit("karate", "chung_lu", epsilon=1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = dpg.verify(release.save(folder))
        ...     _ = (release.save(folder) / "privacy.json").write_text("{}")
        ...     edited = dpg.verify(folder)
        >>> found.ok, found.epsilon, found.faults
        (True, 1.0, ())
        >>> bool(edited), edited.faults[0]
        (False, 'privacy.json: changed, it does not have its checksum')
    """
    place = release_at(Path(folder).expanduser())
    key = None if signed_by is None else Path(signed_by).expanduser()
    bad, signed = signatures(place, key)
    if found := [*faults(place, redraw=redraw, method_class=method_class), *bad]:
        return Verification(place, tuple(found), (), (), None, "")
    content = statement_in(place)
    return Verification(
        place,
        (),
        tuple(warnings_of(place)),
        (*summary(place), *signed, _draws(place, redraw, method_class)),
        float(content["epsilon"]),
        content["guarantee"],
    )


def faults(
    release: Path,
    *,
    with_cards: bool = True,
    redraw: bool = False,
    method_class: type[PrivateModule] | None = None,
) -> list[str]:
    """Find all faults of a release; empty for a correct one.

    Args:
        release: Folder of the release.
        with_cards: Whether the card has to be there, as a page too, and has to have checksums.
        redraw: Whether to draw its graphs again.
        method_class: Class of its method, if it is not shipped and may run.
    """
    if odd := list(odd_files(release)):
        return odd
    all_faults = [*_faults_of_files(release), *_faults_of_statement(release, with_cards)]
    if redraw:
        with contextlib.suppress(CommandError, OSError, *_INCOMPLETE):  # which were named
            content = statement_in(release)
            if _can_draw(release, method_class):
                method = rebuild(released_tensors(release), (PrivateModule,), method_class)
                all_faults += faults_of_draws(release, method, content)
    if with_cards:
        return all_faults
    allowed = (f"{CARD}: ", f"{PAGE}: ", f"{SUMS}: missing")
    return [fault for fault in all_faults if not fault.startswith(allowed)]


def summary(release: Path) -> list[str]:
    """Summarize the statement of a release without faults, as lines.

    Args:
        release: Folder of the release.
    """
    content = statement_in(release)
    main, *others = proved_by(content)
    reads = "the read proves" if main.reads == 1 else f"the {main.reads} reads prove"
    return [
        f"{len(files_of(release))} files have their checksums",
        f"epsilon {content['epsilon']} is what {reads}",
        *(
            f"epsilon {other.epsilon:g} of the relation {other.relation} is what its reads prove"
            for other in others
        ),
        *_opinion(content),
        *_compared(content),
        f"guarantee: {content['guarantee']}",
    ]


def warnings_of(release: Path) -> list[str]:
    """Return the warnings for a reader of a release without faults, as lines.

    Args:
        release: Folder of the release.
    """
    content = statement_in(release)
    recipe, _ = read_recipe(released_tensors(release))
    method = recipe["method"]
    lines = [] if is_shipped(method) else [f"{method}: {say('product.not_shipped')}"]
    if content["epsilon"] == "inf":
        lines.append(NO_GUARANTEE)
    return lines


def _can_draw(release: Path, method_class: type[PrivateModule] | None) -> bool:
    """Return whether the code that draws a release may run."""
    recipe, _ = read_recipe(released_tensors(release))
    return method_class is not None or is_shipped(recipe["method"])


def _draws(release: Path, redraw: bool, method_class: type[PrivateModule] | None) -> str:
    """Say whether the files of a release without faults were drawn again."""
    if not redraw:
        return "its graphs were not drawn again: they may be other ones than its tensors draw"
    if not _can_draw(release, method_class):
        return (
            "its graphs were not drawn again, since its method is not one of lightning_dpg: name its "
            "class by --method, in Python method_class, if you trust this code"
        )
    return "all other files are what its tensors draw"


def _opinion(content: dict[str, Any]) -> list[str]:
    """Say what opacus computes; nothing where it has no accountant."""
    opinion = _second_opinion(content)
    if opinion is None:
        return []
    remark = opinion.remark(float(content["epsilon"]))
    return [f"epsilon by {OPACUS}: {opinion}", *([remark] if remark else [])]


def _second_opinion(statement: dict[str, Any]) -> SecondOpinion | None:
    return second_opinion(entries_of(statement, statement["relation"]), float(statement["delta"]))


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


def _faults_of_files(release: Path) -> Iterator[str]:
    """Find files that are missing, additional or different from their checksums."""
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
        opinion = _second_opinion(statement)
        main, *others = stated = proved_by(statement)
        epsilon = main.epsilon
        sentence, assumptions = statement["guarantee"], list(statement["assumptions"])
        if wrong := [text for text in (sentence, *assumptions) if not isinstance(text, str)]:
            raise TypeError(f"{wrong[0]!r} is no text")
        claim = f"({epsilon:.15g}, {main.delta:.15g})-DP"
        claims = claims_of(statement) if others else []
    except FileNotFoundError:
        yield f"{STATEMENT}: missing"
        return
    except CommandError as error:
        yield str(error)
        return
    except _INCOMPLETE as error:
        yield f"{STATEMENT}: no privacy statement ({type(error).__name__}: {error})"
        return
    for each in stated:
        yield from _faults_of_number(each, proved.pop(each.relation, 0.0), each is main)
    if proved:
        yield f"{STATEMENT}: it has reads of the relation {min(proved)}, and states no epsilon of it"
    if len({math.isinf(each.epsilon) for each in stated}) > 1:
        yield f"{STATEMENT}: it states an epsilon of one relation, and none of another one"
    if opinion is not None and opinion.lower_bound() > epsilon + ROUNDING:
        yield (
            f"{STATEMENT}: states epsilon {epsilon:g}, but by {OPACUS} its entries cost "
            f"{digits_down(opinion.lower_bound(), 4)} or more"
        )
    claim = claim if math.isfinite(epsilon) else "none: "
    if claim not in sentence:
        yield f"{STATEMENT}: its guarantee does not say {claim!r}"
    for claim in claims if math.isfinite(epsilon) else ():
        if claim not in sentence:
            yield f"{STATEMENT}: its guarantee does not say {claim!r}"
    yield from _faults_of_condition(statement, sentence)
    if has_topics(content):
        yield from _faults_of_topics(content, opinion)
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
    return content["schema_version"] >= WITH_TOPICS or not content.keys().isdisjoint(TOPICS)


def _faults_of_topics(content: dict[str, Any], opinion: SecondOpinion | None) -> Iterator[str]:
    """Find contradictions between the statement and the topics."""
    try:
        parameters, assumed = content["privacy_parameters"], content["exposure"]
        if parameters != parameters | parameters_of(content):
            yield f"{STATEMENT}: its privacy_parameters are not those of its epsilon and delta"
        if assumed["unprotected_quantities"] != content["assumptions"]:
            yield f"{STATEMENT}: its unprotected_quantities are not its assumptions"
        recorded = content["accounting"].get("second_opinion")
        if recorded is not None and recorded["by"] == OPACUS:  # another version may say otherwise
            on_card = SecondOpinion(recorded["rdp"], recorded["prv"], recorded["is_part"])
            if opinion is None or not on_card.is_near(opinion):
                yield f"{STATEMENT}: it says {on_card} by {OPACUS}, which computes {opinion}"
        pages(content)
    except _INCOMPLETE as error:
        missing_topics = [topic for topic in TOPICS if topic not in content]
        reason = f"no {missing_topics[0]}" if missing_topics else f"{type(error).__name__}: {error}"
        yield f"{STATEMENT}: its topics are incomplete ({reason})"


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


def _faults_of_tensors(release: Path, content: dict[str, Any]) -> Iterator[str]:
    statement = statement_of(content)
    try:
        path = released_tensors(release)
    except CommandError:
        yield f"{GENERATOR}: missing"
        return
    try:
        recipe, _ = read_recipe(path)
        shipped = is_shipped(recipe["method"])
        method = _rebuilt(path, statement) if shipped else None
    except CommandError as error:
        yield str(error).splitlines()[0].removeprefix(f"{release}/")
        return
    if recipe.get("privacy") != statement:
        yield f"{path.name}: its privacy statement is not that of privacy.json"
    if recipe["method"].rpartition(".")[2] != statement.get("method"):
        yield f"{path.name}: its method is {recipe['method']}, not that of privacy.json"
    about = content.get("administrative")
    if isinstance(about, dict) and about.get("method") != recipe["method"]:
        yield f"{STATEMENT}: its settings are of {about.get('method')}, not of {recipe['method']}"
    if isinstance(about, dict) and about.get("shipped", shipped) is not shipped:
        yield f"{STATEMENT}: it is wrong on whether the method is one of lightning_dpg"
    if method is not None and isinstance(about, dict):
        yield from _faults_of_settings(release, recipe, method, content)
    if method is not None:
        is_same_version = isinstance(about, dict) and about.get("lightning_dpg") == __version__
        try:
            yield from list(_faults_by_the_method(method, statement, is_same_version))
        except (*_INCOMPLETE, RuntimeError) as error:  # of settings that no run had
            name = type(method).__name__
            yield f"{STATEMENT}: {name} has no plan at its epsilon ({type(error).__name__}: {error})"


def _faults_of_settings(
    release: Path, recipe: dict[str, Any], method: PrivateModule, content: dict[str, Any]
) -> Iterator[str]:
    """Find settings that are not those of the tensors, and topics that do not follow from them."""
    about = content["administrative"]
    if about.get("settings") != recipe["hparams"]:
        yield f"{STATEMENT}: its settings are not those of its tensors"
    if about.get("card_lightning_dpg") != __version__:
        return  # another version may have other words
    graphs = {path.stem for path in release.glob("synthetic-*")}
    try:
        yield from list(faults_of_texts(method, content, len(graphs)))
    except _INCOMPLETE as error:
        yield f"{STATEMENT}: its topics are incomplete ({type(error).__name__}: {error})"


def _rebuilt(path: Path, statement: dict[str, Any]) -> PrivateModule:
    """Rebuild the method of a release with the stated budget, on which its condition may depend."""
    method: PrivateModule = rebuild(path, (PrivateModule,))
    main, *others = proved_by(statement)
    method.ledger.budget = main.budget
    method.ledger.beside = {each.relation: each.budget for each in others}
    return method


def _faults_by_the_method(
    method: PrivateModule, statement: dict[str, Any], is_same_version: bool
) -> Iterator[str]:
    """Find contradictions between a statement and the class of its method.

    Args:
        method: The method, rebuilt.
        statement: The statement.
        is_same_version: Whether this version wrote the release. Other versions may word a condition
            differently, and may plan other reads.
    """
    name, relation = type(method).__name__, method.relation.value
    if statement["relation"] != relation:
        yield (
            f"{STATEMENT}: its relation is {statement['relation']}, and that of {name} with these "
            f"settings is {relation}"
        )
        return
    if statement["epsilon"] == "inf":
        return
    if method.reads_private_columns and Relation.ATTRIBUTES not in method.ledger.beside:
        yield f"{STATEMENT}: it says nothing of private columns, which {name} reads"
        return
    condition, recorded = method.condition(), statement.get("condition")
    if condition is not None and recorded is None:
        yield f"{STATEMENT}: it lacks the condition of {name}: the guarantee holds only if {condition}"
    elif is_same_version and recorded != condition and recorded is not None:
        says = "has none" if condition is None else f"says: {condition}"
        yield f"{STATEMENT}: its condition is not that of {name}, which {says}"
    if is_same_version:
        assert method.ledger.budget is not None  # the stated one
        yield from _faults_by_the_plan(method, entries_of(statement), method.ledger.budget)


def _faults_by_the_plan(
    method: PrivateModule, entries: Sequence[LedgerEntry], budget: Budget
) -> Iterator[str]:
    """Find entries that are not in the plan of the settings, and reads that are missing or too cheap."""
    booked, steps = Counter[str](), 0
    for entry in entries:
        booked[entry.key] += entry.steps
        steps = max(steps, booked[entry.key] if isinstance(entry.event, Gaussian) else 0)
    name = type(method).__name__
    plan = {entry.key: entry for entry in method.plan(budget, 0)}
    training = set[str]()
    if plan.keys() != booked.keys():
        before = plan
        plan = {entry.key: entry for entry in method.plan(budget, max(steps, 1))}
        training = plan.keys() - before.keys()
    for key in sorted(booked.keys() - plan.keys()):
        yield f"{STATEMENT}: it has a read {key!r} that {name} with these settings does not make"
    for key in sorted(plan.keys() - booked.keys() - training):
        yield f"{STATEMENT}: it lacks the read {key!r} that {name} with these settings makes"
    is_solved = method.hparams.get("noise_multiplier") == "auto"
    for entry in entries:
        planned = plan.get(entry.key)
        if planned is None:
            continue
        event, least = entry.event, planned.event
        kind = (event.mechanism, entry.relation, entry.record, event.sample_rate)
        if kind != (least.mechanism, planned.relation, planned.record, least.sample_rate):
            yield f"{STATEMENT}: its read {entry.key!r} is of another kind than {name} makes it"
            continue
        is_cheaper = event.pure_epsilon < least.pure_epsilon * (1 - _OF_PLAN)
        is_cheaper |= event.total_delta < least.total_delta * (1 - _OF_PLAN)
        if not (is_solved and entry.key in training):
            is_cheaper |= event.squared_mu < least.squared_mu * (1 - _OF_PLAN)
        may_stop = method.capabilities.is_trained and isinstance(event, Gaussian)
        if is_cheaper or (booked[entry.key] < planned.steps and not may_stop):
            yield f"{STATEMENT}: its read {entry.key!r} costs less than {name} plans at its epsilon"
