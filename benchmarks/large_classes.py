"""Seconds and peak memory of classes of nodes: small graphs, and large ones in tables.

``python -m benchmarks large_classes --graphs cora_ml facebook_pages --edges 1000000 10000000 --folder
/tmp/large`` draws each large graph, and a table of attributes beside it, into the folder if they are
not there yet. Each graph is measured in a process of its own. Linux only: peaks come from ``/proc``.
"""

import argparse
import csv
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.large_graphs import EPSILON, NODES_PER_EDGE, Stages, import_engine
from benchmarks.numbers import Number

SEED = 0
"""Public seed of the split: the known nodes are 20 of each class."""
_CLASSES, _ATTRIBUTES = 5, 64
_DELTA = 1e-6  # of graphs with fewer than a million edges
_HOMOPHILY = 0.6  # share of the edges that are drawn within a class
Measure = Callable[[str, Path], dict[str, dict[str, float]]]
"""From a graph and the folder of files to seconds and memory of each stage."""
_ROWS = {"cora_ml": "Cora-ML", "facebook_pages": "Facebook pages"}
_QUIET = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")


def main(args: list[str]) -> list[Number]:
    """Print a table, and write the numbers into the folder as CSV; return those of the study."""
    rows = measure_each("large_classes", ["cora_ml", "facebook_pages"], _named, _drawn, args)
    return [number for graph, stages in rows.items() for number in _numbers(graph, stages)]


def _numbers(graph: str, stages: dict[str, dict[str, float]]) -> Iterator[Number]:
    """Return the numbers of a graph; its peak is that of the whole process."""
    row = _ROWS.get(graph) or f"{int(graph) // 1_000_000} million"
    peak = max(stage["base"] + stage["peak"] for stage in stages.values())
    values = {
        "reading": f"{stages['read']['cpu']:.1f}",
        "learning": f"{stages['learn']['cpu']:.1f}",
        "learning, by the clock": f"{stages['learn']['wall']:.1f}",
        "GiB": f"{peak:.2f}",
    }
    for column, value in values.items():
        yield Number("large_graphs", "classes", row, column, value)


def measure_each(
    benchmark: str, graphs: list[str], named: Measure, drawn: Measure, args: list[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure each graph in a process of its own, print a table, and write it as CSV.

    Args:
        benchmark: Name of the benchmark.
        graphs: Small graphs, by default.
        named: Measures the stages of a small graph.
        drawn: Measures those of a drawn graph, whose name is its number of edges.
        args: Command line.

    Returns:
        Seconds and memory by graph and stage.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {benchmark}")
    parser.add_argument("--graphs", nargs="*", default=graphs)
    parser.add_argument("--edges", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", help="measure this graph in this process")
    options = parser.parse_args(args)
    if options.only:
        measure = drawn if options.only.isdecimal() else named
        print(json.dumps(measure(options.only, options.folder)))
        return {}
    options.folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for edges in options.edges:
        if not edges_path(options.folder, edges).exists():
            draw_classes(edges, options.folder)
    for graph in [*options.graphs, *map(str, options.edges)]:
        found[graph] = _in_its_own_process(benchmark, graph, options.folder)
        for step, values in found[graph].items():
            print(" | ".join(map(str, (graph, step, *values.values()))), flush=True)
    rows = [
        {"graph": graph, "step": step, **values}
        for graph, stages in found.items()
        for step, values in stages.items()
    ]
    with (options.folder / f"{benchmark}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    return found


def draw_classes(edges: int, folder: Path) -> None:
    """Write a graph of nodes with classes, and a table of their attributes, as Parquet.

    Args:
        edges: Number of rows of edges M, of M / 10 nodes; a few rows are repeated, or loops.
        folder: Folder of both files; the table of nodes has ids, classes ``y`` and noisy attributes.
    """
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    nodes, rng = edges // NODES_PER_EDGE, np.random.default_rng(2)
    ids = rng.permutation(nodes)  # node k of class k mod 5 has the id ids[k]
    places = np.argsort(ids)
    means = rng.normal(size=(_CLASSES, _ATTRIBUTES)).astype(np.float32) / 4
    with parquet.ParquetWriter(people_path(folder, edges), _people_schema()) as writer:
        for block in np.array_split(places, max(1, nodes // 2**16)):
            values = means[block % _CLASSES]
            values += rng.normal(size=values.shape).astype(np.float32)
            columns = [ids[block], block % _CLASSES, *values.T]
            writer.write_table(pyarrow.table(columns, schema=_people_schema()))
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with parquet.ParquetWriter(edges_path(folder, edges), schema) as writer:
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


def edges_path(folder: Path, edges: int) -> Path:
    """File of the edges of a drawn graph."""
    return folder / f"classes-{edges}.parquet"


def people_path(folder: Path, edges: int) -> Path:
    """File of the nodes of a drawn graph."""
    return folder / f"people-{edges}.parquet"


def _in_its_own_process(benchmark: str, graph: str, folder: Path) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks", benchmark, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--only", graph], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _drawn(graph: str, folder: Path) -> dict[str, dict[str, float]]:
    """Learn classes from a table of attributes, while the edges stay in theirs."""
    edges = int(graph)
    from lightning_dpg.datamodules import EdgeTableDataModule, Nodes

    import_engine()
    stages = Stages()
    with stages.stage("read"):
        nodes = Nodes(attributes=str(people_path(folder, edges)))
        data = EdgeTableDataModule(str(edges_path(folder, edges)), nodes=nodes, undirected=True)
        data.setup("fit")
    return _learn(data, 0.1 / edges, stages)


def _named(name: str, folder: Path) -> dict[str, dict[str, float]]:
    """Learn classes of a graph in memory."""
    from lightning_dpg.datamodules import EdgeListDataModule, Nodes

    stages = Stages()
    with stages.stage("read"):
        data = EdgeListDataModule(name, undirected=True, nodes=Nodes(attributes="from_graph"))
        data.setup("fit")
    return _learn(data, _DELTA, stages)


def _learn(data: Any, delta: float, stages: Stages) -> dict[str, dict[str, float]]:
    """Learn classes, and add the accuracy on nodes whose classes the method did not know."""
    import pytorch_lightning as pl
    import torch

    from lightning_dpg.budget_book import NO_BOOK
    from lightning_dpg.callbacks import PrivacyAccountant
    from lightning_dpg.methods import NeighborVotes

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    method = NeighborVotes(split_seed=SEED)
    accountant = PrivacyAccountant(EPSILON, delta, book=NO_BOOK)
    quiet: dict[str, Any] = dict.fromkeys(_QUIET, False)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[accountant], **quiet)
    with stages.stage("learn"), redirect_stdout(sys.stderr):
        trainer.fit(method, data)
    is_right = method.classes[method.node_posteriors().argmax(1)] == data.records.classes
    accuracy = float(is_right[method.known_labels() < 0].double().mean())
    stages.found["learn"]["accuracy"] = round(accuracy, 3)
    return stages.found
