"""Shape of drawn graphs: the fifteen queries of PGB, and seconds, by method, graph and budget.

``python -m benchmarks shape --out FOLDER`` appends a line for each run and query to
``FOLDER/results.csv``; runs that are there are not repeated. The noise of a run follows from its number,
so that two versions of a method are compared with equal noise. With ``--before OTHER`` no run is made, and
the numbers in FOLDER are compared with those of another version in OTHER.
"""

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, median

import torch

from benchmarks.links import COLUMNS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import BTER, PrivGraph
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, QUERIES, Profile, compare, profile
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.running.fit import fit_method

METHODS = {"BTER": BTER, "PrivGraph": PrivGraph}
PGB_QUERIES = QUERIES[:15]
SECONDS = ("fit seconds", "draw seconds")
_EQUAL = 0.02  # a change by this share, or by this much of a unit that is an error, is none


def measured(
    name: str, data: EdgeListDataModule, real: Profile, epsilon: float, run: int
) -> dict[str, float]:
    """Fit a method, draw a graph, and answer the queries."""
    method = METHODS[name](data.num_nodes)
    method._noise = NoiseSource(unsafe_seed=run)  # public graphs: nothing is protected
    marks = [time.process_time()]
    fit_method(method, data, epsilon, 0.0)
    marks.append(time.process_time())
    with torch.no_grad():
        drawn = method.eval().sample(torch.Generator().manual_seed(run))
    marks.append(time.process_time())
    answers = compare(real, drawn)
    seconds = (after - before for before, after in zip(marks[:-1], marks[1:], strict=True))
    return {query: answers[query].score for query in PGB_QUERIES} | dict(
        zip(SECONDS, seconds, strict=True)
    )


def read(folder: Path) -> dict[tuple[str, str, str, str, str], float]:
    """Numbers of a folder by method, graph, budget, run and query."""
    file = folder / "results.csv"
    if not file.exists():
        return {}
    with file.open(newline="") as stream:
        return {
            (line["method"], line["graph"], line["epsilon"], line["run"], line["query"]): float(
                line["error"]
            )
            for line in csv.DictReader(stream)
        }


def main(args: list[str]) -> None:
    """Measure each graph, budget, method and run, or compare two versions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shape", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument("--before", type=Path, help="folder of another version")
    parser.add_argument(
        "--graphs", nargs="+", default=["Facebook", "polblogs", "CA-GrQc", "squirrel", "CA-HepPh"]
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--epsilons", nargs="+", default=["0.5", "1", "2", "5"])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    if options.before:
        for line in compared(read(options.before), read(options.out)):
            print(line)
        return
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    present = {place[:4] for place in read(options.out)}
    with (options.out / "results.csv").open("a", newline="") as stream:
        lines = csv.writer(stream)
        if not present:
            lines.writerow(COLUMNS)
        for graph in options.graphs:
            data = EdgeListDataModule(graph, undirected=True)
            data.setup("fit")
            real = profile(data.graph)
            for epsilon, name, run in product(
                options.epsilons, options.methods, range(options.runs)
            ):
                if (name, graph, epsilon, str(run)) in present:
                    continue
                for query, value in measured(name, data, real, float(epsilon), run).items():
                    lines.writerow([name, graph, epsilon, run, query, f"{value:.5g}", True, False])
                stream.flush()
