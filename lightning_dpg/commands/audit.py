"""``audit``: an empirical lower bound on epsilon, to hold a claim against."""

import argparse
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lightning_dpg.commands.configs import find_configs
from lightning_dpg.commands.errors import CommandError

if TYPE_CHECKING:
    from lightning_dpg.commands.audited_fit import Outcome
    from lightning_dpg.privacy.audit import Guesses

DESCRIPTION = """\
Measure how much privacy a method loses at least, and compare that with what it claims. Options that
are not listed here are those of fit, such as --data.init_args.name or --privacy.epsilon.

Canaries are random pairs without an edge; a secret fair coin inserts each into a copy of the graph,
and the method is fitted once. An attacker who knows all other edges then says of the likeliest
quarter of the canaries that they were inserted, and of the unlikeliest quarter that they were not.
More right guesses than epsilon allows refute the claim (Steinke, Nasr, Jagielski, 2023).

With --runs R there is one canary and R fits with and R without it. Half of them choose a threshold,
which the others try. For methods that are quick, or that say the same of all canaries.

Views: released, what leaves the house; transcript, every noisy value of the run, which the proofs
allow an attacker to see, too. The exit code is 1 if the bound exceeds the claim."""


class Report(NamedTuple):
    """Result of an audit."""

    method: str
    claimed_epsilon: float
    delta: float
    epsilon_lower_bound: float
    confidence: float
    canaries: int
    guesses: int
    correct: int
    view: str

    @property
    def refutes(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.epsilon_lower_bound > self.claimed_epsilon

    def to_json(self) -> str:
        """Strict JSON, in which an infinite epsilon is a string."""
        claim = self.claimed_epsilon if math.isfinite(self.claimed_epsilon) else "inf"
        return json.dumps(self._asdict() | {"claimed_epsilon": claim}, indent=2) + "\n"


def run(args: list[str]) -> None:
    """Audit a method.

    Raises:
        SystemExit: With the code 1, if its claim is refuted.
    """
    options, rest = _parse(args)
    rest = find_configs(rest)

    started = time.perf_counter()
    report = one_run(options, rest) if options.runs is None else many_runs(options, rest)
    print("\n".join(_lines(report, options.runs)))
    print(f"time: {time.perf_counter() - started:.1f} s")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "audit.json"
        path.write_text(report.to_json(), encoding="utf-8")
        print(path)
    print("not private: the guesses were compared with the canaries, the attacker knew all edges")
    if report.refutes:
        raise SystemExit(1)


def one_run(options: argparse.Namespace, args: list[str]) -> Report:
    """Audit by one fit with many canaries.

    Args:
        options: Options of the audit.
        args: Those of ``fit``.
    """
    from lightning_dpg.commands.audited_fit import audited_fit
    from lightning_dpg.privacy.audit import epsilon_lower_bound, guess_half

    outcome = audited_fit(args, options.canaries, options.view)
    guesses = guess_half(outcome.scores, outcome.inserted)
    count = len(outcome.inserted)
    bound = epsilon_lower_bound(count, *guesses, outcome.delta, options.confidence)
    if outcome.scores.min() == outcome.scores.max():
        print("the attacker scored all canaries alike: try --runs 200, or --view transcript")
    return _report(options, outcome, bound, count, guesses)


def many_runs(options: argparse.Namespace, args: list[str]) -> Report:
    """Audit by many fits with and without one canary.

    Args:
        options: Options of the audit.
        args: Those of ``fit``.
    """
    import torch

    from lightning_dpg.commands.audited_fit import audited_fit
    from lightning_dpg.privacy.audit import Guesses, best_threshold, many_runs_lower_bound

    fits = {
        world: [audited_fit(args, 1, options.view, world) for _ in range(options.runs)]
        for world in (True, False)
    }
    scores = {world: torch.cat([fit.scores for fit in fits[world]]) for world in fits}
    half = options.runs // 2
    outcome = fits[True][0]
    threshold = best_threshold(scores[True][:half], scores[False][:half], outcome.delta)
    hits, errors = (int((scores[world][half:] >= threshold).sum()) for world in (True, False))
    tried = options.runs - half
    bound = many_runs_lower_bound(hits, tried, errors, tried, outcome.delta, options.confidence)
    return _report(options, outcome, bound, 1, Guesses(2 * tried, hits + tried - errors))


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
    add("--runs", type=int, metavar="R", help="fits per world, with one canary")
    add("--confidence", type=float, default=0.95, help="of the bound (%(default)s)")
    add("--output", type=Path, metavar="DIR", help="folder for audit.json")
    options, rest = parser.parse_known_args(args)
    if not any(arg == "-c" or arg.startswith("--config") for arg in rest):
        raise CommandError("audit needs --config FILE, the configuration of a method")
    if options.canaries is not None and options.canaries < 4:
        raise CommandError(f"--canaries must be at least 4, got {options.canaries}")
    if options.runs is not None and options.canaries is not None:
        raise CommandError("--runs has one canary: leave --canaries out")
    if options.runs is not None and options.runs < 4:
        raise CommandError(f"--runs must be at least 4, got {options.runs}")
    if not 0 < options.confidence < 1:
        raise CommandError(f"--confidence must be between 0 and 1, got {options.confidence:g}")
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise CommandError(f"--output {options.output}: not a folder")
    return options, rest


def _report(
    options: argparse.Namespace,
    outcome: "Outcome",
    bound: float,
    canaries: int,
    guesses: "Guesses",
) -> Report:
    return Report(
        outcome.method,
        outcome.epsilon,
        outcome.delta,
        bound,
        options.confidence,
        canaries,
        guesses.made,
        guesses.correct,
        options.view,
    )


def _lines(report: Report, runs: int | None) -> list[str]:
    fits = "one fit" if runs is None else f"{runs} fits with and {runs} without one canary"
    claim = f"epsilon {report.claimed_epsilon:g} at delta {report.delta:g}"
    if math.isinf(report.claimed_epsilon):
        verdict = "nothing is claimed that could be refuted"
    elif report.refutes:
        verdict = "REFUTED: the method loses more than it claims"
    else:
        verdict = "not refuted"
    return [
        f"method: {report.method}, view: {report.view}, canaries: {report.canaries}, {fits}",
        f"guesses: {report.correct} of {report.guesses} right",
        f"claimed: {claim}",
        f"measured: epsilon at least {report.epsilon_lower_bound:.4f} at {report.confidence:.0%}",
        f"verdict: {verdict}",
    ]
