"""``compare``: methods side by side on the same graphs, budgets and queries."""

import argparse
import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from lightning_dpg.commands.book_options import add_book_options
from lightning_dpg.errors import CommandError

DESCRIPTION = """\
Fit methods on graphs within several budgets, and compare their synthetic graphs with the real ones.
Reads the private graphs: the results are not private.

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

DIR holds results.csv, results.md, report.html, the numbers of each fit (cells/), its output (logs/)
and, of each fit, privacy.json and the synthetic graph or set of run 0 (runs/)."""


def run(args: list[str]) -> None:
    """Fit and evaluate missing jobs, then write tables and a report.

    Raises:
        SystemExit: If a fit failed (2) or the user interrupted (130).
    """
    options = _parse(args)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.benchmark.engine import BrokenOffError, measure
    from lightning_dpg.benchmark.result_folder import count_records

    def way_on() -> str:
        """Name the kept results, and the command that continues."""
        command = shlex.join(["python", "-m", "lightning_dpg", "compare", *args])
        kept = f"the results of {count_records(options.out)} fits are kept in {options.out}"
        return f"{kept}\ngo on with: {command}"

    try:
        with _end_as_by_ctrl_c(), _executor(options.scheduler) as executor:
            results = measure(
                options.study,
                {
                    "methods": options.methods,
                    "graphs": options.graphs,
                    "epsilons": options.epsilons,
                    "seeds": None if options.runs is None else range(options.runs),
                    "delta": options.delta,
                    "classify": options.classify or None,  # without the option, that of the study
                    "undirected": options.undirected or None,
                    "kind": options.kind,
                },
                options.out,
                options.jobs,
                partial(print, flush=True),
                options.book,
                executor,
            )
    except KeyboardInterrupt:
        print(f"interrupted: {way_on()}", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenOffError as error:
        raise CommandError(f"{error}\n{way_on()}") from error
    for path in results.files:
        print(path)
    if options.wandb:
        # Start-up time: Weights & Biases is imported on demand.
        from lightning_dpg.benchmark.tracking import track

        track(results)
    print("not private: the numbers were computed from the real graphs")
    if results.failed:
        logs = options.out / "logs"
        print(f"{results.failed} of {len(results.runs)} fits failed, see {logs}", file=sys.stderr)
        raise SystemExit(2)


@contextlib.contextmanager
def _end_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, end the processes and say how to go on."""
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _executor(scheduler: str | None) -> contextlib.AbstractContextManager[Executor | None]:
    """Executor of a Dask cluster; None without one."""
    if scheduler is None:
        return contextlib.nullcontext()
    # Start-up time: Dask is imported on demand.
    from lightning_dpg.benchmark.cluster import dask_executor

    return dask_executor(scheduler, partial(print, flush=True))


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lightning_dpg compare",
        usage="lightning_dpg compare --methods M... --graphs G... --epsilons E... --out DIR [...]\n"
        "       lightning_dpg compare --study FILE --out DIR [...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--methods", nargs="+", metavar="M", help="names or files")
    add("--graphs", nargs="+", metavar="G", help="names or files")
    add("--epsilons", nargs="+", type=float, metavar="E", help="budgets")
    add("--study", type=Path, metavar="FILE", help="study.yaml with what is not given here")
    add("--delta", type=float, help="of methods that are not pure (1e-6)")
    add("--runs", type=int, help="fits of each kind (5)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=int, default=1, help="processes, of one thread each (%(default)s)"
    )
    where.add_argument(
        "--scheduler", metavar="URL", help="Dask cluster that runs the fits, as tcp://HOST:8786"
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of all results")
    add("--classify", action="store_true", help="also train classifiers of labeled sets")
    add("--undirected", action="store_true", help="drop the directions of directed graphs")
    add(
        "--kind",
        choices=("undirected", "directed", "bipartite"),
        help="kind as which to read all graphs; it adds queries of its own",
    )
    add("--wandb", action="store_true", help="log results and figures to Weights & Biases")
    add_book_options(parser)
    options = parser.parse_args(args)
    required = ("methods", "graphs", "epsilons") if options.study is None else ()
    if missing := [f"--{name}" for name in required if getattr(options, name) is None]:
        parser.error(f"the following arguments are required: {', '.join(missing)} (or --study)")
    for name, number in (("runs", options.runs), ("jobs", options.jobs)):
        if number is not None and number < 1:
            raise CommandError(f"--{name} must be positive, got {number}")
    return options
