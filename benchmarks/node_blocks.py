"""Two planted groups found under node-level privacy: NodeBlockSampler beside NodePrivCom.

``python -m benchmarks node_blocks --out FOLDER`` writes ``FOLDER/results.csv``, whose means are in
``results/nodes``. The overlap is (2 a - 1)^2 for a share a of nodes in the right group: 0 by chance,
1 for all nodes. It is a square as that of vectors in ``node_privacy``. NodePrivCom gets the better
one of the signs of both its vectors, picked with the truth, so that its number is too good if
anything.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.links import COLUMNS
from benchmarks.node_privacy import RANK, fitted, planted
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import NodeBlockSampler
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.running.fit import fit_method

DELTA = 1e-7  # of NodePrivCom


def sampler_labels(graph: Data, epsilon: float, max_degree: int, groups: int) -> list[Tensor]:
    """Labels of the sampler, as signs of the first group against the others."""
    method = NodeBlockSampler(max_degree, graph.num_nodes, num_communities=groups)
    fit_method(method, EdgeListDataModule(graph), epsilon, 0.0)
    return [method.communities == label for label in range(groups)]


def privcom_labels(graph: Data, epsilon: float, max_degree: int) -> list[Tensor]:
    """Signs of both vectors."""
    method = fitted(graph, epsilon, DELTA, max_degree)
    return [method.vectors[:, vector] > 0 for vector in range(RANK)]


def overlap(label: Tensor) -> float:
    """Overlap of a division of the nodes with the even and the odd ones."""
    truth = torch.arange(len(label)) % 2 == 1
    return (2 * float((label == truth).double().mean()) - 1) ** 2


METHODS: dict[str, Callable[[Data, float, int], list[Tensor]]] = {
    "NodeBlockSampler": lambda graph, epsilon, bound: sampler_labels(graph, epsilon, bound, 2),
    "NodePrivCom": privcom_labels,
}


def main(args: list[str]) -> None:
    """Measure all sizes.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks node_blocks", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[4.0, 8.0, 16.0])
    parser.add_argument("--degree", type=float, default=40.0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "results.csv").open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow(COLUMNS)
        for nodes in options.nodes:
            graph = planted(nodes, options.degree)
            # A bound that is plausible without reading the graph
            bound = 10 * math.ceil(degrees(graph).max() / 10)
            for name, epsilon, run in product(
                options.methods, options.epsilons, range(options.runs)
            ):
                started = time.process_time()
                found = max(map(overlap, METHODS[name](graph, epsilon, bound)))
                seconds = time.process_time() - started
                for query, value in (("overlap", found), ("seconds", seconds)):
                    place = [name, f"planted {nodes}", epsilon, run, query]
                    lines.writerow([*place, value, True, True])
                stream.flush()
                print(
                    f"{nodes} (D {bound}) {name} {epsilon:g} {run}: {found:.3f}, {seconds:.1f} s",
                    flush=True,
                )
