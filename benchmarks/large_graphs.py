"""Seconds and peak memory of large power-law graphs: reading, releasing, drawing and writing.

``python -m benchmarks large_graphs --edges 1000000 10000000 --folder /tmp/large`` draws each graph
into the folder if it is not there yet, and measures each step in a process of its own, or with the
steps before it where it needs them. Linux only: peaks come from ``/proc``.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.numbers import Number

STEPS = ("edges", "ChungLu", "BTER", "evaluate")
ROWS = {
    "read: nodes and counts": "open",
    "read: edges": "edges",
    **{f"{name}: release": f"{name} release" for name in ("ChungLu", "BTER")},
    **{f"{name}: draw and write": f"{name} draw" for name in ("ChungLu", "BTER")},
    "evaluate": "evaluate",
}
EPSILON = 1.0
NODES_PER_EDGE = 10
_SHIFT = 10.0  # of the rank in the power law; the largest degree is below that of a pure one
_GIB = 2**20  # of kB


def main(args: list[str]) -> list[Number]:
    """Print a table, and write the numbers beside it as CSV; return those of the study."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks large_graphs")
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS[:3])
    parser.add_argument("--only", choices=STEPS, help="run this step in this process")
    options = parser.parse_args(args)
    if options.only:
        print(json.dumps(_MEASURES[options.only](graph_path(options.folder, options.edges[0]))))
        return []
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for edges in options.edges:
        if not graph_path(options.folder, edges).exists():
            draw_power_law(edges, graph_path(options.folder, edges))
        for step in options.steps:
            for name, found in _in_its_own_process(step, edges, options.folder).items():
                rows.append({"edges": edges, "step": name, **found})
                print(" | ".join(str(value) for value in rows[-1].values()), flush=True)
    with (options.folder / "large_graphs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [number for row in rows for number in _numbers(row)]


def _numbers(row: dict[str, Any]) -> Iterator[Number]:
    """Return the numbers of a stage, if it has a row in the study."""
    column, name = f"{row['edges'] // 1_000_000} million", ROWS.get(row["step"])
    for table, field in (("seconds", "cpu"), ("wall", "wall"), ("memory", "peak")):
        if name is not None:
            yield Number(
                "large_graphs", table, name, column, f"{row[field]:.{2 if field == 'peak' else 1}f}"
            )


def draw_power_law(edges: int, path: Path) -> None:
    """Write a graph of exponent 3 as Parquet while it is drawn; ids are in random order.

    Args:
        edges: Number of edges M; there are M / 10 nodes, of which nearly all have an edge.
        path: File to write.
    """
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    from lightning_dpg.graph.expected_degrees import weighted_pairs

    nodes, rng = edges // NODES_PER_EDGE, np.random.default_rng(1)
    weights = (np.arange(nodes) + _SHIFT) ** -0.5
    weights *= np.sqrt(2 * edges) / weights.sum()
    ids = rng.permutation(nodes)
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for pairs in weighted_pairs(weights, edges, edges, seed=1):
            rows = ids[rng.permutation(rng.permuted(pairs, axis=1))]
            table = pyarrow.table(dict(zip(schema.names, rows.T, strict=True)), schema=schema)
            writer.write_table(table)


def graph_path(folder: Path, edges: int) -> Path:
    """Place of the graph with so many edges."""
    return folder / f"power-law-{edges}.parquet"


def _in_its_own_process(step: str, edges: int, folder: Path) -> dict[str, dict[str, float]]:
    settings = ["--edges", str(edges), "--folder", str(folder), "--only", step]
    command = [sys.executable, "-m", "benchmarks", "large_graphs", *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


class Stages:
    """CPU and wall seconds of stages, and how far memory rises above the start of the process."""

    def __init__(self) -> None:
        self.base = _resident("VmRSS:")
        self.found: dict[str, dict[str, float]] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.found[name] = {
            "cpu": round(time.process_time() - cpu, 1),
            "wall": round(time.perf_counter() - wall, 1),
            "peak": round((_resident("VmHWM:") - self.base) / _GIB, 3),
            "base": round(self.base / _GIB, 3),
        }
        print(name, self.found[name], file=sys.stderr, flush=True)


def _resident(field: str) -> int:
    """Resident memory in kB."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(field) + 1])


def _edges(path: Path) -> dict[str, dict[str, float]]:
    """Read the edges into memory."""
    from lightning_dpg.datamodules import EdgeTableDataModule

    import_engine()
    stages = Stages()
    with stages.stage("read: nodes and counts"):
        data = EdgeTableDataModule(str(path))
        data.setup("fit")
    with stages.stage("read: edges"):
        print(len(data.records.edges), "edges", file=sys.stderr)
    return stages.found


def _chung_lu(path: Path) -> dict[str, dict[str, float]]:
    return _release("ChungLu", path)


def _bter(path: Path) -> dict[str, dict[str, float]]:
    return _release("BTER", path)


def _release(name: str, path: Path) -> dict[str, dict[str, float]]:
    """Release a graph, draw one and write it."""
    import torch

    from lightning_dpg import methods
    from lightning_dpg.datamodules import EdgeTableDataModule
    from lightning_dpg.methods.planning import by_key
    from lightning_dpg.methods.single_graph.base import statistics_of
    from lightning_dpg.privacy.ledger import Budget
    from lightning_dpg.release.graph_files import write_graphs

    import_engine()
    torch.set_num_threads(1)
    stages = Stages()
    with stages.stage(f"{name}: open"):
        data = EdgeTableDataModule(str(path))
        data.setup("fit")
    records = data.records
    method = getattr(methods, name)(records.num_nodes)
    method.ledger.budget = Budget(EPSILON, 0.0)
    with stages.stage(f"{name}: release"):
        source = statistics_of(records, method.space)
        method.release(source, by_key(method.plan(method.budget, 1)))
    method.node_names = records.node_names
    # The release may be drawn later, without the table.
    del data, records, source
    with stages.stage(f"{name}: draw and write"):
        write_graphs(method, [0], _drawn(name, path).parent, formats=["parquet"])
    return stages.found


def _drawn(name: str, path: Path) -> Path:
    """Place of the synthetic graph of a method."""
    return path.parent / f"{path.stem}-{name}" / "synthetic-0.parquet"


def _evaluate(path: Path) -> dict[str, dict[str, float]]:
    """Compare the graph of ChungLu with the private one."""
    from lightning_dpg.main import main

    stages = Stages()
    with stages.stage("evaluate"):
        code = main(["evaluate", str(path), str(_drawn("ChungLu", path))])
    if code:
        raise SystemExit(code)  # without a number: the step ChungLu draws the second graph
    return stages.found


def import_engine() -> None:
    """Import what reads tables: its memory is that of the process and not of the data."""
    import duckdb
    import ibis
    import pyarrow.parquet  # noqa: F401

    duckdb.connect(":memory:").sql(ibis.to_sql(ibis.range(1).as_table(), dialect="duckdb"))


_MEASURES = {"edges": _edges, "ChungLu": _chung_lu, "BTER": _bter, "evaluate": _evaluate}
