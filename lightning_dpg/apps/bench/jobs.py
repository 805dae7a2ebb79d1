"""Jobs of a benchmark: their fits, measurements and recorded results."""

import contextlib
import json
import math
import os
import pickle
import re
import shutil
import sys
import time
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from lightning_dpg import __version__
from lightning_dpg.apps.bench.result_folder import DRAWN, keep_only, record_of
from lightning_dpg.apps.bench.tasks import Task, task_of
from lightning_dpg.apps.bench.workers import ProcessDiedError, SeparateProcesses, run_logged
from lightning_dpg.errors import MAX_LINES, CommandError, explain
from lightning_dpg.formats.io import write_graph
from lightning_dpg.formats.whole_files import whole_file
from lightning_dpg.release.card.topics import statement_of
from lightning_dpg.run.fit import fit_settings
from lightning_dpg.tables import as_json

KEPT = ("config.yaml", "privacy.json")


class Job(NamedTuple):
    """One fit: a row of the tables on a graph, within a budget, with a seed."""

    method: str
    role: str
    """``method``, ``baseline`` or ``untrained``."""
    graph: str
    """Name of the graph in the tables; the settings have what is read."""
    epsilon: float
    run: int
    settings: dict[str, Any]
    """The whole configuration of the fit."""
    digest: str
    """Of the settings, the graph and the program's version: other results have another one."""
    classify: bool = False
    """Whether to train classifiers on what was drawn."""

    @property
    def name(self) -> str:
        """Name of its files."""
        words = (self.method, self.graph, f"eps{self.epsilon:g}", f"run{self.run}", self.digest)
        return "-".join(re.sub(r"[^\w.]+", "_", word).strip("_")[-60:] for word in words)

    def __str__(self) -> str:
        """Return the name in a progress line."""
        budget = "not private" if math.isinf(self.epsilon) else f"epsilon {self.epsilon:g}"
        return f"{self.method} on {self.graph}, {budget}, run {self.run}"


class Outcome(NamedTuple):
    """Result of a job, and the files that its run leaves."""

    result: dict[str, Any]
    files: dict[str, bytes]
    """Contents by paths in the folder of all results."""
    scratch: str = ""
    """Folder of the worker, which stood for the folder of all results."""


Call = Future[tuple[Outcome, bytes]]


def run_jobs(
    jobs: Sequence[Job], executor: Executor, folder: Path
) -> Generator[tuple[Job, dict[str, Any]]]:
    """Fit and evaluate in worker processes, and yield results in the order of completion.

    Workers return the files of a run, and only this process writes them. A job that the executor
    has not finished, for instance because its worker has died, is run once more after all others
    and on its own: it may have lacked memory, or another job may have killed its worker. Closing
    the iterator cancels the remaining jobs.

    Args:
        jobs: Fits to make.
        executor: Executor of other processes, which may run on other machines.
        folder: Folder of all results.

    Raises:
        BrokenExecutor: If the executor itself has ended.
        CancelledError: If the executor has given up its jobs.
    """
    # A process of this machine shows its log during the fit.
    logs = folder / "logs" if isinstance(executor, SeparateProcesses) else None
    futures: dict[Call, Job] = {}

    def submit(job: Job) -> Call:
        call = pickle.dumps(partial(run_job, job, __version__, str(Path.cwd())))
        future = executor.submit(run_logged, call, logs / _log_name(job) if logs else None)
        futures[future] = job
        return future

    try:
        again = []
        for future in as_completed([submit(job) for job in jobs]):
            job = futures.pop(future)
            if _error(future) is None:
                yield job, _store(*future.result(), job, folder)
            else:
                again.append(job)
        for job in again:
            future = submit(job)
            error = _error(future)
            yield (
                job,
                _failure(job, _reason(error)) if error else _store(*future.result(), job, folder),
            )
    finally:
        for future in futures:
            future.cancel()


def _error(future: Call) -> Exception | None:
    """Return the error of a call that one job has; raise those of the whole executor."""
    try:
        future.result()
    except (BrokenExecutor, CancelledError):
        raise
    except Exception as error:  # noqa: BLE001  one job must not stop the others
        return error
    return None


def _store(outcome: Outcome, log: bytes, job: Job, folder: Path) -> dict[str, Any]:
    """Write the files of a run, and return its result."""
    here = os.fsencode(folder)
    shutil.rmtree(folder / "runs" / job.name, ignore_errors=True)  # left by a killed process
    for name, content in {**outcome.files, f"logs/{_log_name(job)}": log}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".log", ".yaml"):
            content = content.replace(os.fsencode(outcome.scratch), here)
        with whole_file(path) as scratch:
            scratch.write_bytes(content)
    return outcome.result


