"""``audit``: an empirical lower bound on epsilon, to hold a claim against."""

import argparse
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_configs

if TYPE_CHECKING:
    from lightning_dpg.auditing.audited_fit import Evidence, Outcome

DESCRIPTION = """\
Measure how much privacy a method loses at least, and compare that with what it claims. Options that
are not listed here are those of fit, such as --data.init_args.name or --privacy.epsilon.

Canaries are random pairs without an edge; a secret fair coin inserts each into a copy of the graph,
and the method is fitted once. An attacker who knows all other edges then says of the likeliest
quarter of the canaries that they were inserted, and of the unlikeliest quarter that they were not;
or the surest eighth is guessed. More right guesses than epsilon allows refute the claim (Steinke,
Nasr, Jagielski, 2023).

With --runs R --canaries P there are R fits with P canaries each, and all guesses count together. Few
canaries per fit hide each other less, and many of them prove more.

With --runs R alone there is one canary and R fits with and R without it. Half of them choose a
threshold, which the others try.

Views: released, what leaves the house; transcript, the noisy values of the run, which the proofs
allow an attacker to see, too. A method scores those of its releases that are printed as scored; the
others are named, and a mistake in their noise stays unseen. Each scored release is also tried by
itself against the epsilon of all releases up to it; the confidence is that of all bounds together.
The exit code is 1 if a bound exceeds its claim."""


class Bound(NamedTuple):
    """How one release, or all of them together, fared."""

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
        """Plain values for strict JSON, in which an infinite epsilon is a string."""
        claim = self.claimed_epsilon if math.isfinite(self.claimed_epsilon) else "inf"
        return self._asdict() | {"claimed_epsilon": claim}


