"""``audit``: an empirical lower bound on epsilon, as a test of a claim."""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lightning_dpg.errors import CommandError

if TYPE_CHECKING:
    from lightning_dpg.auditing.audits import Report

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

Views: black_box, where the attacker has the release; white_box, where it has every noisy value of the
run as well, as the proofs allow. The audit prints which noisy values it scores, and names the others:
a mistake in their noise stays unseen. Each scored release is also tried by
itself against the epsilon of all releases up to it; the confidence is that of all bounds together.
The exit code is 1 if a bound exceeds its claim."""

_VIEWS = ("black_box", "white_box")
_EARLIER = {"released": "black_box", "transcript": "white_box"}


def run(args: list[str]) -> None:
    """Audit a method.

    Raises:
        SystemExit: With code 1, if the bound refutes the claim.
    """
    options, rest = _parse(args)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing.audits import audit_canaries, audit_one_canary
    from lightning_dpg.running.complete import complete_settings

    settings = complete_settings(rest)
    started = time.perf_counter()
    terms = {"view": options.view, "confidence": options.confidence}
    if options.runs is not None and options.canaries is None:
        report = audit_one_canary(settings, runs=options.runs, **terms)
    else:
        fits = options.runs or 1
        report = audit_canaries(settings, canaries=options.canaries, fits=fits, **terms)
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
    views = (*_VIEWS, *_EARLIER)
    shown = "{" + ",".join(_VIEWS) + "}"
    add("--view", choices=views, metavar=shown, default="black_box", help="(%(default)s)")
    add("--runs", type=int, metavar="R", help="fits with canaries each, or with and without one")
    add("--confidence", type=float, default=0.95, help="of the bound (%(default)s)")
    add("--output", type=Path, metavar="DIR", help="folder for audit.json")
    options, rest = parser.parse_known_args(args)
    if options.view in _EARLIER:
        print(f"--view {options.view} is now --view {_EARLIER[options.view]}", file=sys.stderr)
        options.view = _EARLIER[options.view]
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


def _lines(report: "Report") -> list[str]:
    together = report.together
    each = f" in {report.fits} fits" if report.fits > 1 else ""
    lines = [f"method: {report.method}, view: {report.view}, canaries: {report.canaries}{each}"]
    if report.view == "white_box":
        lines += _scored(report)
    if math.isinf(together.claimed_epsilon):
        verdict = "nothing is claimed that could be refuted"
    elif report.refuting:
        names = {bound.release or "all releases together": None for bound in report.refuting}
        verdict = f"REFUTED: the method loses more than it claims, by {', '.join(names)}"
    else:
        verdict = "not refuted"
    if report.all_alike:
        lines.append("all canaries have the same score: try --runs 200, or --view white_box")
    return [
        *lines,
        f"guesses: {together.correct} of {together.guesses} right",
        f"claimed: epsilon {together.claimed_epsilon:g} at delta {report.delta:g}",
        f"measured: epsilon at least {together.epsilon_lower_bound:.4f} at {report.confidence:.0%}",
        f"verdict: {verdict}",
    ]


def _scored(report: "Report") -> list[str]:
    """List the scored releases with their bounds, and the releases without a score."""
    total = len(report.scored) + len(report.unscored)
    not_scored = f", not: {', '.join(report.unscored)}" if report.unscored else ""
    lines = [f"scored: {len(report.scored)} of {total} releases{not_scored}"]
    return lines + [
        f"  {bound.release}: {bound.correct} of {bound.guesses} right, epsilon at least "
        f"{bound.epsilon_lower_bound:.4f}, claimed up to it: {bound.claimed_epsilon:.4g}"
        for bound in report.apart
    ]
