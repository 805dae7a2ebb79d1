"""Numbers of an evaluation, and the purposes that a release serves beside baselines of its epsilon."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lightning_dpg.advice import Goal
from lightning_dpg.evaluation import row_quality, transfer_quality
from lightning_dpg.evaluation.row_quality import RowFigure, row_answers
from lightning_dpg.evaluation.transfer_quality import TransferFigure, transfer_answers
from lightning_dpg.metrics.figures import Pictures
from lightning_dpg.metrics.glossary import Group, Query, glossary
from lightning_dpg.metrics.queries import ALIGNED, Answer, Comparison
from lightning_dpg.metrics.sampled import line_on_sampling
from lightning_dpg.pages.page import Table
from lightning_dpg.release.writer import KEY
from lightning_dpg.tables import as_text

CLOSE = 0.1
"""Largest error, and largest lack of an agreement, of a close answer."""
USABLE = 0.5
"""Largest error, and largest lack of an agreement, of an answer that is near at all."""
CLEARLY = 0.9
"""Largest part of a baseline's error that is clearly nearer than the baseline."""
NEARLY_ALL = 0.8

PURPOSES: dict[Goal, tuple[Group, ...]] = {
    "degrees": ("degrees",),
    "shape": ("size", "paths", "clustering"),
    "communities": ("communities",),
    "links": ("copies",),
}
"""Groups of queries that speak for each goal of one graph. Goals of columns have tables of their own,
and links beyond degrees are measured by ``test``, on held-out links."""

LINK_AUC = Query(
    "link_auc",
    "ranking of links",
    "Chance that the release scores an edge of the real graph above a pair without an edge.",
    "higher",
    "copies",
)
"""Query for links in place of ``edge_overlap`` where a release scores pairs of nodes."""


class Verdict(NamedTuple):
    """Judgment of a release for one purpose."""

    goal: Goal
    is_served: bool
    reason: str


class Purposes(NamedTuple):
    """Judgment of a release for all purposes of one graph."""

    epsilon: float
    num_nodes: int
    kind: str
    num_fits: int
    """Number of fits of each baseline."""
    own: str
    """Baseline that is the method of the release, with which it is not compared; or empty."""
    verdicts: tuple[Verdict, ...]
    scores: dict[str, dict[str, list[float]]]
    """Score of each fit, by baseline and query."""

    def lines(self) -> list[str]:
        """Say which purposes are served, and why."""
        judged = {verdict.goal for verdict in self.verdicts}
        served = [verdict.goal for verdict in self.verdicts if verdict.is_served]
        others = [verdict.goal for verdict in self.verdicts if not verdict.is_served]
        first = [f"serves: {', '.join(served) or 'no purpose better than a baseline'}"]
        first += [f"does not serve: {', '.join(others)}"] if others else []
        if missing := [goal for goal in PURPOSES if goal not in judged]:
            first.append(f"not judged, without answers to compare: {', '.join(missing)}")
        compared = " and ".join(name for name in self.scores if name != self.own)
        times = "once" if self.num_fits == 1 else f"{self.num_fits} times"
        own = f" ({self.own} is the method of the release)" if self.own else ""
        lines = [
            "; ".join(first),
            *as_text([(f"  {one.goal}:", one.reason) for one in self.verdicts], left={0, 1}),
            f"beside {compared}, fitted {times} to the real graph at epsilon {self.epsilon:g}{own}",
        ]
        if others:
            kind = "" if self.kind == "undirected" else f" --kind {self.kind}"
            goal = others[0] if len(others) == 1 else "GOAL"
            lines.append(
                f"other methods: python -m lightning_dpg plan --goal {goal} --epsilon "
                f"{self.epsilon:g} --num-nodes {self.num_nodes}{kind} (a further release costs as much)"
            )
        return lines

    def for_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        verdicts = {
            one.goal: {"served": one.is_served, "reason": one.reason} for one in self.verdicts
        }
        return {"epsilon": self.epsilon, "purposes": verdicts, "baselines": self.scores}


