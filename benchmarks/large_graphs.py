"""Seconds and peak memory of large power-law graphs: reading, releasing, drawing and writing.

``python -m benchmarks large_graphs --edges 1000000 10000000 --folder /tmp/large`` draws each graph
into the folder if it is not there yet, and measures each step in a process of its own, or with the
steps before it where it needs them. ``--steps NeighborVotes`` draws a graph of classes beside a table
of attributes instead. Linux only: peaks come from ``/proc``.
"""

import argparse
import contextlib
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STEPS = ("edges", "ChungLu", "BTER", "evaluate", "NeighborVotes")
EPSILON = 1.0
_CLASSES, _ATTRIBUTES = 5, 64
_HOMOPHILY = 0.6  # share of the edges that are drawn within a class
NODES_PER_EDGE = 10
_SHIFT = 10.0  # of the rank in the power law; the largest degree is below that of a pure one
_GIB = 2**20  # of kB


def main(args: list[str]) -> None:
    """Print a table, and write the numbers beside it as CSV."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks large_graphs")
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS[:3])
    parser.add_argument("--only", choices=STEPS, help="run this step in this process")
    options = parser.parse_args(args)
    if options.only:
        print(json.dumps(_MEASURES[options.only](_path(options.folder, options.edges[0]))))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for edges in options.edges:
        path = _path(options.folder, edges)
        if "NeighborVotes" in options.steps and not _classes_path(path).exists():
            draw_classes(edges, _classes_path(path), _people_path(path))
        if {*options.steps} - {"NeighborVotes"} and not path.exists():
            draw_power_law(edges, path)
        for step in options.steps:
            for name, found in _in_its_own_process(step, edges, options.folder).items():
                rows.append({"edges": edges, "step": name, **found})
                print(" | ".join(str(value) for value in rows[-1].values()), flush=True)
    with (options.folder / "large_graphs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def draw_power_law(edges: int, path: Path) -> None:
    """Write a graph of exponent 3 as Parquet while it is drawn; ids are in random order.

    Args:
        edges: Number of edges M; there are M / 10 nodes, of which nearly all have an edge.
        path: File to write.
    """
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    from lightning_dpg.graph.edge_pieces import edge_pieces

    nodes, rng = edges // NODES_PER_EDGE, np.random.default_rng(1)
    weights = (np.arange(nodes) + _SHIFT) ** -0.5
    weights *= np.sqrt(2 * edges) / weights.sum()
    ids = rng.permutation(nodes)
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for pairs in edge_pieces(weights, edges, edges, seed=1):
            rows = ids[rng.permutation(rng.permuted(pairs, axis=1))]
            table = pyarrow.table(dict(zip(schema.names, rows.T, strict=True)), schema=schema)
            writer.write_table(table)


def draw_classes(edges: int, path: Path, people: Path) -> None:
    """Write a graph of nodes with classes, and a table of their attributes, as Parquet.

    Args:
        edges: Number of rows of edges M, of M / 10 nodes; a few rows are repeated, or loops.
        path: File of edges to write.
        people: File of the ids, classes ``y`` and noisy attributes of the nodes to write.
    """
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    nodes, rng = edges // NODES_PER_EDGE, np.random.default_rng(2)
    ids = rng.permutation(nodes)  # node k of class k mod 5 has the id ids[k]
    places = np.argsort(ids)
    means = rng.normal(size=(_CLASSES, _ATTRIBUTES)).astype(np.float32) / 4
    with parquet.ParquetWriter(people, _people_schema()) as writer:
        for block in np.array_split(places, max(1, nodes // 2**16)):
            values = means[block % _CLASSES]
            values += rng.normal(size=values.shape).astype(np.float32)
            columns = [ids[block], block % _CLASSES, *values.T]
            writer.write_table(pyarrow.table(columns, schema=_people_schema()))
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for block in np.array_split(np.arange(edges), max(1, edges // 2**20)):
            first = rng.integers(nodes, size=len(block))
            second = rng.integers(nodes, size=len(block))
            is_within = rng.random(len(block)) < _HOMOPHILY
            second[is_within] += (first - second)[is_within] % _CLASSES
            second[second >= nodes] -= _CLASSES
            writer.write_table(pyarrow.table([ids[first], ids[second]], schema=schema))


def _people_schema() -> Any:
    """Columns of a table of nodes."""
    import pyarrow

    attributes = [(f"a{k}", pyarrow.float32()) for k in range(_ATTRIBUTES)]
    return pyarrow.schema([("id", pyarrow.int64()), ("y", pyarrow.int64()), *attributes])


def _path(folder: Path, edges: int) -> Path:
    return folder / f"power-law-{edges}.parquet"


def _classes_path(path: Path) -> Path:
    return path.with_name(path.name.replace("power-law", "classes"))


def _people_path(path: Path) -> Path:
    return path.with_name(path.name.replace("power-law", "people"))


def _in_its_own_process(step: str, edges: int, folder: Path) -> dict[str, dict[str, float]]:
    settings = ["--edges", str(edges), "--folder", str(folder), "--only", step]
    command = [sys.executable, "-m", "benchmarks", "large_graphs", *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


class _Stages:
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

    _import_engine()
    stages = _Stages()
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
    """Release a graph whose edges stay in the table, draw one graph and write it."""
    import torch

    from lightning_dpg import methods
    from lightning_dpg.datamodules import EdgeTableDataModule
    from lightning_dpg.methods.planning import by_key
    from lightning_dpg.privacy.ledger import Budget
    from lightning_dpg.release.graph_files import write_graphs

    _import_engine()
    torch.set_num_threads(1)
    stages = _Stages()
    with stages.stage(f"{name}: open"):
        data = EdgeTableDataModule(str(path))
        data.setup("fit")
    records = data.records
    method = getattr(methods, name)(records.num_nodes)
    method.ledger.budget = Budget(EPSILON, 0.0)
    with stages.stage(f"{name}: release"):
        method.release(records.statistics, by_key(method.plan(method.budget, 1)))
    method.node_names = records.node_names
    # The release may be drawn later, without the table.
    del data, records
    with stages.stage(f"{name}: draw and write"):
        write_graphs(method, [0], _drawn(name, path).parent)
    return stages.found


def _drawn(name: str, path: Path) -> Path:
    """Place of the synthetic graph of a method."""
    return path.parent / f"{path.stem}-{name}" / "synthetic-0.parquet"


def _evaluate(path: Path) -> dict[str, dict[str, float]]:
    """Compare the graph of ChungLu with the private one."""
    from lightning_dpg.main import main

    stages = _Stages()
    with stages.stage("evaluate"):
        main(["evaluate", str(path), str(_drawn("ChungLu", path))])
    return stages.found


def _neighbor_votes(path: Path) -> dict[str, dict[str, float]]:
    """Learn classes from a table of attributes, while the edges stay in theirs."""
    from lightning_dpg.datamodules import EdgeTableDataModule, Nodes

    _import_engine()
    stages = _Stages()
    with stages.stage("NeighborVotes: open"):
        nodes = Nodes(attributes=str(_people_path(path)))
        data = EdgeTableDataModule(str(_classes_path(path)), nodes=nodes, undirected=True)
        data.setup("fit")
    return _fit_votes(data, 0.1 / int(path.stem.split("-")[-1]), stages)


def _fit_votes(data: Any, delta: float, stages: _Stages) -> dict[str, dict[str, float]]:
    """Learn classes of 20 known nodes of each class, at the epsilon of all methods here."""
    import pytorch_lightning as pl
    import torch

    from lightning_dpg.budget_book import NO_BOOK
    from lightning_dpg.callbacks import PrivacyAccountant
    from lightning_dpg.methods import NeighborVotes

    torch.set_num_threads(1)
    method = NeighborVotes(split_seed=0)
    accountant = PrivacyAccountant(EPSILON, delta, book=NO_BOOK)
    quiet = dict.fromkeys(_QUIET, False)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[accountant], **quiet)
    with stages.stage("NeighborVotes: fit"), contextlib.redirect_stdout(sys.stderr):
        trainer.fit(method, data)
    classes = data.records.classes
    is_right = method.classes[method.node_posteriors().argmax(1)] == classes
    print(
        f"accuracy {float(is_right[method.known_labels() < 0].float().mean()):.3f}", file=sys.stderr
    )
    return stages.found


def _import_engine() -> None:
    """Import what reads tables: its memory is that of the process and not of the data."""
    import duckdb
    import ibis
    import pyarrow.parquet  # noqa: F401

    duckdb.connect(":memory:").sql(ibis.to_sql(ibis.range(1).as_table(), dialect="duckdb"))


_QUIET = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
_MEASURES = {
    "edges": _edges,
    "ChungLu": _chung_lu,
    "BTER": _bter,
    "evaluate": _evaluate,
    "NeighborVotes": _neighbor_votes,
}
