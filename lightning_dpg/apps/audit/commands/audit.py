"""``audit``: an empirical lower bound on epsilon, as a test of a claim."""

import inspect
import time
from pathlib import Path
from typing import Annotated

from lightning_dpg.apps.audit.audit_arguments import Design, RelationOfAudit, View, check_design
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import FINE, REFUTED, Outcome
from lightning_dpg.progress import following


def audit(
    *options_of_fit: str,
    canaries: int | None = None,
    view: View = "black_box",
    relation: RelationOfAudit | None = None,
    runs: int | None = None,
    confidence: float = 0.95,
    out: Annotated[Path | None, "--out", "--output"] = None,
    book: str | None = None,
    no_book: bool = False,
) -> Outcome:
    """Measure how much privacy a method loses at least, and compare that with what it claims.

    Takes the data, the method and all other options as ``fit`` does, or the folder of a run, which is
    fitted anew.

    Canaries are random pairs without an edge; a secret fair coin inserts each into a copy of the graph,
    and the method is fitted once. An attacker who knows all other edges then says of the likeliest
    quarter of the canaries that they were inserted, and of the unlikeliest quarter that they were not;
    or the surest eighth is guessed. More right guesses than epsilon allows refute the claim (Steinke,
    Nasr, Jagielski, 2023).

    Both nodes of a canary get equal attributes and one class, if the data have them: these are public. If
    a guarantee is for D edges of one node together, a canary is a star of D edges.

    With --relation attributes a canary is a node of Attributed whose private columns are one of two rows, by
    a secret coin. It has so many neighbors of another value that this moves mixing by all of its sensitivity.
    The claim is the row epsilon.

    With --runs R --canaries P there are R fits with P canaries each, and all guesses count together. Few
    canaries per fit hide each other less, and many of them prove more. The share of right guesses of all
    coins then shows whether Gaussian noise is as large as it is claimed.

    With --runs R alone there is one canary and R fits with and R without it. Half of them choose a
    threshold, which the others try.

    Views: black_box, where the attacker has the release; white_box, where it has every noisy value of the
    run as well, as the proofs allow. The audit prints which noisy values it scores, and names the others:
    a mistake in their noise stays unseen. Each scored read is also tried by
    itself against the epsilon of all reads up to it; the confidence is that of all bounds together.
    The exit code is 1 if a bound exceeds its claim.

    Args:
        *options_of_fit: FILE or RUN, and other options of ``fit``.
        canaries: See :func:`lightning_dpg.apps.audit.audits.audit`.
        view: See :func:`lightning_dpg.apps.audit.audits.audit`.
        relation: See :func:`lightning_dpg.apps.audit.audits.audit`.
        runs: See :func:`lightning_dpg.apps.audit.audits.audit`.
        confidence: See :func:`lightning_dpg.apps.audit.audits.audit`.
        out: Folder for audit.json.
        book: See :func:`lightning_dpg.apps.audit.audits.audit`.
        no_book: Log it in no budget book.

    Example:
        python -m lightning_dpg audit calls.csv --epsilon 1 --method chung_lu --canaries 200
    """
    design = Design(canaries, runs, view, relation, confidence)
    check_design(design, "--")
    if out is not None and out.exists() and not out.is_dir():
        raise CommandError(f"--out {out}: not a folder")
    # Start-up time: only the commands that fit need the parser's library.
    from lightning_dpg.run.commands.fit import long_form

    own = [f"--{name.replace('_', '-')}" for name in inspect.signature(audit).parameters]
    form = long_form(options_of_fit, "audit", own[1:])
    if not any(word == "-c" or word.startswith(("--config", "--model")) for word in form.words):
        raise CommandError(
            "audit needs data and a budget, or a run\naudit FILE --epsilon 1, or audit RUN"
        )
    form.check("fit")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.apps.audit.audits import audit_settings
    from lightning_dpg.run.fit import complete_settings

    settings = complete_settings(form.words)
    started = time.perf_counter()
    with following("audit", "fits"):
        report = audit_settings(settings, design, book="none" if no_book else book)
    seconds = time.perf_counter() - started
    files = [] if out is None else [out / "audit.json"]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report.to_json(), encoding="utf-8")
    return Outcome(
        [report.text(), f"time: {seconds:.1f} s", *map(str, files)],
        report.values | {"seconds": round(seconds, 3), "files": files},
        REFUTED if report.refuting else FINE,
    )
