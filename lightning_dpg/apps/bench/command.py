"""``compare``: methods side by side on the same graphs, budgets and queries."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from lightning_dpg.apps.bench.checks import refuse_mistakes
from lightning_dpg.apps.bench.study import complete
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.kind import Kind
from lightning_dpg.outcome import FINE, INTERRUPTED, REFUSED, Outcome, note
from lightning_dpg.progress import at_terminal, following
from lightning_dpg.run.source import method_and_epsilon


def compare(
    *,
    methods: list[str] | None = None,
    graphs: list[str] | None = None,
    epsilons: list[float] | None = None,
    like: Path | None = None,
    study: str | None = None,
    delta: float | None = None,
    runs: int | None = None,
    jobs: int | None = None,
    out: Path,
    classify: bool = False,
    undirected: bool = False,
    kind: Kind | None = None,
    book: str | None = None,
    no_book: bool = False,
) -> Outcome:
    """Fit methods on graphs within several budgets, and compare their synthetic graphs with the real ones.

    Reads the private graphs: the results are not private. --methods, --graphs and --epsilons are needed,
    or --study, or --like RUN, whose graph, method and epsilon are taken where others are not given. A graph
    may be the folder of a run: it is read with the columns and nodes of its config.yaml.

    A method is a configuration: a shipped one by its name, or a file. One without privacy is fitted
    once per graph and run. The baselines erdos_renyi (no more than the number of edges) and chung_lu (no
    more than degrees) are always there, and each method that is trained also appears untrained. Run K
    has the seed K. The same command line again does what is missing or failed.

    With methods of sets of graphs, or of their labels, --graphs names sets, built in, under $LIGHTNING_DPG_DATA/tu or folders
    of TU text files. Their baseline is erdos_renyi_set, also with exact numbers of edges. Each drawn graph
    is compared with the one that it stands for. With --classify networks learn from the graphs of run 0
    to predict the labels of the real ones: 10,000 steps for each row, which can take a quarter of an hour.

    Methods that learn labels are compared by the accuracy of a support vector machine on what they have
    released, in ten folds, drawn anew for each run. Their baselines are node_kernel, which knows the public
    numbers of nodes, and size_kernel, which also knows of edges; beside methods of local privacy there is
    local_scalars, too. --classify adds a network on the real graphs, which is not private.

    The folder holds results.csv, report.html, the numbers of each fit (cells/), its output (logs/)
    and, of each fit, privacy.json and the synthetic graph or set of run 0 (runs/).

    Args:
        methods: See :func:`lightning_dpg.apps.bench.engine.compare`.
        graphs: See :func:`lightning_dpg.apps.bench.engine.compare`.
        epsilons: See :func:`lightning_dpg.apps.bench.engine.compare`.
        like: Folder of a run on one of the graphs.
        study: See :func:`lightning_dpg.apps.bench.engine.compare`.
        delta: See :func:`lightning_dpg.apps.bench.engine.compare`.
        runs: Fits of each kind; by default 5.
        jobs: Processes, of one thread each; by default 1.
        out: Folder of all results; created if missing.
        classify: See :func:`lightning_dpg.apps.bench.engine.compare`.
        undirected: See :func:`lightning_dpg.apps.bench.engine.compare`.
        kind: See :func:`lightning_dpg.apps.bench.engine.compare`.
        book: See :func:`lightning_dpg.apps.bench.engine.compare`.
        no_book: Log it in no budget book.

    Example:
        python -m lightning_dpg compare --methods bter --graphs calls.csv --epsilons 1 2 --out out
    """
    if like is not None:
        own_method, own_epsilon = method_and_epsilon(like)
        methods, epsilons = methods or [own_method], epsilons or [own_epsilon]
        graphs = [*(graphs or ()), str(like)]
    required = {"--methods": methods, "--graphs": graphs, "--epsilons": epsilons}
    missing_options = [name for name, values in required.items() if values is None]
    if missing_options and study is None:
        raise CommandError(
            f"the following arguments are required: {', '.join(missing_options)} (or --study, or --like)"
        )
    for name, number in (("runs", runs), ("jobs", jobs)):
        if number is not None and number < 1:
            raise CommandError(f"--{name} must be positive, got {number}")
    arguments = {
        "methods": methods,
        "graphs": graphs,
        "epsilons": epsilons,
        "seeds": None if runs is None else range(runs),
        "delta": delta,
        "classify": classify or None,  # without the option, that of the study
        "undirected": undirected or None,
        "kind": kind,
    }
    refuse_mistakes(complete(study, arguments), out)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.apps.bench.engine import measure

    book = "none" if no_book else book
    with _naming_the_way_on(out), _end_as_by_ctrl_c(), following("compare", "fits"):
        results = measure(study, arguments, out, jobs or 1, _say_at_terminal, book)
    logs = f"{results.failed} of {len(results.runs)} fits failed, see {out / 'logs'}"
    return Outcome(
        [*map(str, results.files), results.not_private],
        results.values,
        REFUSED if results.failed else FINE,
        logs * bool(results.failed),
    )


def _say_at_terminal(line: str) -> None:
    if at_terminal():
        note(line)


@contextlib.contextmanager
def _naming_the_way_on(out: Path) -> Iterator[None]:
    """Say after an early end what is kept, and how to go on.

    Raises:
        SystemExit: If the user interrupted.
    """
    # Start-up time: a wrong option needs no locks of folders.
    from lightning_dpg.apps.bench.result_folder import BrokenOffError, count_records

    def way_on() -> str:
        return (
            f"the results of {count_records(out)} fits are kept in {out}\n"
            "go on with the same command line again"
        )

    try:
        yield
    except KeyboardInterrupt:
        print(f"interrupted: {way_on()}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except BrokenOffError as error:
        raise CommandError(f"{error}\n{way_on()}") from error


@contextlib.contextmanager
def _end_as_by_ctrl_c() -> Iterator[None]:
    """End the processes at SIGTERM, which batch systems send, and name the command that continues."""
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
