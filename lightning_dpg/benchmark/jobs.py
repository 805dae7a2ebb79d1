"""The fits of ``compare``: what each one is, the processes that do them, and their results."""

import contextlib
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from lightning_dpg.benchmark.result_folder import whole_file
from lightning_dpg.errors import MAX_LINES, CommandError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext, SpawnProcess

    from torch_geometric.data import Data

    from lightning_dpg.benchmark.tasks import Kind

KEPT = ("config.yaml", "privacy.json")
"""Files that stay of a run."""

DRAWN = "synthetic-0.npz"
"""File of what was drawn, which stays of run 0: the graph of the release, or a whole set."""


class FitError(Exception):
    """``fit`` has ended with an exit code other than 0."""


class Cell(NamedTuple):
    """One fit: a row of the tables on a graph, within a budget, with a seed."""

    method: str
    kind: str
    """``method``, ``control`` or ``untrained``."""
    graph: str
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
        """What a progress line calls it."""
        budget = "not private" if math.isinf(self.epsilon) else f"epsilon {self.epsilon:g}"
        return f"{self.method} on {self.graph}, {budget}, run {self.run}"


def run_cells(
    cells: Sequence[Cell], jobs: int, folder: Path
) -> Generator[tuple[Cell, dict[str, Any]]]:
    """Fit and evaluate in worker processes; results come in the order in which they are done.

    A worker that dies, for instance for want of memory, costs the cell it was at and no other.
    Closing the iterator ends the workers and removes what their unfinished cells have left.

    Args:
        cells: What to do.
        jobs: Number of processes.
        folder: Folder of all results.
    """
    context = multiprocessing.get_context("spawn")
    waiting = deque(cells)
    idle: list[tuple[Connection, SpawnProcess]] = []
    busy: dict[Connection, tuple[SpawnProcess, Cell]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                connection, process = idle.pop() if idle else _start_worker(context, folder)
                busy[connection] = process, waiting.popleft()
                connection.send(busy[connection][1])
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                process, cell = busy.pop(ready)
                try:
                    result = ready.recv()
                    idle.append((ready, process))
                except EOFError:
                    process.join()
                    result = _failure(cell, f"its process ended with code {process.exitcode}")
                if result["failure"] is not None:
                    shutil.rmtree(folder / "runs" / cell.name, ignore_errors=True)
                yield cell, result
    finally:
        for process in (*(process for _, process in idle), *(p for p, _ in busy.values())):
            process.kill()
            process.join()
        for _, cell in busy.values():
            shutil.rmtree(folder / "runs" / cell.name, ignore_errors=True)


def check_delta(
    delta: float, methods: dict[str, dict[str, Any]], graphs: "dict[str, Data]"
) -> None:
    """Refuse a delta that every fit would refuse.

    Args:
        delta: Delta of all methods that are not pure.
        methods: Configuration of each method by its label.
        graphs: Real data by name.
    """
    budgets = [settings["privacy"] for settings in methods.values()]
    if not any(budget["delta"] and math.isfinite(budget["epsilon"]) for budget in budgets):
        return
    for name, graph in graphs.items():
        if delta * (graph.num_edges // 2) >= 1:
            raise CommandError(
                f"--delta {delta:g}: not below one over the number of edges of {name}, so that it "
                "would allow to publish one of them as it is\nleave it out to take the default"
            )


def read_result(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """The recorded result of a cell; None if there is none."""
    path = folder / "cells" / f"{cell.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_result(folder: Path, name: str, result: dict[str, Any]) -> None:
    """Record a result; its file appears complete or not at all."""
    path = folder / "cells" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as scratch:
        scratch.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def fit_and_evaluate(cell: Cell, folder: Path) -> dict[str, Any]:
    """Fit a cell, draw from its release and measure what was drawn, in this process.

    Raises:
        FitError: If ``fit`` has refused; it has said why.
    """
    import torch
    from torch_geometric.data import Data

    from lightning_dpg.benchmark.tasks import kind_of
    from lightning_dpg.graph.io import write_graph
    from lightning_dpg.main import main
    from lightning_dpg.running.releases import open_release

    torch.set_num_threads(1)
    place = folder / "runs" / cell.name
    shutil.rmtree(place, ignore_errors=True)  # left by a process that was killed
    place.mkdir(parents=True)
    config = place / "settings.yaml"
    config.write_text(yaml.safe_dump(cell.settings), encoding="utf-8")

    started = time.perf_counter()
    code = main(["fit", "--config", str(config), "--trainer.default_root_dir", str(place)])
    fitted = time.perf_counter()
    if code:
        raise FitError(code)
    (release,) = place.glob("*/*/release")
    method = open_release(release).method
    kind = kind_of(type(method))
    with torch.no_grad():
        drawing = time.perf_counter()
        made = kind.draw(method.eval(), torch.Generator().manual_seed(0))
        drawn = time.perf_counter()
    undirected = cell.settings["data"]["init_args"].get("undirected", False)
    real, profile = _measured(kind, cell.graph, undirected)
    answers = kind.compare(profile, made, cell.classify, cell.run)
    statement = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
    _prune(place, KEPT)
    # An empty graph is no file that can be read.
    if cell.run == 0 and isinstance(made, Data) and made.num_edges:
        write_graph(made, place / DRAWN)
    return _identity(cell) | {
        "failure": None,
        "seconds": {
            "fit": fitted - started,
            "draw": (drawn - drawing) / kind.num_graphs(real),
            "total": time.perf_counter() - started,
        },
        "privacy": {key: value for key, value in statement.items() if key != "entries"},
        "answers": {
            query: {
                "real": _number(answer.real),
                "synthetic": _number(answer.synthetic),
                "error": _number(answer.error),
                "note": answer.note,
            }
            for query, answer in answers.items()
        },
    }


def _start_worker(context: "SpawnContext", folder: Path) -> "tuple[Connection, SpawnProcess]":
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, folder))
    # Ctrl-C is for the process that waits for the workers, also while they import what they need.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()  # so that the end of the process is the end of the pipe
    return ours, process


def _work(connection: Connection, folder: Path) -> None:
    """Serve cells until the other end is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"  # read when PyTorch is imported, which is yet to come
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(_logged(connection.recv(), folder))


def _end_with_parent() -> None:
    """End this process where its parent was killed: nobody would take the results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _logged(cell: Cell, folder: Path) -> dict[str, Any]:
    """Result of a cell, whose output goes to a file."""
    log = folder / "logs" / f"{cell.name}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            for number, stream in ((1, sys.stdout), (2, sys.stderr)):
                stream.flush()
                os.dup2(file.fileno(), number)
    except OSError as error:  # such as a full disk
        return _failure(cell, str(error))
    # Before the clock starts: the first cell of a process must not pay for all imports.
    import lightning_dpg.cli  # noqa: F401

    started = time.perf_counter()
    try:
        return fit_and_evaluate(cell, folder)
    except Exception as error:  # noqa: BLE001  one cell must not stop the others
        if not isinstance(error, FitError):
            traceback.print_exc()
        sys.stderr.flush()
        # What `fit` itself refuses it has explained in the log.
        said = log.read_text(encoding="utf-8").rpartition("error: ")[2]
        reason = said if isinstance(error, FitError) else f"{type(error).__name__}: {error}"
        lines = [line for line in reason.splitlines() if line.strip()][:MAX_LINES]
        return _failure(cell, "\n".join(lines), time.perf_counter() - started)


@cache
def _measured(kind: "Kind", name: str, undirected: bool) -> "tuple[Data, Any]":
    """Real data and what the queries need of them."""
    real = kind.load(name, undirected)
    return real, kind.profile(real)


def _prune(folder: Path, kept: Sequence[str]) -> None:
    """Remove checkpoints, curves and whatever else is no longer needed."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif path.name not in kept:
            path.unlink()


def _failure(cell: Cell, reason: str, seconds: float = 0.0) -> dict[str, Any]:
    return _identity(cell) | {"failure": reason, "seconds": {"total": seconds}}


def _identity(cell: Cell) -> dict[str, Any]:
    return {
        "name": cell.name,
        "method": cell.method,
        "kind": cell.kind,
        "graph": cell.graph,
        "epsilon": cell.epsilon if math.isfinite(cell.epsilon) else "inf",
        "run": cell.run,
        "digest": cell.digest,
    }


def _number(value: float) -> float | None:
    """The value; strict JSON has no word for nan but null."""
    return value if math.isfinite(value) else None
