"""Shape of drawn graphs: the fifteen queries of PGB, and seconds, by method, graph and budget.

``python -m benchmarks shape --out FOLDER`` appends a line for each run and query to
``FOLDER/results.csv``; runs that are there are not repeated. The noise of a run follows from its number,
so that two versions of a method are compared with equal noise: run this file in the checkout of each.

``python -m benchmarks shape --out FOLDER --before OTHER`` makes no run. For each method it prints lines of
``results/shape/results.csv``, up to the number of runs, of three tables: means of the runs in OTHER
(before) and in FOLDER (after), in how many graphs and budgets each query became better or worse, and
seconds.

``python -m benchmarks shape --out FOLDER --peers OTHER`` makes no run, either. It prints lines of the
tables that set the methods beside those of others, whose numbers OTHER has in a ``results.csv`` of the same
columns: for each graph and budget, and for each query, how often the best of ours is better than the best of
theirs; and means on graphs that no constant was chosen on.
"""

import argparse
import csv
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, median, stdev

import torch

from benchmarks.links import COLUMNS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import BTER, PrivGraph
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, QUERIES, Profile, compare, profile
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.run.fit import fit_method

METHODS = {"BTER": BTER, "PrivGraph": PrivGraph}
PGB_QUERIES = QUERIES[:15]
SECONDS = ("fit seconds", "draw seconds")
_SHOWN = (*PGB_QUERIES[2:3], *PGB_QUERIES[6:9], *PGB_QUERIES[10:14])
_EQUAL = 0.02  # share of a value by which it may change and still be the same
_EXACT = 1e-4  # errors below are none
# No constant of a method was chosen on these graphs.
_UNSEEN = ("CA-HepPh", "Wiki-Vote", "Chameleon", "Enron")
_AT = "1"  # budget of the means beside the peers'
_IMPLIED = ("num_nodes", "avg_degree")  # public; follows from the number of edges
_VERDICTS = ("better", "equal", "worse")

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


def beside(ours: Numbers, peers: Numbers) -> Iterator[Sequence[object]]:
    """Set methods beside those of others: table, row, column, value, deviation, runs."""
    theirs = {place[0] for place in peers}
    runs: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for (method, graph, epsilon, _, query), value in (ours | peers).items():
        if query in PGB_QUERIES:
            by_method = runs.setdefault((graph, epsilon, query), {})
            by_method.setdefault(method, []).append(value)
    by_cell: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    by_query: dict[str, Counter[str]] = defaultdict(Counter)
    num_runs: dict[tuple[str, str], int] = {}
    for (graph, epsilon, query), by_method in runs.items():
        means = {method: fmean(values) for method, values in by_method.items()}
        own = {method: means.pop(method) for method in means.keys() - theirs}
        if not own or not means:  # one side has not measured it
            continue
        num_runs[graph, epsilon] = min(map(len, by_method.values()))
        verdict = _verdict(query, own.values(), means.values())
        by_query[query][f"{verdict}, {'unseen' if graph in _UNSEEN else 'seen'}"] += 1
        by_cell[graph, epsilon][verdict] += 1
        for method, mean in own.items():
            by_cell[graph, epsilon][f"{method} {_verdict(query, [mean], means.values())}"] += 1
    for (graph, epsilon), counts in by_cell.items():
        row = f"{graph} {epsilon.removeprefix('0')}"
        for column in (*_VERDICTS, *map(" ".join, product(METHODS, _VERDICTS[::2]))):
            yield "peers", row, column, counts[column], "", num_runs[graph, epsilon]
    of_all = {"all queries": sum(by_query.values(), Counter())}
    for query, counts in (by_query | of_all).items():
        for column in map(", ".join, product(_VERDICTS, ("seen", "unseen"))):
            yield "peers_queries", _title(query), column, counts[column], "", ""
    for (graph, epsilon, query), by_method in runs.items():
        if graph in _UNSEEN and epsilon == _AT and query not in _IMPLIED:
            table = f"peers_{graph.lower().replace('-', '_')}"
            for method, values in by_method.items():
                deviation = f"{stdev(values):.2g}" if len(values) > 1 else ""
                yield table, _title(query), method, f"{fmean(values):.3g}", deviation, len(values)


def _verdict(query: str, ours: Iterable[float], theirs: Iterable[float]) -> str:
    """Whether the best of ours is better than the best of theirs, worse, or equal."""
    sign = -1 if query in HIGHER_IS_BETTER else 1
    mine, other = (sign * min(sign * value for value in values) for values in (ours, theirs))
    difference = sign * (mine - other)
    if max(mine, other) < _EXACT or abs(difference) <= _EQUAL * max(mine, other):
        return "equal"
    return "better" if difference < 0 else "worse"


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
    """Measure each graph, budget, method and run, or compare with another version or with others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shape", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument("--before", type=Path, help="folder of another version")
    parser.add_argument("--peers", type=Path, help="folder of methods of others")
    parser.add_argument(
        "--graphs", nargs="+", default=["Facebook", "polblogs", "CA-GrQc", "squirrel", "CA-HepPh"]
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--epsilons", nargs="+", default=["0.5", "1", "2", "5"])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    if options.before or options.peers:
        numbers = read(options.out)
        lines = (
            compared(read(options.before), numbers)
            if options.before
            else beside(numbers, read(options.peers))
        )
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    present = {place[:4] for place in read(options.out)}
    with (options.out / "results.csv").open("a", newline="") as stream:
        file = csv.writer(stream)
        if not present:
            file.writerow(COLUMNS)
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
                    file.writerow([name, graph, epsilon, run, query, f"{value:.5g}", True, False])
                stream.flush()