def run_job(job: Job, version: str, current: str) -> Outcome:
    """Run a job and return its result; the result of a failed job holds the reason.

    Args:
        job: The job.
        version: Version of the package that has planned the job.
        current: Folder to which relative paths refer, where this machine has it.
    """
    started = time.perf_counter()
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch, contextlib.ExitStack() as stack:
        try:
            if version != __version__:
                raise CommandError(f"a worker has lightning_dpg {__version__}, not {version}")
            if Path(current).is_dir():
                stack.enter_context(contextlib.chdir(current))
            result = fit_and_evaluate(job, Path(scratch))
        except (Exception, SystemExit) as error:  # noqa: BLE001  one job must not stop the others
            reason = _reason(error)
            if isinstance(error, Exception) and explain(error) is not None:
                print(reason, file=sys.stderr, flush=True)
            else:
                traceback.print_exc()
            return Outcome(_failure(job, reason, time.perf_counter() - started), {}, scratch)
        paths = [path for path in Path(scratch).rglob("*") if path.is_file()]
        files = {path.relative_to(scratch).as_posix(): path.read_bytes() for path in paths}
        return Outcome(result, files, scratch)


def _reason(error: BaseException) -> str:
    """Return the reason of a failure in a few lines."""
    if isinstance(error, ProcessDiedError):
        return str(error)
    message = explain(error) if isinstance(error, Exception) else None
    message = message or f"{type(error).__name__}: {error}"
    lines = [line for line in message.removeprefix("error: ").splitlines() if line.strip()]
    return "\n".join(lines[:MAX_LINES])


def fit_and_evaluate(job: Job, folder: Path) -> dict[str, Any]:
    """Fit a job, draw from its release and measure the drawn data, in this process.

    Args:
        job: The job.
        folder: Folder of all results.
    """
    torch.set_num_threads(1)
    place = folder / "runs" / job.name
    place.mkdir(parents=True)

    fit_start = time.perf_counter()
    release = fit_settings(job.settings, place, is_quiet=False)
    method, statement = release.method, statement_of(release.statement)
    fit_end = time.perf_counter()
    arguments = job.settings["data"]["init_args"]
    task = task_of(type(method), arguments.get("kind", "undirected"))
    with torch.no_grad():
        draw_start = time.perf_counter()
        sample = task.draw(method.eval(), torch.Generator().manual_seed(0))
        draw_end = time.perf_counter()
    real, profile = _measured(task, arguments["name"], arguments.get("undirected", False))
    answers = task.compare(profile, sample, job.classify, job.run)
    keep_only(place, KEPT)
    # A file cannot hold an empty graph.
    if job.run == 0 and isinstance(sample, Data) and sample.num_edges:
        write_graph(sample, place / DRAWN)
    return _identity(job) | {
        "failure": None,
        "seconds": {
            "fit": fit_end - fit_start,
            "draw": (draw_end - draw_start) / task.num_graphs(real),
            "total": time.perf_counter() - fit_start,
        },
        "privacy": {key: value for key, value in statement.items() if key != "entries"},
        "answers": {query: answer.for_json() for query, answer in answers.items()},
    }


def read_result(folder: Path, job: Job) -> dict[str, Any] | None:
    """Read the recorded result of a job; None if there is none.

    Args:
        folder: Folder of all results.
        job: The job.
    """
    path = record_of(folder, job.name)
    if not path.is_file():
        return None
    recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return recorded | {"method": job.method, "role": job.role}


def write_result(folder: Path, name: str, result: dict[str, Any]) -> None:
    """Record a result atomically: its file is complete or absent.

    Args:
        folder: Folder of all results.
        name: Name of the job.
        result: The result.
    """
    path = record_of(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as scratch:
        scratch.write_text(as_json(result), encoding="utf-8")


@cache
def _measured(task: Task, name: str, undirected: bool) -> tuple[Data, Any]:
    """Return the real data, and their measurements for the queries."""
    real = task.load(name, undirected)
    return real, task.profile(real)


def _log_name(job: Job) -> str:
    return f"{job.name}.log"


def _failure(job: Job, reason: str, seconds: float = 0.0) -> dict[str, Any]:
    return _identity(job) | {"failure": reason, "seconds": {"total": seconds}}


def _identity(job: Job) -> dict[str, Any]:
    return {
        "name": job.name,
        "method": job.method,
        "role": job.role,
        "graph": job.graph,
        "epsilon": job.epsilon if math.isfinite(job.epsilon) else "inf",
        "run": job.run,
        "digest": job.digest,
    }
