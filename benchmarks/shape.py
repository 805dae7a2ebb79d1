"""Shape of drawn graphs: the fifteen queries of PGB, and seconds, by method, graph and budget.

``python -m benchmarks shape --out FOLDER`` appends a line for each run and query to
``FOLDER/results.csv``; runs that are there are not repeated. The noise of a run follows from its number,
so that two versions of a method are compared with equal noise: run this file in the checkout of each.

``python -m benchmarks shape --out FOLDER --before OTHER`` makes no run. For each method it prints lines of
``results/shape/results.csv``, up to the number of runs, of three tables: means of the runs in OTHER
(before) and in FOLDER (after), in how many graphs and budgets each query became better or worse, and
seconds.
"""

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, median, stdev

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
_SHOWN = (*PGB_QUERIES[2:3], *PGB_QUERIES[6:9], *PGB_QUERIES[10:14])
_EQUAL = 0.02  # share of a value by which it may change and still be the same
_EXACT = 1e-4  # errors below are none

Numbers = dict[tuple[str, str, str, str, str], float]
"""Errors by method, graph, budget, run and query."""


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
    seconds = (after - before for before, after in pairwise(marks))
    return {query: answers[query].score for query in PGB_QUERIES} | dict(
        zip(SECONDS, seconds, strict=True)
    )


def read(folder: Path) -> Numbers:
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


def compared(before: Numbers, after: Numbers) -> Iterator[Sequence[object]]:
    """Compare two versions on the runs that both made: table, row, column, value, deviation, runs."""
    cells: dict[tuple[str, str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for place in sorted(before.keys() & after.keys()):
        method, graph, epsilon, _, query = place
        cells[method, graph, epsilon, query].append((before[place], after[place]))
    for (method, graph, epsilon, query), runs in cells.items():
        if query in _SHOWN:
            for version, values in _versions(runs):
                row = f"{graph} {epsilon.removeprefix('0')} {version}"
                deviation = f"{stdev(values):.3f}" if len(values) > 1 else ""
                yield (
                    _table(method),
                    row,
                    _title(query),
                    f"{fmean(values):.3g}",
                    deviation,
                    len(values),
                )
    for method, query in product(METHODS, PGB_QUERIES):
        means = [
            (fmean(run[0] for run in runs), fmean(run[1] for run in runs))
            for place, runs in cells.items()
            if (place[0], place[3]) == (method, query)
        ]
        if means:
            for column, value in _changes(means, query).items():
                yield _table(method, "cells"), _title(query), column, value, "", len(means)
    for method, graph in sorted({place[:2] for place in cells}):
        for query in SECONDS:
            fits = [place for place in cells if (*place[:2], place[3]) == (method, graph, query)]
            for version, values in _versions([run for place in fits for run in cells[place]]):
                column = f"{query.split()[0]} {version}"
                yield (
                    _table(method, "seconds"),
                    graph,
                    column,
                    f"{fmean(values):.2g}",
                    "",
                    len(values),
                )


def _versions(runs: Sequence[tuple[float, float]]) -> list[tuple[str, list[float]]]:
    return [("before", [run[0] for run in runs]), ("after", [run[1] for run in runs])]


def _changes(means: Sequence[tuple[float, float]], query: str) -> dict[str, object]:
    """In how many cells a query became better or worse, and by how much it changed."""
    sign = -1 if query in HIGHER_IS_BETTER else 1
    changes = [sign * (new - old) / max(old, new, _EXACT) for old, new in means]
    better, worse = (sum(part * change > _EQUAL for change in changes) for part in (-1, 1))
    ratio = median((new + _EXACT) / (old + _EXACT) for old, new in means)
    same = len(means) - better - worse
    return {"better": better, "worse": worse, "within 2 %": same, "median ratio": f"{ratio:.2f}"}


def _table(method: str, part: str = "") -> str:
    """Name of a table of the study."""
    return "_".join(filter(None, (method.lower(), "versions", part)))


def _title(query: str) -> str:
    """Name of a query in the study."""
    words = query.replace("avg", "average").replace("_", " ")
    for name in ("kl", "nmi", "mae"):
        words = words.replace(f" {name}", f" {name.upper()}")
    return words.replace("num ", "number of ")


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
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            compared(read(options.before), read(options.out))
        )
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
