"""Seconds and memory of the counts of a table by engine: DuckDB, and Spark with one worker and two.

``python -m benchmarks engines --folder /tmp/large`` releases ``BTER`` from one Parquet file with each
engine, in processes of its own, and checks that all release the same numbers under equal noise. Seconds
and peaks are those of Python and of all processes that it starts. Linux only: they come from ``/proc``.
Spark needs its extra and Java.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.large_graphs import EPSILON, draw_power_law, graph_path
from benchmarks.numbers import Number

ENGINES = {
    "DuckDB": None,
    "Spark, one worker": "spark://local-cluster[1,1,2048]",
    "Spark, two workers": "spark://local-cluster[2,1,2048]",
}
_GIB = 2**30


def main(args: list[str]) -> list[Number]:
    """Print a line for each engine and graph, and return the numbers of the study."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks engines")
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", choices=ENGINES, help="run this engine in this process")
    options = parser.parse_args(args)
    if options.only:
        print(json.dumps(_measured(options.only, graph_path(options.folder, options.edges[0]))))
        return []
    options.folder.mkdir(parents=True, exist_ok=True)
    numbers = list[Number]()
    print("| edges | engine | seconds by the clock | CPU seconds | GiB |\n|---|---|---|---|---|")
    for edges in options.edges:
        path = graph_path(options.folder, edges)
        if not path.exists():
            draw_power_law(edges, path)
        released = set()
        for engine in options.engines:
            words = ["--edges", str(edges), "--folder", str(options.folder), "--only", engine]
            command = [sys.executable, "-m", "benchmarks", "engines", *words]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            released.add(found["released"])
            shown = [f"{found[name]:.1f}" for name in ("wall", "cpu", "peak")]
            print(f"| {edges} | {engine} | {' | '.join(shown)} |", flush=True)
            numbers += _numbers(engine, edges, shown)
        if len(released) > 1:
            raise RuntimeError(f"engines release different numbers of {path}")
    return numbers


def _numbers(engine: str, edges: int, shown: list[str]) -> Iterator[Number]:
    columns = ("by the clock", "CPU seconds", "GiB")
    for column, value in zip(columns, shown, strict=True):
        row = f"{engine}, {edges // 1_000_000} million"
        yield Number("large_graphs", "engines", row, column, value)


def _measured(engine: str, path: Path) -> dict[str, float | str]:
    """Read the nodes, release ``BTER`` from counts of the engine, and hash what is released."""
    import torch

    from lightning_dpg.datamodules import EdgeTableDataModule
    from lightning_dpg.methods import BTER
    from lightning_dpg.methods.planning import by_key
    from lightning_dpg.methods.single_graph.base import statistics_of
    from lightning_dpg.privacy.ledger import Budget
    from lightning_dpg.privacy.noise import NoiseSource

    torch.set_num_threads(1)
    url = ENGINES[engine]
    if url is not None:
        _start_spark(url)
    peak = _Peak()
    start = time.perf_counter()
    data = (
        EdgeTableDataModule(str(path))
        if url is None
        else EdgeTableDataModule(url, table=f"parquet.`{path}`")
    )
    data.setup("fit")
    method = BTER(data.num_nodes)
    method.ledger.budget = Budget(EPSILON, 0.0)
    method._noise = NoiseSource(unsafe_seed=0)  # a drawn graph: nothing is protected
    source = statistics_of(data.records, method.space)
    method.release(source, by_key(method.plan(method.budget, 1)))
    wall = time.perf_counter() - start
    cpu, most = peak.stop()
    state = hashlib.sha256()
    for name, value in sorted(method.released_state().items()):
        state.update(name.encode())
        state.update(torch.as_tensor(value).numpy().tobytes())
    return {"wall": wall, "cpu": cpu, "peak": most / _GIB, "released": state.hexdigest()}


def _start_spark(url: str) -> None:
    """Start workers that find each other on a machine without a name."""
    from pyspark.sql import SparkSession

    local = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    few = {"spark.sql.shuffle.partitions": 4}  # of 200, which are for large clusters
    settings = local | few | {"spark.ui.enabled": "false", "spark.log.level": "OFF"}
    builder = SparkSession.builder.master(url.removeprefix("spark://"))
    builder.config(map=settings).getOrCreate()


class _Peak:
    """CPU seconds and the largest sum of resident memory of this process and all below it."""

    def __init__(self) -> None:
        self._cpu, self._most = dict[int, float](), 0
        self._look()
        self._before = sum(self._cpu.values())
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> tuple[float, int]:
        """Return CPU seconds since the start, and the peak in bytes."""
        self._end.set()
        self._thread.join()
        self._look()
        return sum(self._cpu.values()) - self._before, self._most

    def _watch(self) -> None:
        while not self._end.wait(0.2):
            self._look()

    def _look(self) -> None:
        parents, seconds, resident = dict[int, int](), dict[int, float](), dict[int, int]()
        for place in Path("/proc").glob("[0-9]*"):
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            process = int(place.name)
            parents[process] = int(fields[1])
            seconds[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            resident[process] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        ours = {os.getpid()}
        while more := {each for each, above in parents.items() if above in ours} - ours:
            ours |= more
        self._cpu |= {each: seconds[each] for each in ours if each in seconds}
        self._most = max(self._most, sum(resident.get(each, 0) for each in ours))
