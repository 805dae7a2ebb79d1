"""Checks of a release from its own files: checksums, epsilon, agreement of its parts, and its draws.

A release of a shipped method is also compared with its class: the condition of its guarantee, its
relation, and the plan of its settings at the stated epsilon. Each read of the plan has to be there,
by the same mechanism, and must not cost less than in the plan. It may cost more, because a stopped run
has spent less than its budget, which the statement does not name. Two things are not compared:
sensitivities, which may follow from released values, and noise that was solved for a number of steps.
"""

import filecmp
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.errors import CommandError
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import LedgerEntry, Relation
from lightning_dpg.privacy.second_opinion import OPACUS, SecondOpinion, second_opinion
from lightning_dpg.release.agreement import (
    DRAWN,
    GRAPH,
    INCOMPLETE,
    Verification,
    agreement,
    faults,
    faults_of_bound,
    faults_of_settings,
    found_in,
    odd_files,
)
from lightning_dpg.release.card.topics import statement_of
from lightning_dpg.release.draws import drawn_with, write_draws
from lightning_dpg.release.graph_files import FORMATS
from lightning_dpg.release.reader import read_attributes, rebuild
from lightning_dpg.release.recipe import first_line, is_shipped, read_recipe
from lightning_dpg.release.statement import entries_of, proved_by
from lightning_dpg.release.writer import ATTRIBUTE_TABLE, ATTRIBUTES
from lightning_dpg.run_folder import (
    GENERATOR,
    STATEMENT,
    release_at,
    released_tensors,
    statement_in,
)

_OF_PLAN = 1e-3  # relative tolerance of searches for noise


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
    if not redraw:
        return agreement(place, signed_by)
    found = faults(place)
    if not any(odd_files(place)):
        found += _faults_of_method(place, method_class)
    return found_in(place, found, [] if found else _drawn(place, method_class), signed_by)


def _drawn(release: Path, method_class: type[PrivateModule] | None) -> list[str]:
    """Say what was checked of a release without faults by its method and by opacus."""
    content = statement_in(release)
    recipe, _ = read_recipe(released_tensors(release))
    opinion, lines = _second_opinion(content), []
    if opinion is not None:
        remark = opinion.remark(float(content["epsilon"]))
        lines = [f"epsilon by {OPACUS}: {opinion}", *([remark] if remark else [])]
    if method_class is not None or is_shipped(recipe["method"]):
        return [*lines, "all other files are what its tensors draw"]
    lines.append(
        "its graphs were not drawn again, since its method is not one of lightning_dpg: name its "
        "class by --method, in Python method_class, if you trust this code"
    )
    return lines


def _second_opinion(statement: dict[str, Any]) -> SecondOpinion | None:
    return second_opinion(entries_of(statement, statement["relation"]), float(statement["delta"]))


def _faults_of_method(release: Path, method_class: type[PrivateModule] | None) -> Iterator[str]:
    """Find contradictions to opacus, to the class of the method, and to what its tensors draw."""
    try:
        content = statement_in(release)
        statement, path = statement_of(content), released_tensors(release)
        recipe, _ = read_recipe(path)
        main, *others = proved_by(statement)
        yield from list(_faults_of_opinion(content, _second_opinion(statement)))
    except (CommandError, OSError):  # which were named
        return
    except INCOMPLETE as error:
        yield f"{STATEMENT}: no privacy statement ({type(error).__name__}: {error})"
        return
    shipped, about = is_shipped(recipe["method"]), content.get("administrative")
    if not shipped and method_class is None:
        return
    try:
        method = rebuild(path, (PrivateModule,), None if shipped else method_class)
    except CommandError as error:
        yield str(error).splitlines()[0].removeprefix(f"{release}/")
        return
    method.ledger.budget = main.budget  # on which its condition may depend
    method.ledger.beside = {each.relation: each.budget for each in others}
    if shipped and isinstance(about, dict):
        is_set = method.capabilities.reads is GraphSetRecords
        yield from faults_of_settings(release, recipe, content, is_set)
    if shipped:
        is_same_version = isinstance(about, dict) and about.get("lightning_dpg") == __version__
        try:
            yield from list(_faults_by_the_method(method, statement, is_same_version))
        except (*INCOMPLETE, RuntimeError) as error:  # of settings that no run had
            name = type(method).__name__
            yield f"{STATEMENT}: {name} has no plan at its epsilon ({type(error).__name__}: {error})"
    yield from _faults_of_draws(release, method, content)


def _faults_of_opinion(content: dict[str, Any], opinion: SecondOpinion | None) -> Iterator[str]:
    """Find an epsilon below the lower bound of opacus, and a card that says another one."""
    if opinion is not None:
        yield from faults_of_bound(content, opinion)
    recorded = content.get("accounting", {}).get("second_opinion")
    if recorded is not None and recorded["by"] == OPACUS:  # another version may say otherwise
        on_card = SecondOpinion(recorded["rdp"], recorded["prv"], recorded["is_part"])
        if opinion is None or not on_card.is_near(opinion):
            yield f"{STATEMENT}: it says {on_card} by {OPACUS}, which computes {opinion}"


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


def _faults_of_draws(release: Path, method: Any, content: dict[str, Any]) -> Iterator[str]:
    """Draw all graphs, and what is drawn beside them, again, and compare the files.

    It takes as long as ``generate``, and as much room on the disk for temporary files.

    Args:
        release: Folder of the release, which has plain files only.
        method: The method, around its released tensors.
        content: Content of ``privacy.json``.
    """
    names = {path.name for path in release.iterdir() if DRAWN.fullmatch(path.name)}
    graphs = [match for name in names if (match := GRAPH.fullmatch(name))]
    seeds, suffixes = {match[1] for match in graphs}, {match[2] for match in graphs}
    formats = [suffix for suffix in (*FORMATS, "parquet") if suffix in suffixes] or None
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch)
        try:
            if (release / GENERATOR).exists():
                method.node_attributes = read_attributes(release / ATTRIBUTES, method.node_names)
            has_table = ATTRIBUTE_TABLE in names
            write_draws(method, max(1, len(seeds)), drawn, formats, has_table=has_table)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  tensors that were edited end draws in any way
            yield f"{GENERATOR}: its tensors draw no graph ({first_line(error)})"
            return
        ours = {path.name for path in drawn.iterdir()}
        yield from (f"{name}: missing, and its tensors draw it" for name in sorted(ours - names))
        yield from (f"{name}: its tensors draw no such file" for name in sorted(names - ours))
        for name in sorted(ours & names):
            if not filecmp.cmp(release / name, drawn / name, shallow=False):
                yield f"{name}: not what its tensors draw{_other_versions(content)}"


def _other_versions(content: dict[str, Any]) -> str:
    """Say that other versions may be the reason of a difference; nothing where they are the same."""
    written = content.get("administrative", {}).get("drawn_with")
    if not isinstance(written, dict):
        return (
            " here, and it does not say with which versions it was drawn: try the one of its card"
        )
    here = drawn_with()
    other = [
        f"{name} {written.get(name)} (here {here.get(name)})"
        for name in sorted(written.keys() | here.keys())
        if written.get(name) != here.get(name)
    ]
    return f" here; it was drawn with {', '.join(other)}: verify it with these" if other else ""
