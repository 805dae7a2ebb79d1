"""Time of graph statistics, against networkx with equal values."""

import argparse
import math
from collections.abc import Callable

import networkx as nx
from torch_geometric.data import Data

from benchmarks.numbers import Number, ratio
from benchmarks.timing import medians
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.graph_places import data_root
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.functional import STATISTICS


def mean_path_length(graph: nx.Graph) -> float:
    """Return the mean over connected pairs, as networkx lists them."""
    lengths = [
        length
        for _, targets in nx.all_pairs_shortest_path_length(graph)
        for length in targets.values()
        if length
    ]
    return sum(lengths) / len(lengths)


REFERENCES: dict[str, Callable[[nx.Graph], float]] = {
    "max_degree": lambda graph: max(degree for _, degree in graph.degree()),
    "assortativity": nx.degree_assortativity_coefficient,
    "triangles": lambda graph: sum(nx.triangles(graph).values()) / 3,
    "characteristic_path_length": mean_path_length,
    "largest_component_size": lambda graph: max(map(len, nx.connected_components(graph))),
    "num_components": nx.number_connected_components,
    "transitivity": nx.transitivity,
}


def default_graph() -> Data:
    """Return Cora-ML if the data are there, else a planted partition of similar size."""
    root = data_root()
    if root is not None and (root / "graphs" / "CORA-ML.edges.gz").is_file():
        return load_graph("CORA-ML")
    return load_graph(nx.planted_partition_graph(40, 70, 0.05, 0.0008, seed=0))


def main(args: list[str]) -> list[Number]:
    """Print the medians and their ratio, one line per statistic; return that of the sum."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks statistics")
    parser.add_argument(
        "--graph", help="name or path of a graph; by default CORA-ML or a planted one"
    )
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(args)
    graph = load_graph(options.graph) if options.graph else default_graph()
    other = nx.empty_graph(graph.num_nodes)
    other.add_edges_from(undirected_edges(graph).tolist())
    print(f"statistics: {graph.num_nodes} nodes, {other.number_of_edges()} edges, cpu")
    print("| statistic | value | ours, ms | networkx, ms | networkx / ours |")
    print("|---|---|---|---|---|")
    totals = [0.0, 0.0]
    for name, reference in REFERENCES.items():
        statistic = STATISTICS[name]
        value, expected = statistic(graph), reference(other)
        if not math.isclose(value, expected, rel_tol=1e-9):
            raise RuntimeError(f"{name}: ours is {value}, that of networkx {expected}")
        ours, theirs = _pair(statistic, reference, graph, other, options.rounds)
        totals = [totals[0] + ours, totals[1] + theirs]
        print(f"| {name} | {value:.6g} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.0f} |")
    ours, theirs = totals
    print(f"| sum | | {ours:.3f} | {theirs:.3f} | {theirs / ours:.0f} |")
    return [ratio("statistics", theirs / ours)]


def _pair(
    statistic: Callable[[Data], float],
    reference: Callable[[nx.Graph], float],
    graph: Data,
    other: nx.Graph,
    rounds: int,
) -> tuple[float, float]:
    variants = {"ours": lambda: statistic(graph), "networkx": lambda: reference(other)}
    times = medians(variants, rounds)
    return times["ours"], times["networkx"]