class Report(NamedTuple):
    """Result of an audit.

    Attributes:
        method: Name of the method.
        view: What the attacker saw.
        fits: Number of fits.
        canaries: Number of canaries of all fits, each with a coin of its own.
        delta: Delta of all claims.
        confidence: Probability with which all bounds hold together.
        together: Bound by all releases together.
        apart: Bounds by each scored release, where there are several of them and all canaries are
            tried at once.
        scored: Names of the releases that the attacker scores; none in the view ``released``.
        unscored: Names of the releases that the attacker makes nothing of.
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


def run(args: list[str]) -> None:
    """Audit a method.

    Raises:
        SystemExit: With the code 1, if its claim is refuted.
    """
    options, rest = _parse(args)
    rest = find_configs(rest)

    started = time.perf_counter()
    many = options.runs is not None and options.canaries is None
    report = many_runs(options, rest) if many else many_canaries(options, rest)
    print("\n".join(_lines(report)))
    print(f"time: {time.perf_counter() - started:.1f} s")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "audit.json"
        path.write_text(report.to_json(), encoding="utf-8")
        print(path)
    print("not private: the guesses were compared with the canaries, the attacker knew all edges")
    if report.refuting:
        raise SystemExit(1)


def many_canaries(options: argparse.Namespace, args: list[str]) -> Report:
    """Audit by one fit with many canaries, or by several.

    Args:
        options: Options of the audit.
        args: Those of ``fit``.
    """
    from lightning_dpg.auditing.audited_fit import audited_fit, pooled

    fits = options.runs or 1
    outcome = pooled(
        [audited_fit(args, options.canaries, options.view, seed=seed) for seed in range(fits)]
    )
    report = bounded(outcome, options.view, fits, options.confidence)
    scores = outcome.together.scores
    if scores.min() == scores.max():
        print("the attacker scored all canaries alike: try --runs 200, or --view transcript")
    return report


def bounded(outcome: "Outcome", view: str, fits: int, confidence: float) -> Report:
    """Bounds by all releases together and by each one, which share what may go wrong.

    Args:
        outcome: Scores of all fits.
        view: What the attacker saw.
        fits: Number of fits.
        confidence: Probability with which all bounds hold.
    """
    from lightning_dpg.privacy.audit import epsilon_lower_bound, guess_half, guess_surest

    scored = {name: part for name, part in outcome.apart.items() if part.is_scored}
    ways = guess_half, guess_surest
    # One release is all there is, or is one more test.
    tried = scored if len(scored) > 1 else {}
    each = 1 - (1 - confidence) / (1 + len(tried)) / len(ways)
    count = len(outcome.inserted)

    def bound(name: str | None, part: "Evidence") -> Bound:
        best = max(
            (epsilon_lower_bound(count, *guesses, outcome.delta, each), *guesses)
            for guesses in (guess(part.scores, outcome.inserted) for guess in ways)
        )
        return Bound(name, part.epsilon, *best)

    together = bound(None, outcome.together)
    apart = [bound(name, part) for name, part in tried.items()]
    return Report(
        *(outcome.method, view, fits, count, outcome.delta, confidence, together, apart),
        *_names(outcome),
    )


def _names(outcome: "Outcome") -> tuple[list[str], list[str]]:
    """Names of the releases that are scored, and of those that are not."""
    scored = [name for name, part in outcome.apart.items() if part.is_scored]
    return scored, [name for name in outcome.apart if name not in scored]


def many_runs(options: argparse.Namespace, args: list[str]) -> Report:
    """Audit by many fits with and without one canary.

    Args:
        options: Options of the audit.
        args: Those of ``fit``.
    """
    from lightning_dpg.auditing.audited_fit import audited_fit, pooled
    from lightning_dpg.privacy.audit import best_threshold, many_runs_lower_bound

    fits = {
        world: pooled([audited_fit(args, 1, options.view, world) for _ in range(options.runs)])
        for world in (True, False)
    }
    scores = {world: fits[world].together.scores for world in fits}
    half, outcome = options.runs // 2, fits[True]
    threshold = best_threshold(scores[True][:half], scores[False][:half], outcome.delta)
    hits, errors = (int((scores[world][half:] >= threshold).sum()) for world in (True, False))
    tried = options.runs - half
    lowest = many_runs_lower_bound(hits, tried, errors, tried, outcome.delta, options.confidence)
    correct = hits + tried - errors
    together = Bound(None, outcome.together.epsilon, lowest, 2 * tried, correct)
    fits_made, delta = 2 * options.runs, outcome.delta
    return Report(
        *(outcome.method, options.view, fits_made, 1, delta, options.confidence, together, []),
        *_names(outcome),
    )


def _parse(args: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="lightning_dpg audit",
        usage="lightning_dpg audit --config CONF [options of fit] [...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--canaries", type=int, help="how many; by default half the nodes, one per graph of a set")
    add("--view", choices=("released", "transcript"), default="released", help="(%(default)s)")
    add("--runs", type=int, metavar="R", help="fits with canaries each, or with and without one")
    add("--confidence", type=float, default=0.95, help="of the bound (%(default)s)")
    add("--output", type=Path, metavar="DIR", help="folder for audit.json")
    options, rest = parser.parse_known_args(args)
    if not any(arg == "-c" or arg.startswith("--config") for arg in rest):
        raise CommandError("audit needs --config FILE, the configuration of a method")
    if options.canaries is not None and options.canaries * (options.runs or 1) < 4:
        raise CommandError(
            f"--canaries must be at least 4 in all fits together, got {options.canaries}"
        )
    if options.runs is not None and options.runs < 4:
        raise CommandError(f"--runs must be at least 4, got {options.runs}")
    if not 0 < options.confidence < 1:
        raise CommandError(f"--confidence must be between 0 and 1, got {options.confidence:g}")
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise CommandError(f"--output {options.output}: not a folder")
    return options, rest


def _lines(report: Report) -> list[str]:
    together = report.together
    each = f" in {report.fits} fits" if report.fits > 1 else ""
    lines = [f"method: {report.method}, view: {report.view}, canaries: {report.canaries}{each}"]
    if report.view == "transcript":
        lines += _scored(report)
    if math.isinf(together.claimed_epsilon):
        verdict = "nothing is claimed that could be refuted"
    elif report.refuting:
        names = {bound.release or "all releases together": None for bound in report.refuting}
        verdict = f"REFUTED: the method loses more than it claims, by {', '.join(names)}"
    else:
        verdict = "not refuted"
    return [
        *lines,
        f"guesses: {together.correct} of {together.guesses} right",
        f"claimed: epsilon {together.claimed_epsilon:g} at delta {report.delta:g}",
        f"measured: epsilon at least {together.epsilon_lower_bound:.4f} at {report.confidence:.0%}",
        f"verdict: {verdict}",
    ]


def _scored(report: Report) -> list[str]:
    """Which releases were scored, how each one fared by itself, and which were not scored."""
    total = len(report.scored) + len(report.unscored)
    not_scored = f", not: {', '.join(report.unscored)}" if report.unscored else ""
    lines = [f"scored: {len(report.scored)} of {total} releases{not_scored}"]
    return lines + [
        f"  {bound.release}: {bound.correct} of {bound.guesses} right, epsilon at least "
        f"{bound.epsilon_lower_bound:.4f}, claimed up to it: {bound.claimed_epsilon:.4g}"
        for bound in report.apart
    ]
