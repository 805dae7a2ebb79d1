"""Links of a large graph by method: time and memory of a release, and AUC of held-out links.

Each release is made in a process of its own, whose peak memory includes Python, PyTorch and data.
"""

import argparse
import csv
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.links import METHODS as METHODS_FOR_LINKS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import RandomizedResponsePrivCom
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.run.fit import fit_method

HELD_OUT = 0.15
METHODS: dict[str, Callable[[int], Synthesizer]] = {
    "ChungLu": METHODS_FOR_LINKS["ChungLu"],
    "PrivGraph": METHODS_FOR_LINKS["PrivGraph"],
    "spectral": METHODS_FOR_LINKS["spectral"],
    "RandomizedResponsePrivCom": RandomizedResponsePrivCom,
}
HEAD = (
    *("graph", "nodes", "edges", "epsilon", "method", "auc", "matched", "ap"),
    *("degrees_auc", "degrees_matched", "reports", "fit_cpu_s", "draw_cpu_s", "peak_gib"),
    *("drawn", "true", "held_out_true"),
)


def part_of(graph: Data, num_nodes: int) -> Data:
    """Keep nodes in a random order (seed 0) until ``num_nodes`` of them have an edge."""
    pairs = graph.edge_index.numpy()
    place = np.random.default_rng(0).permutation(graph.num_nodes).argsort()
    needed = place[pairs].max(axis=0)  # places up to this one hold both ends
    first = np.full(graph.num_nodes, graph.num_nodes)
    np.minimum.at(first, pairs[0], needed)
    np.minimum.at(first, pairs[1], needed)
    kept = pairs[:, needed <= np.sort(first)[num_nodes - 1]]
    _, numbers = np.unique(kept, return_inverse=True)
    edges = torch.from_numpy(numbers.reshape(2, -1).T)
    return make_graph(edges[edges[:, 0] < edges[:, 1]], int(numbers.max()) + 1)


def measured(name: str, num_nodes: int, method_name: str, epsilon: float) -> list[Any]:
    """Fit a method to a graph, and return a line of CSV."""
    torch.set_num_threads(1)
    graph = load_graph(name)
    if num_nodes < graph.num_nodes:
        graph = part_of(graph, num_nodes)
    data = EdgeListDataModule(graph, test_fraction=HELD_OUT)
    method = METHODS[method_name](data.num_nodes)
    start = time.process_time()
    fit_method(method, data, epsilon, 0.0)
    fitted = time.process_time()
    drawn = method.eval().sample_edges(torch.Generator().manual_seed(0))
    seconds = [round(t, 1) for t in (fitted - start, time.process_time() - fitted)]
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    assert data.test_links is not None
    with torch.no_grad():
        values = method.link_values(data.test_links)
    keys = ("auc", "matched_auc", "ap", "auc_degree_product", "matched_auc_degree_product")
    shares = [
        share_among(drawn, edges, data.num_nodes) for edges in (data.edges, data.test_links[0])
    ]
    reports = len(method.reported) if method_name == "spectral" else ""
    return [
        *(name, data.num_nodes, len(data.edges) + len(data.test_links[0]), epsilon, method_name),
        *(round(100 * values[key], 1) for key in keys),
        *(reports, *seconds, peak, len(drawn), *(round(100 * share, 2) for share in shares)),
    ]


def share_among(drawn: Tensor, edges: Tensor, num_nodes: int) -> float:
    """Share of drawn edges that are among others; both have rows ``i < j``."""
    drawn, edges = (pairs[:, 0] * num_nodes + pairs[:, 1] for pairs in (drawn, edges))
    return float(torch.isin(drawn, edges).double().mean())


def main(args: list[str]) -> None:
    """Print a line of CSV per budget and method."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks large_links", description=__doc__)
    parser.add_argument("graph", help="name or file")
    parser.add_argument("--nodes", type=int, default=2**62, help="of a random part of the graph")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[6.0, 8.0, 10.0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS][:3])
    options = parser.parse_args(args)
    lines = csv.writer(sys.stdout)
    lines.writerow(HEAD)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        for method, epsilon in product(options.methods, options.epsilons):
            job = options.graph, options.nodes, method, epsilon
            lines.writerow(pool.apply(measured, job))
            sys.stdout.flush()
