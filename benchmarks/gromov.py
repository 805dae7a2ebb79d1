"""Time of Gromov-Wasserstein discrepancies of all pairs of a set, against a loop over POT."""

import argparse
import time
from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from benchmarks.numbers import Number

CHUNK = 500  # pairs of one variant before the turn of the other
TARGET = "<= 0.50"
_EQUAL = 1e-9  # of the mean discrepancy


def main(args: list[str]) -> list[Number]:
    """Print seconds of both, and how often they find different local minima; return the numbers of the study.

    Needs $LIGHTNING_DPG_DATA.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks gromov")
    parser.add_argument("--sets", nargs="+", default=["MUTAG"])
    parser.add_argument("--pairs", type=int, help="so many pairs at random instead of all")
    parser.add_argument("--workers", type=int, help="time so many processes, and nothing else")
    options = parser.parse_args(args)
    if options.workers:
        print("| set | pairs | 1 process, s | processes | s | ratio | target |")
        print("|---|---|---|---|---|---|---|")
        for name in options.sets:
            _processes(name, options.workers)
        return []
    print("one thread, both in turn; distances: shortest paths")
    print(
        "| set | discrepancy | pairs | POT, s | ours, s | ratio | target | ours lower | ours higher | mean |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    return [
        number
        for name in options.sets
        for fused in (False, True)
        for number in _row(name, fused, options.pairs)
    ]


def _spaces(name: str, fused: bool) -> list:
    """Return graphs of a set by their shortest paths; none if there are no features to fuse."""
    from lightning_dpg.datamodules.tu import TUGraphDataModule
    from lightning_dpg.graph.graph import undirected_edges
    from lightning_dpg.papers.jin2022.gromov import Space, path_distances

    data = TUGraphDataModule(name)
    data.setup("fit")
    if fused and data.graphs[0].x is None:
        return []
    return [
        Space(
            path_distances(undirected_edges(graph).numpy(), graph.num_nodes),
            graph.x.double().numpy() if fused else None,
        )
        for graph in data.graphs
    ]


def _processes(name: str, workers: int) -> None:
    """Return wall seconds of all pairs, by one process and by several, in turn."""
    from lightning_dpg.papers.jin2022.gromov import pairwise_discrepancies

    spaces, seconds = _spaces(name, fused=False), {1: [], workers: []}
    pairwise_discrepancies(spaces[:20], workers=workers)  # starts the processes
    for _ in range(3):
        for count, found in seconds.items():
            start = time.perf_counter()
            pairwise_discrepancies(spaces, workers=count)
            found.append(time.perf_counter() - start)
    alone, shared = (min(found) for found in seconds.values())
    pairs = len(spaces) * (len(spaces) - 1) // 2
    print(
        f"| {name} | {pairs} | {alone:.1f} | {workers} | {shared:.1f} | {shared / alone:.2f} "
        f"| <= {1.2 / workers:.2f} |"
    )


def _row(name: str, fused: bool, count: int | None) -> list[Number]:
    import ot

    from lightning_dpg.papers.jin2022.gromov import Space, gromov_discrepancy

    spaces = _spaces(name, fused)
    if not spaces:
        return []

    def pot(first: Space, second: Space) -> float:
        if first.features is None:
            return ot.gromov.gromov_wasserstein2(first.distances, second.distances)
        costs = ot.dist(first.features, second.features)
        return ot.gromov.fused_gromov_wasserstein2(costs, first.distances, second.distances)

    pairs = list(combinations(range(len(spaces)), 2))
    if count is not None:
        chosen = np.random.default_rng(0).choice(len(pairs), min(count, len(pairs)), replace=False)
        pairs = [pairs[k] for k in chosen]
    seconds, values = [0.0, 0.0], ([], [])
    for start in range(0, len(pairs), CHUNK):
        chunk = [(spaces[i], spaces[j]) for i, j in pairs[start : start + CHUNK]]
        for number, solve in enumerate((pot, gromov_discrepancy)):
            took, found = _timed(solve, chunk)
            seconds[number] += took
            values[number].extend(found)
    theirs, ours = map(np.array, values)
    difference = (ours - theirs) / theirs.mean()
    lower, higher = ((sign * difference > _EQUAL).mean() for sign in (-1, 1))
    kind = "fused" if fused else "plain"
    ratio = seconds[1] / seconds[0]
    print(
        f"| {name} | {kind} | {len(pairs)} | {seconds[0]:.1f} | {seconds[1]:.1f} | {ratio:.2f} "
        f"| {TARGET} | {lower:.2%} | {higher:.2%} | {difference.mean():+.2%} |",
        flush=True,
    )
    if count is not None:  # the study has all pairs of a set
        return []
    if name != "MUTAG":
        values = {(name, f"{kind}, to POT's time"): f"{ratio:.2f}"}
    else:
        values = {
            (row, f"{kind}, seconds"): f"{took:.1f}"
            for row, took in zip(("MUTAG, loop over POT", "MUTAG"), seconds, strict=True)
        }
        values |= {
            ("MUTAG", f"{kind}, % lower than POT"): f"{100 * lower:.1f}",
            ("MUTAG", f"{kind}, % higher"): f"{100 * higher:.1f}",
        }
    return [Number("speed", "discrepancies", *place, value) for place, value in values.items()]


def _timed(solve: Callable, pairs: Iterable) -> tuple[float, list[float]]:
    start = time.process_time()
    found = [float(solve(*pair)) for pair in pairs]
    return time.process_time() - start, found
