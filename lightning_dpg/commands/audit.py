"""``audit``: an empirical lower bound on epsilon, as a test of a claim."""

import argparse
import time
from pathlib import Path

from lightning_dpg.auditing.audit_arguments import check_arguments
from lightning_dpg.commands.book_options import add_book_options
from lightning_dpg.errors import CommandError

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
a mistake in their noise stays unseen. Each scored read is also tried by
itself against the epsilon of all reads up to it; the confidence is that of all bounds together.
The exit code is 1 if a bound exceeds its claim."""

_VIEWS = ("black_box", "white_box")


def run(args: list[str]) -> None:
    """Audit a method.

    Raises:
        SystemExit: With code 1, if the bound refutes the claim.
    """
    options, rest = _parse(args)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing.audits import audit_settings
    from lightning_dpg.running.complete import complete_settings

    settings = complete_settings(rest)
    started = time.perf_counter()
    report = audit_settings(
        settings,
        canaries=options.canaries,
        runs=options.runs,
        view=options.view,
        confidence=options.confidence,
        book=options.book,
    )
    print(report)
    print(f"time: {time.perf_counter() - started:.1f} s")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "audit.json"
        path.write_text(report.to_json(), encoding="utf-8")
        print(path)
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
    add("--view", choices=_VIEWS, default="black_box", help="(%(default)s)")
    add("--runs", type=int, metavar="R", help="fits with canaries each, or with and without one")
    add("--confidence", type=float, default=0.95, help="of the bound (%(default)s)")
    add("--output", type=Path, metavar="DIR", help="folder for audit.json")
    add_book_options(parser)
    options, rest = parser.parse_known_args(args)
    if not any(arg == "-c" or arg.startswith("--config") for arg in rest):
        raise CommandError("audit needs --config FILE, the configuration of a method")
    check_arguments(
        canaries=options.canaries,
        runs=options.runs,
        view=options.view,
        confidence=options.confidence,
        mark="--",
    )
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise CommandError(f"--output {options.output}: not a folder")
    return options, rest
