"""Degrees, edges and clustering under node-level privacy: NodeDegrees beside ErdosRenyi.

``python -m benchmarks node_degrees --out FOLDER`` writes ``FOLDER/results.csv``, whose means are in
``results/nodes``. A budget is for all edges of a node. ErdosRenyi protects an edge, and a node has up
to N - 1 edges: it gets epsilon / (N - 1), by group privacy. ``ErdosRenyi within D`` gets epsilon / D,
which protects nodes only **if** no degree exceeds D; D is the largest degree of the graph, rounded up
to hundreds. Edges are in percent of those of the graph. Clustering is the mean over nodes, estimated
where there are too many wedges.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from benchmarks.links import COLUMNS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import ErdosRenyi, NodeDegrees
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.functional import degrees, measure_clustering
from lightning_dpg.metrics.queries import kl_divergence
from lightning_dpg.run.fit import fit_method

EPSILONS = (1.0, 2.0, 4.0)


def power_law(num_nodes: int) -> Data:
    """Graph of Holme and Kim with six edges for each new node, 70 % of which close triangles, seed 0."""
    return from_networkx(nx.powerlaw_cluster_graph(num_nodes, 6, 0.7, seed=0))


def million_nodes() -> Data:
    """Five million pairs in proportion to weights of a Pareto law of exponent 2.5, of seed 0."""
    rng, size = np.random.default_rng(0), 1_000_000
    ends = np.cumsum(np.minimum(3 * (1 + rng.pareto(1.5, size)), 10_000))
    pairs = np.searchsorted(ends, rng.random((5_000_000, 2)) * ends[-1])
    return make_graph(torch.from_numpy(pairs), size)


GRAPHS: dict[str, Callable[[], Data]] = {
    "Facebook": lambda: load_graph("Facebook"),
    "power law 1000": lambda: power_law(1000),
    "power law 3000": lambda: power_law(3000),
    "power law 10000": lambda: power_law(10_000),
    "power law 30000": lambda: power_law(30_000),  # the size of Enron's e-mail
    "million": million_nodes,
}


def candidates(graph: Data) -> dict[str, tuple[Callable[[int], Synthesizer], float, bool]]:
    """Methods, by which number each divides the budget, and whether that is conditional."""
    bound = 100 * math.ceil(degrees(graph).max() / 100)
    return {
        "NodeDegrees": (NodeDegrees, 1.0, False),
        "ErdosRenyi": (ErdosRenyi, graph.num_nodes - 1.0, False),
        "ErdosRenyi within D": (ErdosRenyi, float(bound), True),
    }


def values_of(graph: Data, drawn: Data) -> dict[str, float]:
    """Compare a drawn graph with the private one."""
    _, clustering = measure_clustering(drawn)
    return {
        "KL": kl_divergence(np.bincount(degrees(graph)), np.bincount(degrees(drawn))),
        "edges": 100 * drawn.num_edges / graph.num_edges,
        "clustering": float(clustering.average.value),
    }


def main(args: list[str]) -> None:
    """Measure all graphs.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks node_degrees", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "results.csv").open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow(COLUMNS)
        for name in options.graphs:
            graph = GRAPHS[name]()
            data = EdgeListDataModule(graph)
            print(f"{name}: {graph.num_nodes} nodes, {graph.num_edges // 2} edges", flush=True)
            own = values_of(graph, graph)
            for query in ("edges", "clustering"):
                for epsilon in EPSILONS:
                    row = ["original", name, epsilon, 0, query, own[query], True, False]
                    lines.writerow(row)
            for method, (make, divisor, is_conditional) in candidates(graph).items():
                for epsilon in EPSILONS:
                    for run in range(options.runs):
                        started = time.process_time()
                        fitted = make(graph.num_nodes)
                        fit_method(fitted, data, epsilon / divisor, 0.0)
                        drawn = fitted.sample(torch.Generator().manual_seed(run))
                        seconds = time.process_time() - started
                        found = {**values_of(graph, drawn), "seconds": seconds}
                        for query, value in found.items():
                            place = [method, name, epsilon, run, query]
                            lines.writerow([*place, value, True, is_conditional])
                        stream.flush()
                        shown = ", ".join(f"{query} {value:.4g}" for query, value in found.items())
                        print(f"{name} {method} {epsilon:g} {run}: {shown}", flush=True)
