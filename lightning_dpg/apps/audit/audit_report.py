"""The report of an audit: claims, lower bounds and the verdict."""

import html
import json
import math
from typing import Any, NamedTuple

from lightning_dpg.run.data import GraphName


class AllGuesses(NamedTuple):
    """Guesses of the coins of all canaries in several fits, against the claimed privacy curve.

    Attributes:
        guesses: Number of guesses.
        correct: Number of right ones.
        share_lower_bound: Lower bound on the expected share of right guesses.
        claimed_share: Largest expected share that the claim allows.
        gaussian_epsilon: Epsilon, at the claimed delta, of the Gaussian noise that allows the lower
            bound; of other noise this is no bound on epsilon.
    """

    guesses: int
    correct: int
    share_lower_bound: float
    claimed_share: float
    gaussian_epsilon: float


class Bound(NamedTuple):
    """Claim and lower bounds of one read, or of all reads together.

    Attributes:
        release: Name of the read; None for all reads together.
        claimed_epsilon: Claim.
        epsilon_lower_bound: Lower bound by the surest guesses.
        guesses: Number of these guesses.
        correct: Number of right ones.
        all_guesses: Lower bound by all guesses of several fits; None without Gaussian noise.
    """

    release: str | None
    claimed_epsilon: float
    epsilon_lower_bound: float
    guesses: int
    correct: int
    all_guesses: AllGuesses | None = None

    @property
    def refutes(self) -> bool:
        """Whether a bound exceeds its claim."""
        every = self.all_guesses
        is_right_too_often = every is not None and every.share_lower_bound > every.claimed_share
        return self.epsilon_lower_bound > self.claimed_epsilon or is_right_too_often

    def values(self) -> dict[str, Any]:
        """Return plain values for strict JSON, with infinite epsilon as a string."""
        claim = self.claimed_epsilon if math.isfinite(self.claimed_epsilon) else "inf"
        every = self.all_guesses and self.all_guesses._asdict()
        return self._asdict() | {"claimed_epsilon": claim, "all_guesses": every}


class Report(NamedTuple):
    """Result of an audit; ``str(report)`` is a text for people. Its numbers are not private.

    Attributes:
        method: Name of the method.
        view: View of the attacker.
        fits: Number of fits.
        canaries: Number of canaries of all fits, each with a coin of its own.
        delta: Delta of all claims.
        confidence: Probability with which all bounds hold together.
        together: Bound by all reads together.
        apart: Bounds by each scored release, if there are several and one fit tests all canaries.
        scored: Names of the reads that the attacker scores; none in the view ``black_box``.
        unscored: Names of the reads that have no score.
        all_alike: Whether all canaries have the same score.
        graph: Name of the audited graph, and whether it is built in and therefore public.
        relation: ``edge`` for canaries that are edges, ``attributes`` for rows of private columns.
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
    graph: GraphName = GraphName("", is_public=False)
    relation: str = "edge"

    @property
    def refuting(self) -> list[Bound]:
        """The bounds that exceed their claims."""
        return [bound for bound in (self.together, *self.apart) if bound.refutes]

    def to_json(self) -> str:
        """Return all values as strict JSON."""
        values = self.together.values()
        del values["release"]
        general = {
            "method": self.method,
            "graph": self.graph._asdict(),
            "view": self.view,
            "relation": self.relation,
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

    def __str__(self) -> str:
        """State claims, bounds and verdict."""
        return "\n".join([*_lines(self), NOT_PRIVATE])

    def __repr__(self) -> str:
        """Return the text, as ``str`` does."""
        return str(self)

    def _repr_html_(self) -> str:
        """Show the text in a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"


NOT_PRIVATE = (
    "not private: the guesses were compared with the canaries, the attacker knew all edges"
)


def _lines(report: Report) -> list[str]:
    together = report.together
    each = f" in {report.fits} fits" if report.fits > 1 else ""
    of = " rows of private columns" if report.relation == "attributes" else ""
    lines = [f"method: {report.method}, view: {report.view}, canaries: {report.canaries}{of}{each}"]
    if report.view == "white_box":
        lines += _scored(report)
    if math.isinf(together.claimed_epsilon):
        verdict = "nothing is claimed that could be refuted"
    elif report.refuting:
        names = {bound.release or "all reads together": None for bound in report.refuting}
        verdict = f"REFUTED: the method loses more than it claims, by {', '.join(names)}"
    else:
        verdict = "not refuted"
    if report.all_alike:
        lines.append("all canaries have the same score: try 200 runs, or the view white_box")
    return [
        *lines,
        f"guesses: {together.correct} of {together.guesses} right",
        f"claimed: epsilon {together.claimed_epsilon:g} at delta {report.delta:g}",
        f"measured: epsilon at least {together.epsilon_lower_bound:.4f} at {report.confidence:.0%}",
        *([] if together.all_guesses is None else [_all_guesses(together.all_guesses)]),
        f"verdict: {verdict}",
    ]


def _all_guesses(every: AllGuesses) -> str:
    """State the bound by all guesses."""
    share, claimed = every.share_lower_bound, every.claimed_share
    noise = f"as of Gaussian noise of epsilon {every.gaussian_epsilon:.4f}"
    return (
        f"all guesses: {every.correct:,} of {every.guesses:,} right; at least {share:.4f}, {noise}; "
        f"claimed at most {claimed:.4f}"
    )


def _scored(report: Report) -> list[str]:
    """List the scored reads with their bounds, and the reads without a score."""
    total = len(report.scored) + len(report.unscored)
    not_scored = f", not: {', '.join(report.unscored)}" if report.unscored else ""
    lines = [f"scored: {len(report.scored)} of {total} reads{not_scored}"]
    for bound in report.apart:
        lines.append(
            f"  {bound.release}: {bound.correct} of {bound.guesses} right, epsilon at least "
            f"{bound.epsilon_lower_bound:.4f}, claimed up to it: {bound.claimed_epsilon:.4g}"
        )
        if bound.all_guesses is not None:
            lines.append(f"    {_all_guesses(bound.all_guesses)}")
    return lines
