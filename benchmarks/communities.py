"""Communities of published graphs by method: NMI with those of the private graph.

``python -m benchmarks communities --out FOLDER`` appends a line for each run to
``FOLDER/results.csv``, from which ``python -m results communities --by-query`` takes its numbers.
"""

import argparse
import csv
import math
from itertools import product
from pathlib import Path

import torch

from benchmarks.links import COLUMNS
from benchmarks.links import METHODS as METHODS_FOR_LINKS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.metrics.communities import louvain, normalized_mutual_information
from lightning_dpg.run.fit import fit_method

METHODS = {name: METHODS_FOR_LINKS[name] for name in ("ChungLu", "PrivGraph")}


def agreement(data: EdgeListDataModule, name: str, epsilon: float, run: int) -> float:
    """NMI of the communities of the graph and of one that is drawn from a release."""
    method = METHODS[name](data.num_nodes)
    fit_method(method, data, epsilon, 0.0)
    with torch.no_grad():
        drawn = method.eval().sample(torch.Generator().manual_seed(run))
    return normalized_mutual_information(louvain(data.graph), louvain(drawn))


def main(args: list[str]) -> None:
    """Measure the NMI of each graph, budget, method and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks communities", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument(
        "--graphs", nargs="+", default=["polblogs", "CA-GrQc", "CORA-ML", "Facebook"]
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.9, 5.0])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "results.csv").open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow(COLUMNS)
        for graph in options.graphs:
            data = EdgeListDataModule(graph, undirected=True)
            data.setup("fit")
            jobs = product(range(options.runs), options.epsilons, options.methods)
            for run, epsilon, name in jobs:
                value = agreement(data, name, epsilon, run)
                guarantee = math.isfinite(epsilon), False
                lines.writerow([name, graph, epsilon, run, "community_nmi", value, *guarantee])
                stream.flush()
