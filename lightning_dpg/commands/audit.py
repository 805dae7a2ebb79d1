"""``audit``: an empirical lower bound on epsilon, as a test of a claim."""

import inspect
import sys
import time
from pathlib import Path

from lightning_dpg.auditing.audit_arguments import View, check_arguments
from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_configs


def audit(
    *options_of_fit: str,
    canaries: int | None = None,
    view: View = "black_box",
    runs: int | None = None,
    confidence: float = 0.95,
    output: Path | None = None,
    book: str | None = None,
    no_book: bool = False,
) -> None:
    """Measure how much privacy a method loses at least, and compare that with what it claims.

    Needs --config FILE, the configuration of a method. Options that are not listed here are those of
    fit, such as --data.init_args.name or --privacy.epsilon.

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
    The exit code is 1 if a bound exceeds its claim.

    Args:
        *options_of_fit: The configuration and other options of ``fit``.
        canaries: See :func:`lightning_dpg.auditing.audits.audit`.
        view: See :func:`lightning_dpg.auditing.audits.audit`.
        runs: See :func:`lightning_dpg.auditing.audits.audit`.
        confidence: See :func:`lightning_dpg.auditing.audits.audit`.
        output: Folder for audit.json.
        book: See :func:`lightning_dpg.auditing.audits.audit`.
        no_book: Log it in no budget book.

    Raises:
        SystemExit: With code 1, if the bound refutes the claim.
    """
    if not any(word == "-c" or word.startswith("--config") for word in options_of_fit):
        raise CommandError("audit needs --config FILE, the configuration of a method")
    check_arguments(canaries=canaries, runs=runs, view=view, confidence=confidence, mark="--")
    if output is not None and output.exists() and not output.is_dir():
        raise CommandError(f"--output {output}: not a folder")
    if "torch" not in sys.modules:  # a process that has it may know more classes
        # Start-up time: only this check needs the parser's library.
        from lightning_dpg.running.early_check import refuse_mistakes

        own = inspect.signature(audit).parameters
        refuse_mistakes("fit", find_configs([*options_of_fit]), own)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing.audits import audit_settings
    from lightning_dpg.running.complete import complete_settings

    settings = complete_settings(options_of_fit)
    started = time.perf_counter()
    report = audit_settings(
        settings,
        canaries=canaries,
        runs=runs,
        view=view,
        confidence=confidence,
        book="none" if no_book else book,
    )
    print(report)
    print(f"time: {time.perf_counter() - started:.1f} s")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        path = output / "audit.json"
        path.write_text(report.to_json(), encoding="utf-8")
        print(path)
    if report.refuting:
        raise SystemExit(1)
