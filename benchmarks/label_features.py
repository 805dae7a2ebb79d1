"""Label accuracy of private counts beside public features, on sets and on drawn families.

The families have two labels in pairs of graphs with equal numbers of nodes and of edges: uniform
edges, and communities. Their counts of wedges and triangles differ strongly or weakly; numbers of
nodes say nothing. Rows are printed as they stand in ``results/labels/results.csv``.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from lightning_dpg import fit
from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics.kernel_svm import compare_labels

RUNS = 3
EPSILONS = (0.1, 1.0, 10.0)
DEGREES = {"DD": 10, "IMDB-BINARY": 20, "IMDB-MULTI": 20, "ego_sets": 20, "road_sets": 5}
"""Bounds on the degrees; 8 of other sets."""


class Family(NamedTuple):
    """Communities of a family, and the chances of an edge in one and between two."""

    communities: int
    smallest: int
    inside: float
    outside: float


FAMILIES = {
    "small, strong": Family(2, 5, 0.8, 0.1),
    "middle, strong": Family(3, 5, 0.8, 0.1),
    "middle, weak": Family(3, 5, 0.6, 0.2),
    "large, strong": Family(6, 8, 0.6, 0.04),
    "large, weak": Family(6, 8, 0.35, 0.1),
}


def drawn(family: Family, count: int) -> list[Data]:
    """Draw pairs of graphs, of label 0 with uniform edges and of label 1 with communities."""
    graphs = []
    for pair in range(count // 2):
        size = family.smallest + pair % max(family.smallest // 2, 2)
        blocks = nx.planted_partition_graph(
            family.communities, size, family.inside, family.outside, seed=pair
        )
        uniform = nx.gnm_random_graph(len(blocks), blocks.number_of_edges(), seed=pair)
        for label, graph in enumerate((uniform, blocks)):
            graphs.append(from_networkx(graph))
            graphs[-1].y = torch.tensor([label])
    return graphs


def accuracies(graphs: Sequence[Data], epsilon: float, **settings: object) -> list[float]:
    """Accuracies in % of several releases, each in folds of its own."""
    found = []
    for run in range(RUNS):
        method = fit(list(graphs), "private_kernel", epsilon=epsilon, **settings).method
        kernels = method.kernels(method.embedding, method.sizes)
        found.append(100 * compare_labels(graphs, kernels, seed=run)["accuracy"].score)
    return found


def of_set(name: str) -> Iterator[tuple[str, str, list[float]]]:
    """Rows of a set: row, column, accuracies."""
    data = TUGraphDataModule(name)
    graphs = data.read_graphs()
    for row, public in (("numbers of nodes", False), ("public features", True)):
        found = accuracies(graphs, 1.0, features=["nodes"], public_features=public)
        for epsilon in EPSILONS:
            yield f"{name}, {row}", f"{epsilon:g}", found
    for row, public in (("counts alone", False), ("counts and public features", True)):
        for epsilon in EPSILONS:
            settings = {"max_degree": DEGREES.get(name, 8), "public_features": public}
            found = accuracies(graphs, epsilon, **settings)
            yield f"{name}, {row}", f"{epsilon:g}", found


def of_family(name: str, count: int) -> Iterator[tuple[str, str, list[float]]]:
    """Rows of a family: its mean number of edges, its differences in %, and accuracies."""
    graphs = drawn(FAMILIES[name], count)
    labels = np.array([int(graph.y) for graph in graphs])
    edges = np.array([graph.num_edges / 2 for graph in graphs])
    counts = {
        "wedges": np.array([_wedges(graph) for graph in graphs]),
        "triangles": np.array([_triangles(graph) for graph in graphs]),
    }
    row = f"{name}, {count} graphs"
    yield row, "edges", [float(edges.mean())]
    for noun, values in counts.items():
        change = values[labels == 1].mean() - values[labels == 0].mean()
        yield row, noun, [100 * abs(change) / values.mean()]
    for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
        yield row, f"{epsilon:g}", accuracies(graphs, epsilon)


def _adjacency(graph: Data) -> np.ndarray:
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[tuple(graph.edge_index.numpy())] = 1
    return matrix


def _triangles(graph: Data) -> float:
    matrix = _adjacency(graph)
    return float(np.trace(matrix @ matrix @ matrix)) / 6


def _wedges(graph: Data) -> float:
    degrees = _adjacency(graph).sum(axis=0)
    return float((degrees * (degrees - 1) / 2).sum())


def main(args: list[str]) -> None:
    """Print rows of ``results.csv``: table, row, column, mean, deviation, runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks label_features")
    parser.add_argument("--sets", nargs="*", default=["planted_sets"])
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--graphs", type=int, default=400, help="graphs of a family")
    options = parser.parse_args(args)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    tables = [("public_features", of_set(name)) for name in options.sets]
    tables += [("families", of_family(name, options.graphs)) for name in options.families]
    for table, rows in tables:
        for row, column, values in rows:
            spread = f"{stdev(values):.3g}" if len(values) > 1 else ""
            writer.writerow([table, row, column, f"{fmean(values):.4g}", spread, len(values)])
            sys.stdout.flush()
