"""The benchmark: fit missing jobs, then write tables and a report."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_geometric.data import Data

from lightning_dpg.apps.bench.checks import check_arguments
from lightning_dpg.apps.bench.given_graphs import keep, kept_in, named, write_object
from lightning_dpg.apps.bench.grid import (
    Grid,
    baselines_beside,
    check_delta,
    common_task,
    learns_attributes,
    read_methods,
)
from lightning_dpg.apps.bench.jobs import Job, read_result, run_jobs, write_result
from lightning_dpg.apps.bench.report import page
from lightning_dpg.apps.bench.result_folder import BrokenOffError, locked
from lightning_dpg.apps.bench.results import csv_text
from lightning_dpg.apps.bench.study import Arguments, complete
from lightning_dpg.apps.bench.tasks import chosen_queries
from lightning_dpg.apps.bench.views import Benchmark
from lightning_dpg.apps.bench.workers import SeparateProcesses
from lightning_dpg.budget_book import log_reading
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.graph.pair_space import Kind, without_directions
from lightning_dpg.interfaces import Identity
from lightning_dpg.progress import counted, duration
from lightning_dpg.run.data import contents_of_graph, contents_of_set
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run_folder import owner_only


def compare(
    methods: Sequence[str | Path] | None = None,
    graphs: Sequence[Any] | Mapping[str, Any] | None = None,
    epsilons: Sequence[float] | None = None,
    out: str | Path | None = None,
    *,
    study: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    delta: float | None = None,
    processes: int = 1,
    executor: Executor | None = None,
    classify: bool | None = None,
    undirected: bool | None = None,
    kind: Kind | None = None,
    queries: Sequence[str] | None = None,
    say: Callable[[str], None] = print,
    book: str | None = None,
) -> Benchmark:
    """Fit methods on graphs within budgets, and compare their synthetic graphs with the real ones.

    Reads the private graphs: the results are not private. A second call with the same arguments
    runs only missing and failed jobs. The task follows from the methods: all methods publish single
    graphs, or sets of graphs, or features for graph labels. The baselines of the task are always
    included, and each trained method also appears untrained.

    Args:
        methods: Configurations: names of shipped ones, or files.
        graphs: Real graphs, or sets of graphs: names, paths of files or folders, or objects as for
            :func:`lightning_dpg.fit`. A dictionary names them; otherwise an object has the name of
            its networkx graph, or its number in the list. ``out`` keeps a copy of each object.
        epsilons: Budgets. A method without privacy is fitted once per graph and seed.
        out: Folder of all results, which must be given; created if missing.
        study: A shipped study (``shape``, ``sets``, ``labels``), or a file whose section ``benchmark`` has
            the arguments that are not given here.
        seeds: Public seed of each run; drawn graphs and classifiers are those of seed 0. By default
            0 to 4.
        delta: Delta of all methods that are not pure. By default 1e-6.
        processes: Number of processes, of one thread each.
        executor: Executor of other processes that runs the fits, in place of processes of this
            call, for instance ``distributed.Client(address).get_executor(pure=False)``. They need
            the package, and the data under the same paths.
        classify: Whether to also train classifiers of labeled sets of graphs.
        undirected: Whether to drop the directions of directed graphs.
        kind: Kind as which all graphs are read and learned: ``undirected``, ``directed`` or
            ``bipartite``. By default undirected.
        queries: Queries in the tables of the result: names, or ``["all"]``; by default headline
            queries. Page and ``results.csv`` always have all.
        say: Function that receives lines on the progress.
        book: URL of the budget book that logs the comparison if it knows the graphs; by default that
            of ``LIGHTNING_DPG_BOOK``. ``none`` leaves both out.

    Returns:
        The results of all runs, as tables, and the paths of the files.

    Raises:
        CommandError: If an argument is refused; no file exists then.
        BrokenOffError: If the results cannot be written, for instance on a full disk, or if a
            given executor ends early, as a ``ProcessPoolExecutor`` does when a process of it dies.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graphs = ["karate"]
        ...     results = dpg.compare(["chung_lu"], graphs, [1.0], folder, seeds=[0], say=len)
        ...     sorted(path.name for path in results.files)
        ['report.html', 'results.csv']
    """
    arguments = {
        "methods": methods,
        "graphs": graphs,
        "epsilons": epsilons,
        "seeds": seeds,
        "delta": delta,
        "classify": classify,
        "undirected": undirected,
        "kind": kind,
        "queries": queries,
    }
    with readable_errors():
        if out is None:
            raise CommandError("compare: out missing; give a folder for the results")
        return measure(study, arguments, Path(out), processes, say, book, executor)


benchmark = compare
"""Another name of :func:`compare`."""


def measure(
    study: str | Path | None,
    arguments: Mapping[str, Any],
    out: Path,
    processes: int,
    say: Callable[[str], None],
    book: str | None = None,
    executor: Executor | None = None,
) -> Benchmark:
    """Do what :func:`compare` does, with the errors of the command line.

    Args:
        study: File with arguments that are not given.
        arguments: Arguments of the benchmark by name; None where one is not given.
        out: Folder of all results.
        processes: Number of processes.
        say: Function that receives lines on the progress.
        book: URL of the budget book, see :func:`compare`.
        executor: Executor that runs the fits, in place of processes of this call.
    """
    complete_arguments = complete(study, arguments)
    _check_executor(executor, processes)
    with contextlib.ExitStack() as held:
        held.enter_context(owner_only())
        runner = executor or held.enter_context(SeparateProcesses(processes))
        return _measure(complete_arguments, out, runner, say, book)


def _measure(
    arguments: Arguments,
    place: Path,
    executor: Executor,
    say: Callable[[str], None],
    book: str | None,
) -> Benchmark:
    """Fit missing jobs of a benchmark, and write the results."""
    methods, graphs, epsilons, seeds, delta, classify, undirected, kind, queries = arguments
    epsilons = sorted(set(epsilons))
    check_arguments(arguments, place)
    with contextlib.ExitStack() as held:
        is_there = place.is_dir()
        if is_there:  # a new folder is created after all checks
            held.enter_context(locked(place))
        configurations = read_methods([str(method) for method in methods])
        task = common_task(configurations, kind)
        chosen = chosen_queries(queries, task)
        configurations = read_methods([*map(str, methods), *baselines_beside(configurations, task)])
        sources = named(graphs, task)
        scratch = Path(held.enter_context(TemporaryDirectory()))
        needs_attributes = learns_attributes(configurations)
        objects = {
            name: write_object(
                name, graph, task, undirected, scratch, needs_attributes=needs_attributes
            )
            for name, graph in sources.items()
            if not isinstance(graph, str)
        }
        data = {name: task.load(source, undirected) for name, source in (sources | objects).items()}
        places = {name: kept_in(place, name, written) for name, written in objects.items()}
        if classify and all(graph.get("y") is None for graph in data.values()):
            raise CommandError("classify: none of the graphs is a set of graphs with labels")
        check_delta(delta, configurations, data)
        read = sources | {name: str(path) for name, path in places.items()}
        grid = Grid(configurations, data, epsilons, seeds, delta, task, classify, undirected, read)
        jobs = grid.jobs()
        names = [str(method) for method in methods]
        contents = _contents(data, sources | objects, undirected)
        log_reading("compare", names, epsilons, contents, book)
        if not is_there:  # another process may have created it
            place.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(place))
        try:
            for name, path in places.items():
                keep(objects[name], path)
            runs = _run(jobs, executor, place, say)
            files = write(runs, grid, place)
            return Benchmark(runs, data, task, place, files, chosen)
        except OSError as error:
            raise BrokenOffError(f"{place}: {error}") from error
        except (BrokenExecutor, CancelledError) as error:
            cause = f"{type(executor).__name__}: {type(error).__name__}"
            raise BrokenOffError(f"the executor has ended ({cause})") from error


def _contents(
    data: Mapping[str, Data], sources: Mapping[str, str], undirected: bool
) -> Iterator[Identity]:
    """Yield the contents of graphs or of sets of graphs, by which a budget book recognizes them."""
    for name, graph in data.items():
        if graph.get("sizes") is None:
            yield from contents_of_graph(graph)
        else:
            yield from contents_of_set(sources[name], undirected)


def write(runs: Sequence[dict[str, Any]], grid: Grid, folder: Path) -> list[Path]:
    """Write ``results.csv`` and ``report.html``, and return their paths.

    Args:
        runs: Recorded results of the jobs, failed ones included.
        grid: Methods, graphs, budgets and seeds.
        folder: Folder of all results, which holds the synthetic graphs of the first runs.
    """
    plain = {name: without_directions(graph) for name, graph in grid.data.items()}
    texts = {
        folder / "results.csv": csv_text(runs),
        folder / "report.html": page(runs, plain, grid.task, folder),
    }
    for path, content in texts.items():
        write_whole(path, content)
    return [*texts]


def _check_executor(executor: Executor | None, processes: int) -> None:
    """Refuse a number of processes, or an executor, that cannot run fits."""
    if processes < 1:
        raise CommandError(f"there must be a process or more, got {processes}")
    if executor is None:
        return
    if processes != 1:
        raise CommandError("processes and executor: give one of them, an executor has its own")
    name = type(executor).__name__
    if not isinstance(executor, Executor):
        raise CommandError(f"executor must be a concurrent.futures.Executor, got {name}")
    if isinstance(executor, ThreadPoolExecutor) and not isinstance(executor, SeparateProcesses):
        raise CommandError(
            f"executor: {name} runs fits in this process, whose seeds and output each would take\n"
            "give an executor of other processes, or processes=N"
        )


def _run(
    jobs: Sequence[Job], executor: Executor, folder: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the result of each job; recorded results are read."""
    recorded = ((job.name, read_result(folder, job)) for job in jobs)
    results = {name: result for name, result in recorded if result and not result["failure"]}
    open_jobs = [job for job in jobs if job.name not in results]
    say(f"{len(jobs)} fits, {len(results)} of them done already")
    started = time.perf_counter()
    with contextlib.closing(run_jobs(open_jobs, executor, folder)) as outcomes:
        in_turn = zip(counted(open_jobs), outcomes, strict=True)
        for done, (_, (job, result)) in enumerate(in_turn, 1):
            write_result(folder, job.name, result)
            results[job.name] = result
            line = f"[{done}/{len(open_jobs)}] {job}: {result['seconds']['total']:.1f} s"
            if done < len(open_jobs):
                each = (time.perf_counter() - started) / done
                line += f"; about {duration(each * (len(open_jobs) - done))} left"
            if result["failure"] is not None:
                line = "\n    ".join([line, *result["failure"].splitlines()])
            say(line)
    return [results[job.name] for job in jobs]
