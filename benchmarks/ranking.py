"""Whether releases order eight models as the real graph does, beside controls, each seed with releases of its own.

``python -m benchmarks ranking --out measured`` writes what each cell has predicted to a file of its own,
and appends its scores to ``measured/scores.csv``. What is there is not measured again. It then writes
``measured/cells.csv``. Noise comes from the operating system.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from benchmarks.scores_file import ScoresFile
from lightning_dpg import methods
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.evaluation.node_classification import NamedGraph, public_nodes
from lightning_dpg.evaluation.public_nodes import (
    NO_GRAPH,
    REAL_GRAPH,
    SIMILARITY_GRAPH,
    Drawn,
    PublicNodes,
)
from lightning_dpg.evaluation.ranking import AGAIN, MODELS, Trial, held_out, ranked
from lightning_dpg.graph.held_out import split_nodes
from lightning_dpg.run.fit import fit_method

GRAPHS = ("cora_ml", "citeseer", "hopkins", "facebook_pages")
METHODS = ("ChungLu", "BTER", "PrivGraph", "AttributeEncoder")
EPSILONS = (4.0, 1.0)
FIELDS = ("graph", "seed", "row", "task", "edges", "model", "score", "seconds")
ROWS = {f"{name} at {epsilon:g}": (name, epsilon) for epsilon in EPSILONS for name in METHODS}


def released(data: EdgeListDataModule, name: str, epsilon: float, seed: int) -> Data:
    """Fit a method with noise of the operating system, and draw a graph."""
    needs_size = name == "AttributeEncoder"
    method = getattr(methods, name)(*([data.graph.num_nodes] if needs_size else []))
    delta = 1e-5 if data.num_edges < 100_000 else 1e-6
    fit_method(method, data, epsilon, 0.0 if name == "ChungLu" else delta)
    with torch.no_grad():
        graph: Data = method.eval().sample(torch.Generator().manual_seed(seed))
    return graph


def rows_of(
    data: EdgeListDataModule, public: PublicNodes, seed: int
) -> Iterator[tuple[str, Callable[[], Data]]]:
    """Yield each row with its graph, which is still to be made."""
    yield REAL_GRAPH, lambda: data.graph
    yield AGAIN, lambda: data.graph
    yield SIMILARITY_GRAPH, lambda: public.similarity_graph
    yield NO_GRAPH, lambda: public.no_graph
    for row, (name, epsilon) in ROWS.items():
        yield row, partial(released, data, name, epsilon, seed)


def file_of(folder: Path, graph: str, seed: int | str, row: str) -> Path:
    """Return the file of one cell."""
    return folder / f"{graph} {seed} {row}.npz"


def main(args: list[str]) -> None:
    """Measure what the folder lacks, and write the tables.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks ranking", description=__doc__)
    parser.add_argument("--graph", nargs="+", choices=GRAPHS, default=[*GRAPHS])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--out", type=Path, required=True, help="folder of all files")
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    file = ScoresFile(options.out, FIELDS)
    for seed in options.seeds:
        for graph in options.graph:
            measure_graph(graph, seed, options.out, file)
    file.write_cells(line for graph in options.graph for line in cells(options.out, graph))


def measure_graph(graph: str, seed: int, folder: Path, file: ScoresFile) -> None:
    """Measure the cells of a graph and a seed that the folder lacks."""
    data = EdgeListDataModule(graph, undirected=True, nodes=Nodes(attributes="from_graph"))
    data.setup("fit")
    public = PublicNodes(public_nodes(NamedGraph(graph, data.graph, "")), data.num_edges)
    split = split_nodes(public.classes, seed)
    drawn = Drawn(split, seed, public.known(split.train))
    trial = partial(Trial, public, drawn, data.graph, *held_out(data.graph, seed))
    for row, build in rows_of(data, public, seed):
        path = file_of(folder, graph, seed, row)
        if path.exists():
            continue
        start = time.process_time()
        items = trial(build(), seed + 1_000 * (row == AGAIN)).items()
        seconds = f"{time.process_time() - start:.1f}"
        file.append(
            [graph, seed, row, task, edges, model, f"{score:.4f}", seconds]
            for task, values in items.items()
            for edges, scores in zip(("own", "real"), values.mean(2), strict=True)
            for model, score in zip(MODELS, scores, strict=True)
        )
        np.savez_compressed(path, classes=items["classes"], links=items["links"])
        print(graph, seed, row, seconds, flush=True)


def cells(folder: Path, graph: str) -> Iterator[list[Any]]:
    """Yield the scores and orders of a graph, over the seeds of which a row has all cells.

    The deviation of a tau is half of its interval, and the note holds its ends.
    """
    names = [REAL_GRAPH, AGAIN, SIMILARITY_GRAPH, NO_GRAPH, *ROWS]
    known = {
        row: {path.stem.split()[1] for path in folder.glob(f"{graph} * {row}.npz")} for row in names
    }
    for row in names:
        seeds = sorted(known[row] & known[REAL_GRAPH])
        if not seeds:
            continue
        items = {
            each: [dict(np.load(file_of(folder, graph, seed, each))) for seed in seeds]
            for each in dict.fromkeys((row, REAL_GRAPH))
        }
        origin = [len(seeds), " ".join(seeds)]
        for one in ranked(items):
            if one.graph != row:
                continue
            table = f"{graph} {one.task}"
            for model, score in zip(MODELS, one.scores, strict=True):
                if not math.isnan(score):
                    yield [table, row, model, f"{100 * score:.1f}", "", *origin, ""]
            for column, tau in (("tau", one.tau), ("tau on real edges", one.tau_on_real_edges)):
                if not math.isnan(tau.value) and row != REAL_GRAPH:
                    half = f"{(tau.high - tau.low) / 2:.2f}"
                    interval = f"95 % interval {tau.low:.2f} to {tau.high:.2f}"
                    yield [table, row, column, f"{tau.value:.2f}", half, *origin, interval]