def is_close(query: Query, score: float) -> bool:
    """Return whether a score is near its best: an error up to 0.1, an agreement from 0.9 on."""
    return _loss(query, score) <= CLOSE + 1e-12


def judge(
    scores: Mapping[str, float], baselines: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[Verdict, ...]:
    """Judge a release for each purpose of which there is an answer.

    An answer counts for a release if it is close and no baseline is, or if it is clearly nearer than
    that of every fit of every baseline and within half of its scale. An answer that is close, and
    that of a baseline too, counts neither for nor against it. A purpose is served if most of the
    other answers count for the release, or if four fifths of all answers are close.

    Args:
        scores: Score of the release by query, with that of :data:`LINK_AUC` if it has one.
        baselines: Scores of the fits of each baseline, by query; nan where one was not measured.
    """
    known = glossary("graphs") | {LINK_AUC.name: LINK_AUC}
    verdicts = []
    for goal, groups in PURPOSES.items():
        queries = [known[name] for name in scores if known[name].group in groups]
        if LINK_AUC in queries and not math.isnan(scores[LINK_AUC.name]):
            queries = [LINK_AUC]
        compared = [
            _Compared(
                query,
                _loss(query, scores[query.name]),
                {name: _least(query, rivals) for name, rivals in baselines.items()},
            )
            for query in queries
            if not _is_unknown(query, scores, baselines)
        ]
        if compared:
            verdicts.append(_verdict(goal, compared, scores))
    return tuple(verdicts)


class _Compared(NamedTuple):
    """Loss of a release in one query, and the least loss of each baseline; inf if undefined."""

    query: Query
    loss: float
    rivals: dict[str, float]

    @property
    def is_close(self) -> bool:
        return self.loss <= CLOSE + 1e-12

    @property
    def is_tie(self) -> bool:
        return self.is_close and any(rival <= CLOSE + 1e-12 for rival in self.rivals.values())

    @property
    def equals(self) -> list[str]:
        """Baselines that are not clearly farther."""
        return [name for name, rival in self.rivals.items() if not self.loss < CLEARLY * rival]

    @property
    def speaks_for(self) -> bool:
        """Whether the answer counts for the release."""
        is_usable = self.loss <= USABLE or self.query.group == "copies"
        is_nearer = bool(self.rivals) and not self.equals and is_usable
        return not self.is_tie and (self.is_close or is_nearer)


def _verdict(goal: Goal, compared: Sequence[_Compared], scores: Mapping[str, float]) -> Verdict:
    total = len(compared)
    close = sum(one.is_close for one in compared)
    telling = [one for one in compared if not one.is_tie]
    missed = [one for one in telling if not one.speaks_for]
    is_close = close >= NEARLY_ALL * total
    is_served = is_close or 2 * len(missed) < len(telling)
    if goal == "links":
        return Verdict(goal, is_served, _reason_of_links(compared[0], scores))
    ties = total - len(telling)
    start = f"close in {ties} of {total} queries, as a baseline is; " if ties else ""
    rest = f"{len(telling)} {'others' if ties else 'queries'}"
    if is_close:
        reason = f"close in {close} of {total} queries"
        return Verdict(goal, True, f"{reason}; a baseline is, too, in {ties}" if ties else reason)
    names, won = [*compared[0].rivals], len(telling) - len(missed)
    rivals = "both baselines" if len(names) > 1 else names[0]
    if is_served:
        return Verdict(goal, True, f"{start}nearer than {rivals} in {won} of {rest}")
    equals = [name for one in missed for name in one.equals]
    strongest = max(reversed(names), key=equals.count)
    count, far = equals.count(strongest), sum(not one.equals for one in missed)
    if 2 * count >= len(telling):
        return Verdict(goal, False, f"{start}{strongest} is as near or nearer in {count} of {rest}")
    more = f"; {far} more are nearer, but off by more than half" if far else ""
    return Verdict(goal, False, f"{start}nearer than {rivals} in only {won} of {rest}{more}")


def _reason_of_links(compared: _Compared, scores: Mapping[str, float]) -> str:
    """Name the numbers: a reader of a single query needs no count."""
    score = scores[compared.query.name]
    rivals = ", ".join(f"{name} {1 - loss:.2f}" for name, loss in compared.rivals.items())
    if compared.query is LINK_AUC:
        return f"scores of pairs rank links with AUC {score:.2f} ({rivals})"
    return f"{score:.2f} of the real edges are repeated ({rivals}); a copy repeats all"


def _is_unknown(
    query: Query,
    scores: Mapping[str, float],
    baselines: Mapping[str, Mapping[str, Sequence[float]]],
) -> bool:
    """Return whether the release or a baseline has no answer that could be compared."""
    if math.isnan(scores[query.name]):
        return True
    return any(
        all(math.isnan(score) for score in rivals.get(query.name, ()))
        for rivals in baselines.values()
    )


def _least(query: Query, rivals: Mapping[str, Sequence[float]]) -> float:
    return min(_loss(query, score) for score in rivals[query.name] if not math.isnan(score))


def _loss(query: Query, score: float) -> float:
    return score if query.better == "lower" else 1 - score


NO_NAMES = (
    f"left out: {', '.join(ALIGNED)} and scores of pairs, since the nodes are numbered in a secret order "
    f"and the key ({KEY} of the run) is not beside the release"
)
"""Line on a release without the key of its numbers."""


class Measured(NamedTuple):
    """One synthetic graph, compared with the real graph."""

    name: str
    """Path or name of the graph."""
    comparison: Comparison
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""
    purposes: Purposes | None = None
    """Purposes that its release serves beside baselines; None if it was not judged."""
    rows: tuple[RowFigure, ...] | None = None
    """Figures of its private columns; None without any, and empty if the real ones are not given."""
    transfers: tuple[TransferFigure, ...] | None = None
    """Figures of its transfers; None without any, and empty if the real ones are not given."""
    pictures: Pictures = MappingProxyType({})
    """Pictures of its private columns and transfers beside the real ones, if they were compared."""
    has_key: bool = True
    """Whether its nodes are known: not if they are numbers in a secret order without their key."""

    @property
    def answers(self) -> dict[str, Answer]:
        """Answer to each query."""
        return self.comparison.answers

    @property
    def further_answers(self) -> dict[str, dict[str, Answer]]:
        """Figures of private columns and of transfers, as answers to queries."""
        return {
            "private columns": row_answers(self.rows or ()),
            "transfers": transfer_answers(self.transfers or ()),
        }

    @property
    def line_on_sampling(self) -> str:
        """Line that names the sampled figures; empty if there are none."""
        return line_on_sampling({name: answer.note for name, answer in self.answers.items()})

    def table(self, real: str) -> Table:
        """Return the table of the queries.

        Args:
            real: Name of the real graph.
        """
        rows = [
            (name, cell(answer.real), cell(answer.synthetic), cell(answer.score, 4), answer.note)
            for name, answer in self.answers.items()
        ]
        notes = (self.line_on_sampling, "" if self.has_key else NO_NAMES, self.guarantee)
        head = ("query", "real", "synthetic", "error", "")
        title = f"{self.name} against {real}"
        return Table(title, "", head, rows, [*filter(None, notes)], (0, 4))

    def further_tables(self) -> dict[str, Table]:
        """Return the tables of private columns and of transfers by title, as far as there are any."""
        found = (
            ("private columns", row_quality, self.rows, (0, 1)),
            ("transfers", transfer_quality, self.transfers, (0,)),
        )
        return {
            title: Table(
                f"{self.name}: {title}",
                "",
                quality.HEAD,
                [each.cells() for each in figures],
                quality.EXPLANATION if figures else quality.NOT_COMPARED,
                left,
            )
            for title, quality, figures, left in found
            if figures is not None
        }


def cell(value: float, digits: int = 8) -> str:
    """Format a number: ``-`` for nan, and counts in full."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() else f"{value:.{digits}g}"
