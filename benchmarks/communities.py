"""Communities of published graphs by method: NMI and average F1 with those of the private graph.

``python -m benchmarks communities --out FOLDER`` appends a line for each value of a run to
``FOLDER/results.csv``, from which ``python -m results communities --by-query`` takes its numbers.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.links import COLUMNS, DELTA
from lightning_dpg import methods
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.communities import (
    average_f1,
    louvain,
    normalized_mutual_information,
)
from lightning_dpg.run.fit import fit_method

KINDS = ("PrivCom", "RandomizedResponsePrivCom", "PrivGraph", "BTER", "HRG", "DK2")
METHODS: dict[str, Callable[..., Synthesizer]] = {
    name: getattr(methods, name) for name in (*KINDS, "ChungLu", "ErdosRenyi")
}
SETTINGS = {("polblogs", name): {"rank": 2} for name in KINDS[:2]}
"""Settings of a method on a graph: polblogs has two communities, which is prior knowledge."""
QUERIES = {"community_f1": average_f1, "community_nmi": normalized_mutual_information}


def drawn_communities(
    data: EdgeListDataModule, graph: str, name: str, epsilon: float, run: int
) -> NDArray[np.int64]:
    """Communities of a graph that is drawn from a release."""
    method = METHODS[name](data.num_nodes, **SETTINGS.get((graph, name), {}))
    fit_method(method, data, epsilon, 0.0 if method.capabilities.is_pure else DELTA)
    with torch.no_grad():
        return louvain(method.eval().sample(torch.Generator().manual_seed(run)))


def main(args: list[str]) -> None:
    """Measure the agreement on each graph, budget, method and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks communities", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument(
        "--graphs", nargs="+", default=["polblogs", "CA-GrQc", "CORA-ML", "Facebook"]
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["ChungLu", "PrivGraph"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.9, 5.0])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "results.csv").open("a", newline="") as stream:
        lines = csv.writer(stream)
        if not stream.tell():
            lines.writerow(COLUMNS)
        for graph in options.graphs:
            data = EdgeListDataModule(graph, undirected=True)
            data.setup("fit")
            own = louvain(data.graph)
            for run, epsilon, name in product(
                range(options.runs), options.epsilons, options.methods
            ):
                start = time.process_time()
                found = drawn_communities(data, graph, name, epsilon, run)
                guarantee = math.isfinite(epsilon), name == "HRG"  # of a stationary chain
                for query, agreement in QUERIES.items():
                    value = agreement(own, found)
                    lines.writerow([name, graph, epsilon, run, query, value, *guarantee])
                stream.flush()
                print(f"{graph} {run} {name} {epsilon:g}: {time.process_time() - start:.1f} s")
