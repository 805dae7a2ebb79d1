"""AUC of held-out links by method: the measurements behind the advice on methods for links."""

import argparse
import csv
import statistics
import sys
import time

import networkx as nx
import pandas as pd
import torch

from benchmarks.link_graphs import drawn
from benchmarks.links import METHODS, measured
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.edge_sampling import MAX_NODES

HELD_OUT = 0.15
DELTA = 1e-6
HEAD = ("graph", "nodes", "degree", "epsilon", "method", "auc", "matched", "deviation", "seconds")


def read(name: str, seed: int) -> EdgeListDataModule:
    """A graph, of whose links a public coin of this seed holds some out."""
    attributes = "from_graph" if name.endswith(".npz") else None
    graph: str | nx.Graph = name
    if name.endswith(".csv"):
        rows = pd.read_csv(name).iloc[:, :2].itertuples(index=False)
        graph = nx.convert_node_labels_to_integers(nx.Graph((a, b) for a, b in rows if a != b))
    elif ":" in name:
        graph = drawn(name)
    return EdgeListDataModule(
        graph,
        undirected=isinstance(graph, str),
        test_fraction=HELD_OUT,
        seed=seed,
        nodes=Nodes(attributes=attributes),
    )


def names_of(data: EdgeListDataModule) -> list[str]:
    """Methods that learn a graph of this size, with its attributes."""
    with_attributes = data.graph.x is not None
    is_large = data.num_nodes > MAX_NODES
    return [
        name
        for name in METHODS
        if (with_attributes or not name.startswith("Attribute"))
        and not (is_large and name == "spectral")
    ]


def main(args: list[str]) -> None:
    """Print a line of CSV per graph, budget and method: means over runs, with their deviation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks link_methods")
    parser.add_argument(
        "graphs",
        nargs="+",
        help="names, FAMILY:NODES:DEGREE, or files; attributes of .npz are public",
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.9, 5.0])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    lines = csv.writer(sys.stdout)
    lines.writerow(HEAD)
    for graph in options.graphs:
        splits = [read(graph, seed) for seed in range(options.runs)]
        num_nodes = splits[0].num_nodes
        head = [graph, num_nodes, f"{2 * splits[0].num_edges / num_nodes:.3g}"]
        for epsilon in options.epsilons:
            for name in names_of(splits[0]):
                start = time.perf_counter()
                found = [measured(name, data, epsilon, DELTA) for data in splits]
                aucs, matched = ([run[key] for run in found] for key in ("auc", "matched_auc"))
                deviation = f"{100 * statistics.pstdev(aucs):.2g}"
                means = [f"{100 * statistics.fmean(values):.1f}" for values in (aucs, matched)]
                seconds = f"{(time.perf_counter() - start) / len(found):.1f}"
                lines.writerow([*head, epsilon, name, *means, deviation, seconds])
                sys.stdout.flush()
