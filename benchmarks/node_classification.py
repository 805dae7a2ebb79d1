"""Accuracy of networks that learn classes of nodes from releases, each seed with releases of its own."""

import argparse
import statistics
from collections import defaultdict

import torch

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.evaluation.node_classification import NamedGraph, evaluate_nodes
from lightning_dpg.methods import AttributeEncoder, AttributeMoments, ChungLu
from lightning_dpg.metrics.node_classification import NODE_QUERIES
from lightning_dpg.run.fit import fit_method

METHODS = {
    "AttributeEncoder": AttributeEncoder,
    "AttributeMoments": AttributeMoments,
    "ChungLu": ChungLu,
}
DELTA = 1e-5


def released(data: EdgeListDataModule, name: str, epsilon: float, seed: int) -> NamedGraph:
    """Fit a method with noise of the operating system, and draw a graph."""
    method = METHODS[name](data.graph.num_nodes)
    fit_method(method, data, epsilon, 0.0 if name == "ChungLu" else DELTA)
    with torch.no_grad():
        graph = method.eval().sample(torch.Generator().manual_seed(seed))
    return NamedGraph(f"{name} at {epsilon:g}", graph, "")


def main(args: list[str]) -> None:
    """Print the scores of each seed as they come, and then means and standard deviations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks node_classification")
    parser.add_argument("--graph", default="cora_ml", help="archive with attributes and classes")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 2.9])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for seed in options.seeds:
        data = EdgeListDataModule(
            options.graph, undirected=True, nodes=Nodes(attributes="from_graph")
        )
        data.setup("fit")
        graphs = [
            released(data, name, epsilon, seed)
            for name in options.methods
            for epsilon in options.epsilons
        ]
        for row in evaluate_nodes(
            options.graph, data.graph, graphs, num_seeds=1, first_seed=seed
        ).rows:
            print(
                f"seed {seed}",
                row.graph,
                f"{row.num_edges:.0f}",
                row.network,
                *row.scores[0],
                flush=True,
            )
            for query in NODE_QUERIES:
                values[row.graph, row.network, query] += row.values(query)
    print("graph,network,score,mean,deviation,seeds")
    for (graph, network, query), found in values.items():
        deviation = statistics.stdev(found) if len(found) > 1 else 0.0
        numbers = f"{100 * statistics.mean(found):.1f},{100 * deviation:.1f}"
        print(f"{graph},{network},{query},{numbers},{' '.join(map(str, options.seeds))}")
