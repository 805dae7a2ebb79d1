"""Edges, degrees and triangles of graphs that are drawn for few nodes.

``python -m benchmarks small_graphs --out FOLDER`` writes ``FOLDER/results.csv``, whose means are in
``results/small_graphs``. Errors of edges and triangles are relative. That of degrees is the mean absolute
difference of the degrees in descending order, over the mean degree. Where a graph has no triangle, their
number takes the place of the error.
"""

import argparse
import csv
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from benchmarks.links import COLUMNS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import BTER, ChungLu, PrivGraph
from lightning_dpg.run.fit import fit_method

METHODS = (BTER, PrivGraph, ChungLu)


def errors(real: Data, drawn: Data) -> dict[str, float]:
    """Return the error of each query."""
    both = [to_networkx(graph, to_undirected=True) for graph in (real, drawn)]
    degrees = [-np.sort(-np.array([degree for _, degree in graph.degree()])) for graph in both]
    found = {"degrees": float(np.abs(degrees[1] - degrees[0]).mean() / degrees[0].mean())}
    for query, count in {
        "edges": nx.Graph.number_of_edges,
        "triangles": lambda graph: sum(nx.triangles(graph).values()) // 3,
    }.items():
        one, other = map(count, both)
        found[query] = abs(other - one) / max(one, 1)
    return found


def main(args: list[str]) -> None:
    """Write a line for each fit and query."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks small_graphs")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", nargs="+", default=["karate", "les_miserables", "davis"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--fits", type=int, default=50)
    parser.add_argument("--label", default="", help="follows the names of the methods")
    options = parser.parse_args(args)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "results.csv").open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(COLUMNS)
        for name in options.graphs:
            for method_class in METHODS:
                for epsilon in options.epsilons:
                    for run in range(options.fits):
                        method, data = method_class(), EdgeListDataModule(name)
                        fit_method(method, data, epsilon, 0.0)
                        drawn = method.sample(torch.Generator().manual_seed(run))
                        place = [method_class.__name__ + options.label, name, epsilon, run]
                        for query, error in errors(data.records.graph, drawn).items():
                            lines.writerow([*place, query, error, True, False])
