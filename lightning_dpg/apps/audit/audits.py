"""Audits: fits with canaries, and the resulting empirical lower bounds on epsilon."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from scipy.stats import norm

from lightning_dpg.apps.audit.audit_arguments import Design, RelationOfAudit, View, check_design
from lightning_dpg.apps.audit.audit_report import AllGuesses, AuditReport, Bound
from lightning_dpg.apps.audit.audited_fit import CanaryScores, Outcome, audited_fit, pooled
from lightning_dpg.apps.audit.audited_rows import audited_row_fit
from lightning_dpg.apps.audit.bounds import (
    best_threshold,
    epsilon_lower_bound,
    guess_all,
    guess_half,
    guess_surest,
    many_runs_lower_bound,
    share_lower_bound,
)
from lightning_dpg.budget_book import log_reading
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError
from lightning_dpg.interfaces import Identity, public_path
from lightning_dpg.privacy.accounting import gdp_epsilon
from lightning_dpg.progress import counted
from lightning_dpg.run.data import contents_of, name_of_graph, set_up
from lightning_dpg.run.fit import ReadData, under_ids
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run.method_choice import Method, choose_method
from lightning_dpg.run.python import reader


def audit(
    data: object,
    method: Method = "bter",
    *,
    epsilon: float,
    delta: float | None = None,
    canaries: int | None = None,
    runs: int | None = None,
    view: View = "black_box",
    relation: RelationOfAudit | None = None,
    confidence: float = 0.95,
    book: str | None = None,
    row_epsilon: float | None = None,
    **settings: Any,
) -> AuditReport:
    """Measure how much privacy a method loses at least, and compare that with its claim.

    A secret fair coin inserts each canary, a pair of nodes without an edge, into a copy of the graph.
    An attacker with the release guesses the coins; more right guesses than epsilon allows refute the
    claim. Reads the private graph: the numbers are not private.

    Args:
        data: The graph or the set of graphs, as for :func:`lightning_dpg.fit`.
        method: Name of a configuration, class of a method, or a method object.
        epsilon: Budget, which is the claim.
        delta: Budget; by default that of the method's configuration, 0 for a pure method.
        canaries: Number of canaries of each fit; by default half the number of nodes, of a set one
            for each graph, and 1,000 at most.
        runs: Number of fits, by default 1; without ``canaries``, the number of fits with one canary
            and of fits without it.
        view: ``black_box`` for an attacker with the release, ``white_box`` for one with each noisy
            value of the run as well.
        relation: ``attributes`` for canaries that are rows of private columns: a secret coin gives a
            node one of two rows, and the claim is the row epsilon. By default canaries are edges.
        confidence: Probability with which all bounds hold together.
        book: URL of the budget book that logs the audit if it knows the data; by default that of
            ``LIGHTNING_DPG_BOOK``. ``none`` leaves both out.
        row_epsilon: Budget of the private columns of one node, for a method that reads such columns.
        **settings: Arguments of the method's constructor.

    Returns:
        The bounds; ``str(report)`` is a text for people.

    Raises:
        CommandError: If the data, the method or an argument is refused.

    Example:
        >>> import lightning_dpg as dpg
        >>> report = dpg.audit("karate", "chung_lu", epsilon=1.0)
        >>> report.canaries, report.together.claimed_epsilon, report.graph.is_public
        (17, 1.0, True)
    """
    with readable_errors(), warnings.catch_warnings():
        chosen = choose_method(method, settings)
        path = public_path(chosen.method)
        if "<locals>" in path:
            raise CommandError(
                f"{path}: an audit imports the class of a method by its name, and this one is inside "
                "a function\ndefine it in a module or in a cell of a notebook"
            )
        report = audit_settings(
            chosen.configuration(epsilon, delta, 0, row_epsilon),
            Design(canaries, runs, view, relation, confidence),
            read=reader(data, chosen),
            book=book,
        )
        data_class = find_class(chosen.sections["data"]["class_path"])
        return replace(report, graph=name_of_graph(data, data_class))


def audit_settings(
    settings: Mapping[str, Any],
    design: Design,
    *,
    read: ReadData | None = None,
    book: str | None = None,
) -> AuditReport:
    """Audit a configuration.

    Args:
        settings: Complete configuration of a fit.
        design: Canaries, fits, attacker and confidence.
        read: Function that reads the data anew; by default they are those of the configuration.
        book: URL of the budget book, see :func:`audit`.

    Raises:
        CommandError: If an argument is refused.
    """
    check_design(design)
    canaries, runs, view, relation, confidence = design
    settings = under_ids(settings)
    name, privacy = settings["model"]["class_path"].rpartition(".")[2], settings["privacy"]
    contents = _contents(settings, read)
    log_reading("audit", [name], [float(privacy["epsilon"])], contents, book or privacy.get("book"))
    fit = audited_row_fit if relation == "attributes" else audited_fit
    again = partial(fit, settings, view=view, read=read)
    if runs is not None and canaries is None:
        report = _audit_one_canary(again, view, runs, confidence)
    else:
        fits = runs or 1
        outcomes = [again(canaries=canaries, seed=seed) for seed in counted(range(fits))]
        report = bounded(pooled(outcomes), view, fits, confidence)
    data = settings["data"]
    arguments = data["init_args"]
    source = arguments.get("name", arguments.get("source"))
    graph = name_of_graph(source, find_class(data["class_path"]))
    return replace(report, graph=graph, relation=relation or "edge")


def _contents(settings: Mapping[str, Any], read: ReadData | None) -> Iterator[Identity]:
    """Yield the contents of the audited data, by which a budget book recognizes them."""
    yield from contents_of(set_up(settings["data"]) if read is None else read())


def _audit_one_canary(
    fit: Callable[..., Outcome], view: View, runs: int, confidence: float
) -> AuditReport:
    """Fit many times with and without one canary.

    Half of the fits choose a threshold, and the other half test it.
    """
    worlds = [True] * runs + [False] * runs
    outcomes = [fit(canaries=1, world=world) for world in counted(worlds)]
    fits = {True: pooled(outcomes[:runs]), False: pooled(outcomes[runs:])}
    scores = {world: fits[world].together.scores for world in fits}
    half, outcome = runs // 2, fits[True]
    threshold = best_threshold(scores[True][:half], scores[False][:half], outcome.delta)
    hits, errors = (int((scores[world][half:] >= threshold).sum()) for world in (True, False))
    tried = runs - half
    lowest = many_runs_lower_bound(hits, tried, errors, tried, outcome.delta, confidence)
    correct = hits + tried - errors
    together = Bound(None, outcome.together.claim.epsilon, lowest, 2 * tried, correct)
    return AuditReport(
        *(outcome.method, view, 2 * runs, 1, outcome.delta, confidence, together, []),
        *_names(outcome),
        all_alike=False,
    )


def bounded(outcome: Outcome, view: str, fits: int, confidence: float) -> AuditReport:
    """Bound epsilon by all reads together and by each one, at one joint confidence.

    Several fits of a method with Gaussian noise are also bounded by all of their guesses.

    Args:
        outcome: Scores of all fits.
        view: View of the attacker.
        fits: Number of fits.
        confidence: Probability with which all bounds hold.
    """
    scored = [part for part in outcome.apart.values() if part.is_scored]
    ways = guess_half, guess_surest
    # Without a delta the surest guesses show as much as all of them.
    is_gaussian = outcome.delta > 0 and fits > 1
    # A single release needs no bound of its own; several releases are further tests.
    tried = scored if len(scored) > 1 else []
    each = 1 - (1 - confidence) / (1 + len(tried)) / (len(ways) + is_gaussian)
    count, scores = len(outcome.inserted), outcome.together.scores

    def bound(name: str | None, part: CanaryScores) -> Bound:
        best = max(
            (epsilon_lower_bound(count, *guesses, outcome.delta, each), *guesses)
            for guesses in (guess(part.scores, outcome.inserted) for guess in ways)
        )
        every = _all_guesses(part, outcome, fits, each) if is_gaussian else None
        return Bound(name, part.claim.epsilon, *best, every)

    together = bound(None, outcome.together)
    apart = [bound(part.name, part) for part in tried]
    return AuditReport(
        *(outcome.method, view, fits, count, outcome.delta, confidence, together, apart),
        *_names(outcome),
        all_alike=bool(scores.min() == scores.max()),
    )


def _all_guesses(part: CanaryScores, outcome: Outcome, fits: int, confidence: float) -> AllGuesses:
    """Guess the coins of all canaries, and bound the expected share of right guesses."""
    count, correct = guess_all(part.scores, outcome.inserted)
    each = count // fits
    scores, coins = torch.split(part.scores, each), torch.split(outcome.inserted, each)
    right = [guess_all(*one).correct for one in zip(scores, coins, strict=True)]
    share = share_lower_bound(torch.tensor(right) / each, each, confidence)
    mu = 2 * float(norm.ppf(max(share, 0.5)))
    return AllGuesses(count, correct, share, part.claim.share, gdp_epsilon(mu, outcome.delta))


def _names(outcome: Outcome) -> tuple[list[str], list[str]]:
    """Return the names of the scored releases, and the names of the others."""
    parts = outcome.apart.values()
    scored = [part.name for part in parts if part.is_scored]
    return scored, [part.name for part in parts if not part.is_scored]
