"""Audits: fits with canaries, and the resulting empirical lower bounds on epsilon."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from lightning_dpg.auditing.audited_fit import (
    CanaryScores,
    Outcome,
    View,
    audited_fit,
    pooled,
)
from lightning_dpg.auditing.bounds import (
    best_threshold,
    epsilon_lower_bound,
    guess_half,
    guess_surest,
    many_runs_lower_bound,
)


class Bound(NamedTuple):
    """Claim and lower bound of one release, or of all releases together."""

    release: str | None
    claimed_epsilon: float
    epsilon_lower_bound: float
    guesses: int
    correct: int

    @property
    def refutes(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.epsilon_lower_bound > self.claimed_epsilon

    def values(self) -> dict[str, Any]:
        """Plain values for strict JSON, with infinite epsilon as a string."""
        claim = self.claimed_epsilon if math.isfinite(self.claimed_epsilon) else "inf"
        return self._asdict() | {"claimed_epsilon": claim}


class Report(NamedTuple):
    """Result of an audit.

    Attributes:
        method: Name of the method.
        view: View of the attacker.
        fits: Number of fits.
        canaries: Number of canaries of all fits, each with a coin of its own.
        delta: Delta of all claims.
        confidence: Probability with which all bounds hold together.
        together: Bound by all releases together.
        apart: Bounds by each scored release, if there are several and one fit tests all canaries.
        scored: Names of the releases that the attacker scores; none in the view ``black_box``.
        unscored: Names of the releases that have no score.
        all_alike: Whether all canaries have the same score.
    """

    method: str
    view: str
    fits: int
    canaries: int
    delta: float
    confidence: float
    together: Bound
    apart: list[Bound]
    scored: list[str]
    unscored: list[str]
    all_alike: bool

    @property
    def refuting(self) -> list[Bound]:
        """The bounds that exceed their claims."""
        return [bound for bound in (self.together, *self.apart) if bound.refutes]

    def to_json(self) -> str:
        """All values as strict JSON."""
        values = self.together.values()
        del values["release"]
        general = {
            "method": self.method,
            "view": self.view,
            "fits": self.fits,
            "canaries": self.canaries,
            "delta": self.delta,
            "confidence": self.confidence,
            **values,
            "refuted": bool(self.refuting),
            "apart": [bound.values() for bound in self.apart],
            "scored": self.scored,
            "unscored": self.unscored,
        }
        return json.dumps(general, indent=2) + "\n"


def audit_canaries(
    settings: Mapping[str, Any],
    view: View = "black_box",
    *,
    canaries: int | None = None,
    fits: int = 1,
    confidence: float = 0.95,
) -> Report:
    """Audit a configuration by one fit with many canaries, or by several.

    Args:
        settings: Complete configuration of a fit.
        view: View of the attacker.
        canaries: Number of canaries of each fit; by default half the number of nodes, of a set one
            for each graph, and 1,000 at most.
        fits: Number of fits.
        confidence: Probability with which all bounds hold.
    """
    outcomes = [audited_fit(settings, canaries, view, seed=seed) for seed in range(fits)]
    return bounded(pooled(outcomes), view, fits, confidence)


def audit_one_canary(
    settings: Mapping[str, Any], view: View = "black_box", *, runs: int, confidence: float = 0.95
) -> Report:
    """Audit a configuration by many fits with and without one canary.

    Half of the fits choose a threshold, and the other half test it.

    Args:
        settings: Complete configuration of a fit.
        view: View of the attacker.
        runs: Number of fits with the canary, and of fits without it.
        confidence: Probability with which the bound holds.
    """
    fits = {
        world: pooled([audited_fit(settings, 1, view, world) for _ in range(runs)])
        for world in (True, False)
    }
    scores = {world: fits[world].together.scores for world in fits}
    half, outcome = runs // 2, fits[True]
    threshold = best_threshold(scores[True][:half], scores[False][:half], outcome.delta)
    hits, errors = (int((scores[world][half:] >= threshold).sum()) for world in (True, False))
    tried = runs - half
    lowest = many_runs_lower_bound(hits, tried, errors, tried, outcome.delta, confidence)
    correct = hits + tried - errors
    together = Bound(None, outcome.together.epsilon, lowest, 2 * tried, correct)
    return Report(
        *(outcome.method, view, 2 * runs, 1, outcome.delta, confidence, together, []),
        *_names(outcome),
        all_alike=False,
    )


def bounded(outcome: Outcome, view: str, fits: int, confidence: float) -> Report:
    """Bound epsilon by all releases together and by each one, at one joint confidence.

    Args:
        outcome: Scores of all fits.
        view: View of the attacker.
        fits: Number of fits.
        confidence: Probability with which all bounds hold.
    """
    scored = [part for part in outcome.apart.values() if part.is_scored]
    ways = guess_half, guess_surest
    # A single release needs no bound of its own; several releases are further tests.
    tried = scored if len(scored) > 1 else []
    each = 1 - (1 - confidence) / (1 + len(tried)) / len(ways)
    count, scores = len(outcome.inserted), outcome.together.scores

    def bound(name: str | None, part: CanaryScores) -> Bound:
        best = max(
            (epsilon_lower_bound(count, *guesses, outcome.delta, each), *guesses)
            for guesses in (guess(part.scores, outcome.inserted) for guess in ways)
        )
        return Bound(name, part.epsilon, *best)

    together = bound(None, outcome.together)
    apart = [bound(part.name, part) for part in tried]
    return Report(
        *(outcome.method, view, fits, count, outcome.delta, confidence, together, apart),
        *_names(outcome),
        all_alike=bool(scores.min() == scores.max()),
    )


def _names(outcome: Outcome) -> tuple[list[str], list[str]]:
    """Names of the scored releases, and names of the others."""
    parts = outcome.apart.values()
    scored = [part.name for part in parts if part.is_scored]
    return scored, [part.name for part in parts if not part.is_scored]
