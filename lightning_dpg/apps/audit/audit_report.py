"""The report of an audit: claims, lower bounds and the verdict."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from lightning_dpg.pages.page import Table
from lightning_dpg.pages.report import Report
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

    @property
    def line(self) -> str:
        """The bound in one line."""
        noise = f"as of Gaussian noise of epsilon {self.gaussian_epsilon:.4f}"
        return (
            f"all guesses: {self.correct:,} of {self.guesses:,} right; at least "
            f"{self.share_lower_bound:.4f}, {noise}; claimed at most {self.claimed_share:.4f}"
        )


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

    @property
    def values(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return self._asdict() | {"all_guesses": self.all_guesses and self.all_guesses._asdict()}


_NAMELESS = GraphName("", is_public=False)


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(Report):
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

    title: ClassVar[str] = "Audit of a claim"
    not_private: ClassVar[str] = (
        "not private: the guesses were compared with the canaries, the attacker knew all edges"
    )

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
    graph: GraphName = _NAMELESS
    relation: str = "edge"

    @property
    def refuting(self) -> list[Bound]:
        """The bounds that exceed their claims."""
        return [bound for bound in (self.together, *self.apart) if bound.refutes]

    @property
    def values(self) -> dict[str, Any]:
        """All numbers as plain values."""
        together = self.together.values
        del together["release"]
        return {
            "method": self.method,
            "graph": self.graph._asdict(),
            "view": self.view,
            "relation": self.relation,
            "fits": self.fits,
            "canaries": self.canaries,
            "delta": self.delta,
            "confidence": self.confidence,
            **together,
            "refuted": bool(self.refuting),
            "apart": [bound.values for bound in self.apart],
            "scored": self.scored,
            "unscored": self.unscored,
        }

    def sections(self) -> list[Table]:
        """State claims, bounds and verdict in lines."""
        return [Table(self._setting(), "", (), (), self._lines())]

    def _setting(self) -> str:
        each = f" in {self.fits} fits" if self.fits > 1 else ""
        of = " rows of private columns" if self.relation == "attributes" else ""
        return f"method: {self.method}, view: {self.view}, canaries: {self.canaries}{of}{each}"

    def _lines(self) -> list[str]:
        together = self.together
        if math.isinf(together.claimed_epsilon):
            verdict = "nothing is claimed that could be refuted"
        elif self.refuting:
            names = {bound.release or "all reads together": None for bound in self.refuting}
            verdict = f"REFUTED: the method loses more than it claims, by {', '.join(names)}"
        else:
            verdict = "not refuted"
        alike = "all canaries have the same score: try 200 runs, or the view white_box"
        return [
            *(self._scored() if self.view == "white_box" else ()),
            *([alike] if self.all_alike else []),
            f"guesses: {together.correct} of {together.guesses} right",
            f"claimed: epsilon {together.claimed_epsilon:g} at delta {self.delta:g}",
            f"measured: epsilon at least {together.epsilon_lower_bound:.4f} at {self.confidence:.0%}",
            *([together.all_guesses.line] if together.all_guesses else []),
            f"verdict: {verdict}",
        ]

    def _scored(self) -> list[str]:
        """List the scored reads with their bounds, and the reads without a score."""
        total = len(self.scored) + len(self.unscored)
        not_scored = f", not: {', '.join(self.unscored)}" if self.unscored else ""
        lines = [f"scored: {len(self.scored)} of {total} reads{not_scored}"]
        for bound in self.apart:
            lines.append(
                f"  {bound.release}: {bound.correct} of {bound.guesses} right, epsilon at least "
                f"{bound.epsilon_lower_bound:.4f}, claimed up to it: {bound.claimed_epsilon:.4g}"
            )
            if bound.all_guesses is not None:
                lines.append(f"    {bound.all_guesses.line}")
        return lines
